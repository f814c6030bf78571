import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dntm.corpus.document import Document, Mention
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import records_of
from dntm.model.scorer import Scorer
from dntm.reader.reader import Reader
from dntm.reader.reading import COLUMNS
from dntm.reader.text import as_text
from tests.reader.small import DOCUMENT, PREPARED, STORY, TALES, anonymized, surprisals


def test_surprisals_equal_those_of_the_model(any_reader: Reader) -> None:
    scorer = Scorer(any_reader.models.dynamic, any_reader.vocabulary)
    [expected] = scorer.score([DOCUMENT])

    nats = any_reader.read(PREPARED, unit="nats")
    bits = any_reader.read(PREPARED)

    np.testing.assert_allclose(surprisals(nats), -expected, atol=1e-12)
    np.testing.assert_allclose(np.array(surprisals(bits)) * math.log(2), surprisals(nats))
    assert nats.surprisal == pytest.approx(-expected.sum())


def test_every_token_has_its_words_group_and_occurrence(reader: Reader) -> None:
    reading = reader.read(STORY)

    found = [(t.word, t.entity, t.occurrence, t.group) for t in reading.tokens]
    assert reading.entities == {1: "Ann", 2: "zork"}
    assert found[4:11] == [
        ("Ann", 1, 1, "first_mentions"),
        (".", 0, 0, "following"),
        ("<eos>", 0, 0, "non_entities"),
        ("Ann", 1, 2, "reappearing"),
        ("kept", 0, 0, "following"),
        ("a", 0, 0, "non_entities"),
        ("zork", 2, 1, "first_mentions"),
    ]
    assert [t.end for t in reading.tokens].count(True) == len(reading.sentences) == 4


def test_every_word_without_a_row_is_unknown_whether_it_is_an_entity_or_not(reader: Reader) -> None:
    reading = reader.read("He met Ann Old. He sagged, met a zork, tables in 1987.")

    unknown = [token.word for token in reading.tokens if token.unknown]

    assert unknown == ["Ann Old", "sagged", "zork", "tables", "in", "1987"]
    assert [token.word for token in reading.tokens if token.entity] == ["Ann Old", "zork"]


def test_the_totals_of_the_groups_are_those_of_table_2(reader: Reader) -> None:
    document = anonymized("the 1 2 met", "1 1 left", "2 3 1 .")

    totals = reader.read(as_text(document), unit="nats").totals()

    scorer = Scorer(reader.models.dynamic, reader.vocabulary)
    expected = score_groups(records_of(scorer, [document]))
    assert expected["following"]["tokens"] == 7
    assert list(totals) == list(expected)
    for group, score in expected.items():
        assert totals[group]["tokens"] == score["tokens"]
        assert totals[group]["surprisal"] == pytest.approx(score["nats"])


def test_an_entity_is_shown_in_the_words_of_each_mention(reader: Reader) -> None:
    document = Document(
        name="d",
        sentences=[["He", "met", "the", "old", "man"], ["the", "old", "man", "'s", "table"]],
        chains=[[Mention(0, 0, 1), Mention(0, 2, 5), Mention(1, 0, 4)]],
    )

    reading = reader.read(document)

    assert [t.word for t in reading.tokens if t.entity] == ["He", "the old man", "the old man's"]
    assert reading.entities == {1: "the old man"}


@pytest.mark.usefixtures("short_windows")
def test_numbers_do_not_depend_on_the_batch(any_reader: Reader) -> None:
    alone = [any_reader.read(text) for text in TALES]

    together = list(any_reader.read_all(TALES * 5))

    assert len(together) == 20
    for number, reading in enumerate(together):
        one = alone[number % 4]
        for static in (False, True):
            found, expected = (surprisals(r, static=static) for r in (reading, one))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_prepared_text_can_replace_a_text(reader: Reader) -> None:
    text = reader.prepare(STORY)

    assert surprisals(reader.read(text)) == surprisals(reader.read(STORY))
    assert reader.predictions(text, "Ann") == reader.predictions(STORY, "Ann")
    assert reader.fill("[] left", text) == reader.fill("[] left", STORY)
    assert reader.continue_text(text) == reader.continue_text(STORY)
    assert reader.token_score(text) == reader.token_score([STORY])
    with pytest.raises(ValueError, match="is already prepared, expected no entities, not 'names'"):
        reader.read(text, entities="names")


def test_a_reading_is_plain_json_and_a_data_frame(reader: Reader) -> None:
    reading = reader.read(STORY)

    plain = json.loads(json.dumps(reading.to_dict()))
    frame = reading.to_frame()

    assert plain["entities"] == {"1": "Ann", "2": "zork"}
    assert plain["sentences"][1]["tokens"][0]["word"] == "Ann"
    assert plain["totals"]["all"]["surprisal"] == pytest.approx(reading.surprisal)
    assert list(frame.columns) == list(COLUMNS)
    assert frame["static_surprisal"].sum() == pytest.approx(reading.static_surprisal)
    assert plain["sentences"][0]["tokens"][0].keys() >= set(COLUMNS[-4:])
    assert frame["surprisal"].sum() == pytest.approx(reading.surprisal)
    assert (frame["group"] == "reappearing").sum() == plain["totals"]["reappearing"]["tokens"]


def test_an_unknown_unit_is_refused(reader: Reader) -> None:
    asked: Any = {"unit": "bans"}

    asks: tuple[Callable[[], object], ...] = (
        lambda: reader.read("She left.", **asked),
        lambda: reader.read_all(["She left."], **asked),
        lambda: reader.stream("She left.", **asked),
        lambda: reader.fill("She [].", **asked),
    )
    for ask in asks:
        with pytest.raises(ValueError, match="unit 'bans', expected bits or nats"):
            ask()
