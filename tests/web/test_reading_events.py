import pytest
from starlette.testclient import TestClient

from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.web.app import create_app
from dntm.web.readings import Memory
from dntm.web.server import Limits
from tests.web.asking import kinds, read
from tests.web.tiny import TEXT, PausingReader


def test_events_carry_the_values_of_the_reading(client: TestClient, reader: Reader) -> None:
    events = read(client, TEXT)

    whole = reader.read(TEXT, entities=("names", "unknown"))
    assert kinds(events) == ["start", *["sentence"] * 4, "map", "map", "end"]
    assert events[0]["names"] == {"1": "Marta", "2": "zorrel"}
    assert [[stop[0] for stop in event["path"]] for event in events[5:7]] == [[0, 1, 3], [2, 3]]
    for event, sentence in zip(events[1:5], whole.sentences, strict=True):
        assert event["index"] == sentence.index
        for sent, expected in zip(event["tokens"], sentence.tokens, strict=True):
            assert sent["word"] == expected.word
            assert sent["entity"] == expected.entity
            assert sent["surprisal"] == pytest.approx(expected.surprisal)
            assert sent["static_surprisal"] == pytest.approx(expected.static_surprisal)
        guesses = [[near["word"] for near in e["predicted_words"]] for e in event["entities"]]
        assert guesses == [[near.word for near in e.predicted_words] for e in sentence.entities]


def test_sentences_and_spaces_are_those_of_the_text(client: TestClient) -> None:
    events = read(client, 'Old "Marta" left.\n\nThen  Marta\'s boat came.')

    assert [s["text"] for s in events[0]["sentences"]] == [
        'Old "Marta" left.', "Then Marta's boat came."
    ]  # fmt: skip
    assert [s["paragraph"] for s in events[0]["sentences"]] == [0, 1]
    spaced = [("" if not t["space"] else " ") + t["word"] for t in events[2]["tokens"][:-1]]
    assert "".join(spaced) == "Then Marta's boat came."


def test_after_an_edit_only_later_sentences_are_computed(pausing: PausingReader) -> None:
    with TestClient(create_app(pausing), base_url="http://127.0.0.1") as client:
        first = read(client, TEXT)
        edited = TEXT.replace("slept", "sat")

        again = read(client, edited, reading=first[0]["id"], have=4)

        assert kinds(again)[:5] == ["start", "kept", "kept", "sentence", "sentence"]
        assert again[-1]["computed"] == 2
        fresh = read(client, edited)
        assert [s["tokens"] for s in again[3:5]] == [s["tokens"] for s in fresh[3:5]]
        assert again[5:7] == fresh[5:7]


def test_sentences_that_the_page_lacks_are_sent(client: TestClient) -> None:
    first = read(client, TEXT)

    again = read(client, TEXT, reading=first[0]["id"], have=1)

    assert kinds(again)[1:5] == ["kept", "sentence", "sentence", "sentence"]


def test_a_forgotten_reading_is_read_again(reader: Reader) -> None:
    app = create_app(reader, Limits(remembered=5))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        first = read(client, TEXT)
        read(client, "Some other day. The ferry came.")

        again = read(client, TEXT, reading=first[0]["id"], have=4)

        assert kinds(again)[1:5] == ["sentence"] * 4
        assert len(app.state.readings.memory) <= 5


def test_the_least_recently_used_reading_is_forgotten_first() -> None:
    three = [SentenceReading(index=index, tokens=(), entities=()) for index in range(3)]
    memory = Memory(5)
    memory.keep("a", three[:2])
    memory.keep("b", three[:2])
    memory.recall("a")

    memory.keep("c", three)

    assert [len(memory.recall(name)) for name in "abc"] == [2, 0, 3]


def test_predictions_equal_those_of_the_reader(client: TestClient, reader: Reader) -> None:
    first = read(client, TEXT)
    question = {"text": TEXT, "sentence": 3, "position": 2}

    with_reading = client.post("/api/predict", json={**question, "reading": first[0]["id"]}).json()
    without = client.post("/api/predict", json=question).json()

    *_, before, _ = reader.stream(TEXT)
    assert before.position is not None
    expected = reader.predictions(before.position, ["A", 2], len(reader.vocabulary))
    assert with_reading == without
    for column, field in (("dynamic", "probability"), ("static", "static_probability")):
        likely = {
            (c.word, c.entity): getattr(c, field)
            for c in getattr(expected, column)
            if c.entity in (0, 1, 2)
        }
        new = [getattr(c, field) for c in getattr(expected, column) if c.entity > 2]
        likely["", -1] = sum(new) + likely.pop(("<unk>", 0))
        rows = sorted(likely, key=lambda row: -likely[row])[:8]
        assert [(c["word"], c["entity"]) for c in without[column]] == rows
        assert [c[field] for c in without[column]] == pytest.approx([likely[r] for r in rows])


def test_an_entity_is_unseen_until_its_first_mention(client: TestClient) -> None:
    places = {(0, 1): set(), (0, 2): {1}, (2, 1): {1}, (2, 2): {1, 2}}

    for (sentence, position), known in places.items():
        question = {"text": TEXT, "sentence": sentence, "position": position}
        found = client.post("/api/predict", json=question).json()
        for column in ("dynamic", "static"):
            entities = [row["entity"] for row in found[column] if row["entity"]]
            assert set(entities) <= known | {-1}
            assert entities.count(-1) <= 1


def test_what_is_computed_for_predictions_is_remembered(pausing: PausingReader) -> None:
    with TestClient(create_app(pausing), base_url="http://127.0.0.1") as client:
        question = {"text": TEXT, "sentence": 3, "position": 2, "reading": "mine"}
        first = client.post("/api/predict", json=question).json()
        pausing.known.clear()

        again = client.post("/api/predict", json=question).json()

        assert again == first
        assert pausing.known == [4]
