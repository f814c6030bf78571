import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

from dntm.benchmark.serve import marked_text, spelled
from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.web.app import create_app
from dntm.web.limits import Limits
from dntm.web.pages import examples
from tests.web.tiny import TEXT, served

Event = dict[str, Any]


@pytest.fixture
def client(reader: Reader) -> Iterator[TestClient]:
    with TestClient(create_app(reader), base_url="http://127.0.0.1") as client:
        yield client


def read(client: TestClient, text: str, **fields: object) -> list[Event]:
    response = client.post("/api/read", json={"text": text, **fields})
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def kinds(events: Sequence[Event]) -> list[str]:
    return [event["kind"] for event in events]


def refused(client: TestClient, path: str = "/api/read", **fields: object) -> tuple[int, str]:
    response = client.post(path, json=fields)
    return response.status_code, response.json()["message"]


class SlowReader(Reader):
    """Takes its time, counts, and waits where a test wants it to."""

    steps = 0
    pause: Callable[[], object] = staticmethod(lambda: None)

    def stream(self, *text: Any, **options: Any) -> Iterator[SentenceReading]:
        for sentence in super().stream(*text, **options):
            self.steps += 1
            self.pause()
            yield sentence


@pytest.fixture
def slow(reader: Reader) -> SlowReader:
    return SlowReader(reader.models)


# --- reading -----------------------------------------------------------------------------------


def test_the_stream_says_what_the_reader_says(client: TestClient, reader: Reader) -> None:
    events = read(client, TEXT)

    whole = reader.read(TEXT, entities=("names", "unknown"))
    assert kinds(events) == ["start", *["sentence"] * 4, "map", "map", "end"]
    assert events[0]["names"] == {"1": "Marta", "2": "zorrel"}
    for event, sentence in zip(events[1:5], whole.sentences, strict=True):
        assert event["index"] == sentence.index
        for sent, expected in zip(event["tokens"], sentence.tokens, strict=True):
            assert sent["word"] == expected.word
            assert sent["entity"] == expected.entity
            assert sent["surprisal"] == pytest.approx(expected.surprisal)
            assert sent["static_surprisal"] == pytest.approx(expected.static_surprisal)
        nearest = [[near["word"] for near in e["input_words"]] for e in event["entities"]]
        assert nearest == [[near.word for near in e.input_words] for e in sentence.entities]


def test_raw_sentences_and_spaces_are_those_of_the_text(client: TestClient) -> None:
    events = read(client, 'Old "Marta" left.\n\nThen  Marta\'s boat came.')

    assert [s["text"] for s in events[0]["sentences"]] == [
        'Old "Marta" left.', "Then Marta's boat came."
    ]  # fmt: skip
    assert [s["paragraph"] for s in events[0]["sentences"]] == [0, 1]
    spaced = [("" if not t["space"] else " ") + t["word"] for t in events[2]["tokens"][:-1]]
    assert "".join(spaced) == "Then Marta's boat came."


def test_every_entity_has_a_map_with_a_stop_after_each_sentence_that_mentions_it(
    client: TestClient,
) -> None:
    maps = {event["entity"]: event["spaces"] for event in read(client, TEXT)[5:7]}

    assert [stop[0] for stop in maps[1]["input"]["path"]] == [0, 1, 3]
    assert [stop[0] for stop in maps[2]["output"]["path"]] == [2, 3]
    assert len(maps[1]["input"]["words"]) > 3


def test_after_an_edit_only_what_follows_is_computed_again(slow: SlowReader) -> None:
    with TestClient(create_app(slow), base_url="http://127.0.0.1") as client:
        first = read(client, TEXT)
        edited = TEXT.replace("slept", "sat")

        again = read(client, edited, reading=first[0]["id"], have=4)

        assert kinds(again)[:5] == ["start", "kept", "kept", "sentence", "sentence"]
        assert again[-1]["computed"] == 2
        fresh = read(client, edited)
        assert [s["tokens"] for s in again[3:5]] == [s["tokens"] for s in fresh[3:5]]
        assert again[5:7] == fresh[5:7]


def test_an_edit_that_makes_a_word_an_entity_is_read_from_its_first_mention(
    client: TestClient,
) -> None:
    first = read(client, "The zunk slept. The day came. Marta left.")

    again = read(
        client, "The zunk slept. The day came. A zunk left.", reading=first[0]["id"], have=3
    )

    assert again[-1]["computed"] == 3
    assert again[1]["tokens"][1]["entity"] == 1


