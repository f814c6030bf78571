"""Surprisals of strings: every word has one, and it depends only on the preceding text."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dntm.corpus.document import Document
from dntm.model.config import Extension
from dntm.model.spelling import MENTIONS, FormShares, Spelling
from dntm.reader.reader import Reader
from tests.reader.small import LOWER, checkpoint

EXTENSIONS: tuple[Extension, ...] = ("entity-residual", "salience", "unseen-pooling", "pointer")
SHARES = [FormShares(0.3, 0.3, 0.2, 0.2)] * (1 + len(MENTIONS))
SPELLING = Spelling({"ann": 5, "ann brandt": 3, "bo": 2, "zork": 1, "old man": 1}, 0.6, SHARES)
WORDS = "Ann Bo Brandt Zork zork the old man met left Roswell Festival gelid , . ? Ann's".split()


@pytest.fixture(scope="module")
def spelling_reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = checkpoint(tmp_path_factory.mktemp("m") / "d", vocabulary=LOWER, extensions=EXTENSIONS)
    SPELLING.save(folder)
    return Reader.from_pretrained(folder)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=24), st.data())
def test_later_words_change_no_earlier_surprisal(
    spelling_reader: Reader, words: list[str], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(words) - 1))
    other = [*words[:cut], *data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))]
    one, two = (
        spelling_reader.read(" ".join(["The", *text])).to_frame(words=True)
        for text in (words, other)
    )

    for column in ("surprisal", "static_surprisal"):
        assert [*one[column][: cut + 1]] == pytest.approx([*two[column][: cut + 1]], abs=1e-9)


def test_every_word_of_a_name_has_its_own_surprisal(spelling_reader: Reader) -> None:
    reading = spelling_reader.read("The man met Ann Brandt. He left Ann Brandt.")
    words = reading.to_frame(words=True)
    tokens = reading.to_frame()

    assert (words["surprisal"] > 0).all()
    assert words["surprisal"].sum() + words["end_surprisal"].sum() == pytest.approx(
        reading.surprisal
    )
    for model in ("", "static_"):
        parts = tokens[f"{model}entity_surprisal"] + tokens[f"{model}spelling_surprisal"]
        assert [*parts] == pytest.approx([*tokens[f"{model}surprisal"]])
    assert reading.bits_per_character == pytest.approx(reading.surprisal / 44)


def test_names_have_different_surprisals_and_the_same_entity_surprisal(
    spelling_reader: Reader,
) -> None:
    known, odd = (
        spelling_reader.read(f"The man met {name}.").tokens[3] for name in ("Ann", "Zblorg")
    )

    assert known.entity_surprisal == odd.entity_surprisal
    assert odd.surprisal > known.surprisal + 10


def test_invisible_characters_and_decomposed_accents_change_no_surprisal(
    spelling_reader: Reader,
) -> None:
    plain = spelling_reader.read("The old man met Zo\xeb. He left Zo\xeb.")
    odd = spelling_reader.read("The\u200b o\xadld man met Zoe\u0308. He left Zo\xeb.")

    surprisals = [[token.surprisal for token in reading.tokens] for reading in (odd, plain)]
    assert surprisals[0] == pytest.approx(surprisals[1])


def test_a_stream_has_the_surprisals_of_the_whole_text(spelling_reader: Reader) -> None:
    text = "The man met Ann Brandt. Ann left Bo. Bo met Ann Brandt. He left Zork, Roswell and Ann."
    whole = spelling_reader.read(text)
    streamed = list(spelling_reader.stream(text))
    resumed = list(spelling_reader.stream(text, known=streamed[:2]))

    for sentences in (streamed, resumed):
        found = [token.surprisal for sentence in sentences for token in sentence.tokens]
        assert found == pytest.approx([token.surprisal for token in whole.tokens], abs=1e-9)


def test_a_model_without_spelling_reads_rows(trained: Path) -> None:
    reading = Reader.from_pretrained(trained).read("The old man met Ann Brandt.")

    for token in reading.tokens:
        assert token.surprisal == token.entity_surprisal
        assert math.isfinite(token.surprisal)


def test_a_label_costs_what_its_row_costs(spelling_reader: Reader) -> None:
    reading = spelling_reader.read("[1] met [2]. [1] left.", entities="inline")

    labels = [token for token in reading.tokens if token.entity]
    assert [token.word for token in labels] == ["[1]", "[2]", "[1]"]
    for token in labels:
        assert token.surprisal == pytest.approx(token.entity_surprisal, abs=0.01)


def test_a_blank_inside_a_word_ends_no_word(spelling_reader: Reader) -> None:
    document = Document(name="x", sentences=[["he", "met", "10 000", ",", "."]])

    costs = [token.surprisal for token in spelling_reader.read(document).tokens]

    assert costs[2] > 10 > max(costs[3:])
