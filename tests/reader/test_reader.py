import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dntm.corpus.document import Document, Mention
from dntm.evaluation.scoring import TextModel
from dntm.model.reading_state import ReadingState
from dntm.reader import pair
from dntm.reader.engine import Engine
from dntm.reader.reader import Reader
from tests.reader.small import (
    STORY,
    TALES,
    VOCABULARY,
    anonymized,
    checkpoint,
    static_surprisals,
    surprisals,
)

DOCUMENT = anonymized("the 1 met 2 .", "1 left", "the old 2 met 1 , 3 .", "2 sat down")


def count_sentences(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list that grows with every sentence that the models read."""
    calls: list[object] = []
    advance = Engine.advance

    def counted(self: Engine, texts: Any, states: Any) -> Any:
        calls.extend(sentence for text in texts for sentence in text)
        return advance(self, texts, states)

    monkeypatch.setattr(Engine, "advance", counted)
    return calls


def test_surprisals_are_those_of_the_model(reader: Reader) -> None:
    model = TextModel(reader.models.dynamic, reader.vocabulary)

    nats = reader.read(DOCUMENT, unit="nats")
    bits = reader.read(DOCUMENT)

    np.testing.assert_allclose(surprisals(nats), -model.score(DOCUMENT), atol=1e-12)
    np.testing.assert_allclose(np.array(surprisals(bits)) * math.log(2), surprisals(nats))
    assert nats.surprisal == pytest.approx(-model.score(DOCUMENT).sum())


def test_without_a_baseline_the_static_model_is_the_same_one_whose_memory_stays_empty(
    reader: Reader,
) -> None:
    model = reader.models.dynamic
    state, expected = model.initial_state(1), []
    for sentence in DOCUMENT.sentences:
        [scores], after = model.score(model.plan([[VOCABULARY.encode(sentence)]]), state)
        expected += (-scores).tolist()
        state = ReadingState(after.h, after.c, model.initial_state(1).memory)

    reading = reader.read(DOCUMENT, unit="nats")

    np.testing.assert_allclose(static_surprisals(reading), expected, atol=1e-12)
    assert not np.allclose(static_surprisals(reading), surprisals(reading))


@pytest.mark.parametrize("inside", [True, False])
def test_the_static_model_is_the_baseline_given_or_found_in_the_checkpoint(
    tmp_path: Path, *, inside: bool
) -> None:
    folder = checkpoint(tmp_path / "d")
    baseline = checkpoint(tmp_path / ("d/static" if inside else "a"), "baseline", seed=3)
    model = TextModel.load(baseline)
    model.model.double()

    reader = Reader.from_pretrained(folder, None if inside else baseline)

    found = static_surprisals(reader.read(DOCUMENT, unit="nats"))
    np.testing.assert_allclose(found, -model.score(DOCUMENT), atol=1e-12)


def test_a_static_model_must_be_a_baseline(trained: Path) -> None:
    with pytest.raises(ValueError, match="'both', expected a baseline"):
        Reader.from_pretrained(trained, trained)


def test_without_a_path_the_model_that_ships_is_read_and_its_absence_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "SHIPPED", tmp_path / "pretrained")
    with pytest.raises(ValueError, match="no model given, and none comes with this"):
        Reader.from_pretrained()

    checkpoint(tmp_path / "pretrained")

    assert Reader.from_pretrained().read("She left.").sentences


def test_every_token_has_its_words_group_and_occurrence(reader: Reader) -> None:
    reading = reader.read(STORY)

    found = [(t.word, t.entity, t.occurrence, t.group) for t in reading.tokens]
    assert reading.entities == {1: "Ann", 2: "zork"}
    assert found[4:11] == [
        ("Ann", 1, 1, "new"),
        (".", 0, 0, "following"),
        ("<eos>", 0, 0, "other"),
        ("Ann", 1, 2, "reappearing"),
        ("kept", 0, 0, "following"),
        ("a", 0, 0, "other"),
        ("zork", 2, 1, "new"),
    ]
    assert [t.end for t in reading.tokens].count(True) == len(reading.sentences) == 4


def test_an_entity_is_shown_in_the_words_of_each_mention(reader: Reader) -> None:
    document = Document(
        name="d",
        sentences=[["He", "met", "the", "old", "man"], ["the", "old", "man", "'s", "table"]],
        chains=[[Mention(0, 0, 1), Mention(0, 2, 5), Mention(1, 0, 4)]],
    )

    reading = reader.read(document)

    assert [t.word for t in reading.tokens if t.entity] == ["He", "the old man", "the old man's"]
    assert reading.entities == {1: "the old man"}


def test_a_stream_gives_what_reading_at_once_gives(reader: Reader) -> None:
    for text in TALES:
        streamed, read = list(reader.stream(text)), reader.read(text).sentences

        assert len(streamed) == len(read)
        for one, other in zip(streamed, read, strict=True):
            for a, b in zip(one.tokens, other.tokens, strict=True):
                assert a.surprisal == pytest.approx(b.surprisal, abs=1e-9)
                assert (a.word, a.group) == (b.word, b.group)
            for c, d in zip(one.entities, other.entities, strict=True):
                assert c.representation == pytest.approx(d.representation, abs=1e-9)
                assert c.occurrence == d.occurrence


def test_numbers_do_not_depend_on_the_batch(reader: Reader) -> None:
    alone = [reader.read(text) for text in TALES]

    together = list(reader.read_all(TALES * 9))

    assert len(together) == 36
    for number, reading in enumerate(together):
        np.testing.assert_allclose(
            surprisals(reading), surprisals(alone[number % 4]), rtol=0, atol=1e-9
        )


def test_after_an_edit_only_what_follows_is_computed_again(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = list(reader.stream(STORY))
    edited = STORY.replace("He left", "She left")
    fresh = reader.read(edited)
    calls = count_sentences(monkeypatch)

    again = list(reader.stream(edited, known=known))

    assert len(calls) == 2
    reused = [one.tokens is other.tokens for one, other in zip(again, known, strict=True)]
    assert reused == [True, True, False, False]
    for one, other in zip(again, fresh.sentences, strict=True):
        assert [t.surprisal for t in one.tokens] == pytest.approx(
            [t.surprisal for t in other.tokens], abs=1e-9
        )


def test_an_edit_that_makes_an_earlier_word_an_entity_is_computed_from_there(
    reader: Reader,
) -> None:
    known = list(reader.stream("Ann kept a zork . She left ."))
    edited = "Ann kept a zork . She left . the zork sat ."

    again = [t.surprisal for s in reader.stream(edited, known=known) for t in s.tokens]

    assert again == pytest.approx(surprisals(reader.read(edited)), abs=1e-9)


def test_a_stream_reads_no_further_than_it_is_asked(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_sentences(monkeypatch)

    first = next(reader.stream(STORY))

    assert first.index == 0
    assert len(calls) == 1


def test_a_representation_is_the_models_own(reader: Reader) -> None:
    model = reader.models.dynamic
    rows = [[VOCABULARY.encode(sentence) for sentence in DOCUMENT.sentences]]
    _, after = model.score(model.plan(rows), model.initial_state(1))

    trail = reader.read(DOCUMENT).trail(2)

    assert [index for index, _ in trail] == [0, 2, 3]
    assert trail[-1][1].representation == pytest.approx(after.memory[0, 1].tolist(), abs=1e-12)
    assert trail[-1][1].occurrence == 3


def test_nearest_words_are_those_of_highest_cosine(reader: Reader) -> None:
    model = reader.models.dynamic
    words = ["sat", "table", "river", "met", "left", "old", "man", "She", "kept", "rowed"]
    words += ["home", "He", "Old"]
    index, state = reader.read(DOCUMENT).trail(1)[1]
    d = torch.tensor(state.representation, dtype=torch.float64)
    for table, x_e, found in (
        (model.x.weight, model.input_embedding(1, d), state.input_words),
        (model.output.y.weight, model.output_embedding(1, d), state.output_words),
    ):
        vectors = {word: table[VOCABULARY.row(word)] for word in words}
        mean = sum(vectors.values()) / len(words)
        cosines = {
            word: float(torch.cosine_similarity(x_e - mean, vector - mean, dim=0))
            for word, vector in vectors.items()
        }
        expected = sorted(words, key=lambda word: -cosines[word])[:8]

        assert index == 1
        assert [n.word for n in found] == expected
        assert [n.similarity for n in found] == pytest.approx([cosines[w] for w in expected])


def test_gained_and_lost_words_are_what_the_sentence_changed_most(reader: Reader) -> None:
    before, after = (state for _, state in reader.read(DOCUMENT).trail(1)[:2])

    near = {n.word: n.similarity for n in before.input_words}
    now = {n.word: (n.similarity, n.change) for n in after.input_words}

    for word in set(near) & set(now):
        assert now[word][0] - near[word] == pytest.approx(now[word][1], abs=1e-9)
    assert all(n.change > 0 for n in after.gained)
    assert all(n.change < 0 for n in after.lost)
    assert [n.change for n in after.gained] == sorted(n.change for n in after.gained)[::-1]


def test_a_baseline_alone_has_no_representations(tmp_path: Path) -> None:
    reader = Reader.from_pretrained(checkpoint(tmp_path / "a", "baseline"))

    reading = reader.read(DOCUMENT)

    assert surprisals(reading) == static_surprisals(reading)
    state = reading.trail(1)[0][1]
    assert (list(state.representation), list(state.gained), state.change) == ([], [], 0.0)


def test_a_reading_is_plain_json_and_a_data_frame(reader: Reader) -> None:
    reading = reader.read(STORY)

    plain = json.loads(json.dumps(reading.to_dict()))
    frame = reading.to_frame()

    assert plain["entities"] == {"1": "Ann", "2": "zork"}
    assert plain["sentences"][1]["tokens"][0]["word"] == "Ann"
    assert plain["totals"]["all"]["surprisal"] == pytest.approx(reading.surprisal)
    assert list(frame.columns[:4]) == ["document", "sentence", "position", "word"]
    assert frame["surprisal"].sum() == pytest.approx(reading.surprisal)
    groups = {k: v["tokens"] for k, v in plain["totals"].items() if k != "all"}
    assert frame["group"].value_counts().to_dict() == groups


def test_a_data_frame_without_pandas_is_one_sentence(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ValueError, match="needs pandas"):
        reader.read("She left.").to_frame()


def test_a_unit_that_is_neither_bits_nor_nats_is_refused(reader: Reader) -> None:
    with pytest.raises(ValueError, match="unit 'bans', expected bits or nats"):
        reader.read("She left.", unit="bans")  # type: ignore[arg-type]