def test_a_page_that_has_less_than_the_server_gets_the_rest(client: TestClient) -> None:
    first = read(client, TEXT)

    again = read(client, TEXT, reading=first[0]["id"], have=1)

    assert kinds(again)[1:5] == ["kept", "sentence", "sentence", "sentence"]


def test_a_reading_the_server_has_forgotten_is_simply_read_again(reader: Reader) -> None:
    app = create_app(reader, Limits(remembered=5))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        first = read(client, TEXT)
        read(client, "Some other day. The ferry came.")

        again = read(client, TEXT, reading=first[0]["id"], have=4)

        assert kinds(again)[1:5] == ["sentence"] * 4
        assert app.state.readings.remembered <= 5


def test_a_name_of_a_reading_cannot_be_guessed(client: TestClient) -> None:
    names = {read(client, TEXT)[0]["id"] for _ in range(3)}

    assert len(names) == 3
    assert all(len(name) >= 20 for name in names)


def test_predictions_are_the_readers(client: TestClient, reader: Reader) -> None:
    first = read(client, TEXT)
    question = {"text": TEXT, "sentence": 3, "position": 2}

    with_reading = client.post("/api/predict", json={**question, "reading": first[0]["id"]}).json()
    without = client.post("/api/predict", json=question).json()

    *_, before, _ = reader.stream(TEXT)
    assert before.position is not None
    expected = reader.predictions(before.position, ["A", 2], 8).to_dict()
    assert with_reading == without
    for column in ("dynamic", "static"):
        assert [c["word"] for c in without[column]] == [c["word"] for c in expected[column]]
        assert [c["probability"] for c in without[column]] == pytest.approx(
            [c["probability"] for c in expected[column]]
        )


def test_predictions_at_the_first_word_of_a_text(client: TestClient) -> None:
    found = client.post("/api/predict", json={"text": TEXT, "sentence": 0, "position": 0}).json()

    assert len(found["dynamic"]) == len(found["static"]) == 8


def test_all_examples_are_read_with_entities(client: TestClient) -> None:
    for example in examples():
        events = read(client, example.text)
        assert events[0]["names"], example.title
        assert spelled(events) == "".join(example.text.split())


# --- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  \n ", None, 3, "\ud800 left."])
def test_a_text_without_words_or_that_is_none_is_refused(client: TestClient, text: object) -> None:
    response = client.post(
        "/api/read",
        content=json.dumps({"text": text}),
        headers={"Content-Type": "application/json"},
    )

    assert response.status_code == 422
    assert "text" in response.json()["message"]


def test_a_long_text_is_refused_with_its_length_and_the_limit(client: TestClient) -> None:
    status, message = refused(client, text="so " * 7_000)

    assert status == 413
    assert "21,000" in message
    assert "20,000" in message


def test_a_large_request_is_refused_before_it_is_read(client: TestClient) -> None:
    assert refused(client, text="so " * 1_000_000)[0] == 413


def test_a_sentence_without_end_is_refused(client: TestClient) -> None:
    status, message = refused(client, text="One day. So " + "so " * 599)

    assert status == 422
    assert "sentence 2 has 600 words" in message


@pytest.mark.parametrize(
    ("path", "fields", "name"),
    [
        ("/api/read", {"entities": "all"}, "entities"),
        ("/api/read", {"entities": ["names"]}, "entities"),
        ("/api/read", {"reading": 5}, "reading"),
        ("/api/read", {"have": -1}, "have"),
        ("/api/predict", {"sentence": 9, "position": 0}, "sentence"),
        ("/api/predict", {"sentence": True, "position": 0}, "sentence"),
        ("/api/predict", {"sentence": 0, "position": 99}, "position"),
        ("/api/predict", {"sentence": 0}, "position"),
    ],
)
def test_a_field_that_makes_no_sense_is_named(
    client: TestClient, path: str, fields: dict[str, object], name: str
) -> None:
    status, message = refused(client, path, text=TEXT, **fields)

    assert status == 422
    assert message.startswith(name)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(client: TestClient, content: bytes) -> None:
    response = client.post(
        "/api/read", content=content, headers={"Content-Type": "application/json"}
    )

    assert response.status_code == 422


def test_only_json_is_taken_so_that_no_form_of_another_site_can_post(client: TestClient) -> None:
    response = client.post(
        "/api/read", content=json.dumps({"text": TEXT}), headers={"Content-Type": "text/plain"}
    )

    assert response.status_code == 415


@pytest.mark.parametrize(
    "name", ["..%2Fpages.py", "%2e%2e/pages.py", "..\\pages.py", "/etc/passwd"]
)
def test_no_path_reaches_the_disk(client: TestClient, name: str) -> None:
    response = client.get(f"/static/{name}")

    assert response.status_code == 404
    assert "import" not in response.text


def test_a_reading_that_takes_too_long_ends_with_a_message(slow: SlowReader) -> None:
    slow.pause = lambda: time.sleep(0.15)
    app = create_app(slow, Limits(seconds=0.4))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        events = read(client, TEXT)

        assert kinds(events)[:2] == ["start", "sentence"]
        assert events[-1] == {
            "kind": "error",
            "message": "reading took longer than 0.4 s and was stopped",
        }
        assert app.state.readings.active == 0


def test_a_request_that_never_ends_is_given_up(reader: Reader) -> None:
    with served(create_app(reader, Limits(sending=0.2))) as address:
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port), timeout=10) as connection:
            connection.sendall(
                f"POST /api/read HTTP/1.1\r\nHost: {place.netloc}\r\n"
                "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
            )

            answer = connection.recv(1000)

    assert answer.startswith(b"HTTP/1.1 408")


def test_one_reading_too_many_is_told_to_come_again(slow: SlowReader) -> None:
    release = threading.Event()
    slow.pause = lambda: release.wait(10)
    app = create_app(slow, Limits(readings=1))
    with served(app) as address, ThreadPoolExecutor(1) as background:
        waiting = background.submit(
            httpx2.post, f"{address}/api/read", json={"text": TEXT}, timeout=20
        )
        while not app.state.readings.active:
            time.sleep(0.01)

        response = httpx2.post(f"{address}/api/read", json={"text": TEXT})
        release.set()

        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert "try again" in response.json()["message"]
        assert waiting.result().status_code == 200


# --- many at once ------------------------------------------------------------------------------


def test_a_reader_who_leaves_is_not_computed_any_further(slow: SlowReader) -> None:
    slow.pause = lambda: time.sleep(0.05)
    app = create_app(slow, Limits(threads=1))
    text = "\n\n".join([TEXT] * 20)
    with served(app) as address:
        place = urlsplit(address)
        body = json.dumps({"text": text}).encode()
        with socket.create_connection((place.hostname, place.port)) as connection:
            connection.sendall(
                f"POST /api/read HTTP/1.1\r\nHost: {place.netloc}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            connection.recv(1000)
        deadline = time.monotonic() + 5
        while app.state.readings.active and time.monotonic() < deadline:
            time.sleep(0.02)
        computed = slow.steps
        time.sleep(0.3)

        assert not app.state.readings.active
        assert computed < 40
        assert slow.steps <= computed + 1


def test_readers_at_the_same_time_each_get_their_own_text(reader: Reader) -> None:
    texts = [marked_text(number % 3, chr(97 + number)) for number in range(12)]

    def events(address: str, text: str) -> list[Event]:
        response = httpx2.post(f"{address}/api/read", json={"text": text}, timeout=60)
        return [json.loads(line) for line in response.text.splitlines()]

    with served(create_app(reader)) as address, ThreadPoolExecutor(12) as readers:
        found = list(readers.map(events, [address] * 12, texts))

    for text, answer in zip(texts, found, strict=True):
        assert spelled(answer) == "".join(text.split())
        alone = reader.read(text, entities=("names", "unknown"))
        sums = sum(t["surprisal"] for e in answer if "tokens" in e for t in e["tokens"])
        assert sums == pytest.approx(alone.surprisal)


def test_the_page_answers_while_the_model_computes(slow: SlowReader) -> None:
    release = threading.Event()
    slow.pause = lambda: release.wait(10)
    with served(create_app(slow)) as address, ThreadPoolExecutor(1) as background:
        reading = background.submit(
            httpx2.post, f"{address}/api/read", json={"text": TEXT}, timeout=20
        )
        began = time.monotonic()

        response = httpx2.get(address)
        seconds = time.monotonic() - began
        release.set()

        assert response.status_code == 200
        assert seconds < 5
        assert reading.result().status_code == 200
