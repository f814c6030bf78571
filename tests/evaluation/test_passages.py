"""Passages: hidden words, gaps, and the file formats of the public test sets."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.document import InputError, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.vocabulary import BOS, EOS, UNK, TextSettings, Vocabulary
from dntm.evaluation.passages import (
    Passage,
    gap_passage,
    held_out_documents,
    hide_types,
    passage_of,
    read_definitions,
    read_pairs,
    read_trials,
)

WORDS = tuple("the . a dog barked at cat met and , it ran 's".split())
VOCABULARY = Vocabulary(WORDS, entities=3)
LEXICON = Lexicon(VOCABULARY)


def row(word: str) -> int:
    return VOCABULARY.row(word)


def read(passage: Passage | None) -> list[str]:
    """The passage as text."""
    assert passage is not None
    for sentence in passage.sentences:
        assert (sentence[0], sentence[-1]) == (BOS, EOS)
    return [" ".join(map(VOCABULARY.label, sentence[1:-1])) for sentence in passage.sentences]


def tokens(*sentences: str) -> list[list[Token]]:
    """Numbers are entities."""
    return [[int(w) if w.isdecimal() else w for w in sentence.split()] for sentence in sentences]


def test_entities_are_numbered_by_first_appearance_the_hidden_one_included() -> None:
    passage = passage_of(tokens("7 met 0", "cat 0 7"), 0, row("dog"), VOCABULARY)

    assert read(passage) == ["[1] met [2]", "cat [2] [1]"]
    assert (passage.entity, passage.answer) == (4, row("dog"))
    assert passage.mentions() == [(0, 3), (1, 2)]


def test_a_hidden_word_has_a_row_even_after_more_entities_than_rows() -> None:
    passage = passage_of(tokens("2 3 4 5 1"), 1, UNK, VOCABULARY)

    assert read(passage) == ["[1] [2] <unk> <unk> [3]"]
    assert passage.entity == 5


def hidden(documents: list[list[list[Token]]], words: str, **options: int) -> list[Passage]:
    groups = {"group": np.array([row(word) for word in words.split()])}
    given = {"most": 9, "seed": 0} | options
    return hide_types(documents, groups, VOCABULARY, **given)["group"]


def test_a_word_is_hidden_in_sentences_of_some_length_that_have_it_once() -> None:
    text = tokens("it met a dog .", "the dog ran", "a dog met a dog .", "the dog barked at it")

    (passage,) = hidden([text], "dog cat")

    assert sorted(read(passage)) == ["it met a [1] .", "the [1] barked at it"]
    assert passage.answer == row("dog")


def test_sentences_come_from_as_many_documents_as_possible_and_are_six_at_most() -> None:
    one = tokens(*["the dog ran , ran"] * 20)
    others = [tokens("the dog met it .", "a dog ran at it") for _ in range(4)]

    for seed in range(5):
        (passage,) = hidden([one, *others], "dog", seed=seed)

        first = [sentence for sentence in read(passage) if sentence == "the [1] ran , ran"]
        assert len(passage.sentences) == len(passage.mentions()) == 6
        assert len(first) in {1, 2}
    (short,) = hidden(others[:1], "dog")
    assert len(short.sentences) == 2


def test_types_are_drawn_alike_however_often_they_occur() -> None:
    text = tokens(*["the dog met it ."] * 50, "a cat barked at it")

    drawn = [hidden([text], "dog cat ran", most=1, seed=seed)[0].answer for seed in range(60)]

    assert 15 < drawn.count(row("cat")) < 45
    assert set(drawn) == {row("dog"), row("cat")}
    assert len(hidden([text], "dog cat ran")) == 2


def held_out(path: Path, text: str, lexicon: Lexicon = LEXICON) -> list[list[str]]:
    path.write_text(text)
    found = held_out_documents([path], "blank-line", lexicon)
    return [[" ".join(map(str, sentence)) for sentence in document] for document in found]


def test_names_and_unknown_words_are_entities_of_their_own_document(tmp_path: Path) -> None:
    text = "The dog met Ann Smith. A zork ran, and it barked at Smith.\n\n\u00a0\n\nAnn ran."

    first, second = held_out(tmp_path / "a.txt", text)

    assert first == ["the dog met 1 .", "a 2 ran , and it barked at 1 ."]
    assert second == ["3 ran ."]


def test_a_vocabulary_with_hindsight_has_only_entities_that_recur(tmp_path: Path) -> None:
    settings = TextSettings(lower_case=True, entities_from="repeated")
    lexicon = Lexicon(Vocabulary(WORDS, entities=3, settings=settings))

    ((sentence, _),) = held_out(tmp_path / "a.txt", "A zork met a gork. It met a zork.", lexicon)

    assert sentence == "a 1 met a gork ."


def test_a_gap_is_one_entity_in_any_prose() -> None:
    passage = gap_passage(["The ___'s dog barked. ___ ran, and Bo met it.", "a zork ___"], LEXICON)

    assert read(passage) == ["the [1] 's dog barked .", "[1] ran , and [2] met it .", "a [3] [1]"]
    assert passage is not None
    assert (passage.entity, passage.answer) == (3, UNK)
    assert read(gap_passage(["dog___ ran at _____"], LEXICON)) == ["dog [1] ran at [1]"]
    assert gap_passage(["the dog _ ran"], LEXICON) is None


def test_trials_of_one_word_share_the_beginning_of_their_ids_or_their_probes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trials.txt"
    path.write_text(
        "blicket_1\ta ___ ran @@ the ___\tdog, cat\t3,1.5\n"
        "blicket_2\tthe ___ \tcat\t2\n\n"
        "17\tthe ___\tdog,cat\t1,2\n"
        "18\tthe ___\tdog,cat\t2,2\n"
    )

    found = read_trials(path)

    assert [trial.group for trial in found] == ["blicket", "blicket", "dog,cat", "dog,cat"]
    assert found[0].texts == ["a ___ ran", "the ___"]
    assert found[0].probes == ["dog", "cat"]
    assert found[0].ratings == [3, 1.5]
    path.write_text("dog\t___ barked \n\ncat\tthe ___ ran\n")
    assert read_definitions(path) == [("dog", "___ barked"), ("cat", "the ___ ran")]


@pytest.mark.parametrize("between", ["\t", ",", ", ", " ", "   "])
@pytest.mark.parametrize("header", ["", "Word", "# words\n\nWord"])
def test_pairs_have_any_separator_and_a_header_or_none(
    tmp_path: Path, between: str, header: str
) -> None:
    lines = [("dog", "cat", "7.5", "more"), ("cat", "it", "-1")]
    path = tmp_path / "pairs.csv"
    head = between.join((header, "other", "similarity")) + "\n" if header else ""
    path.write_text(head + "".join(f"{between.join(line)}  # said\n" for line in lines))

    assert read_pairs(path) == [("dog", "cat", 7.5), ("cat", "it", -1.0)]


@pytest.mark.parametrize(
    ("reader", "text", "problem"),
    [
        (read_trials, "1\ta ___\tdog\t1\n1\ta ___\tdog,cat", ", line 2: 3 columns, expected 4"),
        (read_trials, "1\ta ___\tdog,cat\t1", ", line 1: 2 probes and 1 ratings"),
        (read_trials, "1\ta ___\tdog,\t1,2", ", line 1: 2 probes and 2 ratings, expected pairs"),
        (read_trials, "1\ta ___\tdog\tmuch", ", line 1: found 'much', expected a number"),
        (read_trials, "1\ta ___\tdog\tnan", ", line 1: found 'nan', expected a number"),
        (read_definitions, "dog ___ barked\n", ", line 1: 1 columns, expected 2"),
        (read_definitions, "dog\ta\tb\n", ", line 1: 3 columns"),
        (read_definitions, "\n", ": empty file"),
        (read_pairs, "a b 1\na b\n", ", line 2: found 'a b', expected two words and a number"),
        (read_pairs, "a b 1\na b c\n", ", line 2: found 'c', expected a number"),
        (read_pairs, "a\tb\tc\na\tb\td\n", ", line 2: found 'd', expected a number"),
        (read_pairs, "a,,1\n", ", line 1: found 'a,,1'"),
        (read_pairs, "one two three\n", ": no word pair"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(
    tmp_path: Path, reader: Callable[[Path], object], text: str, problem: str
) -> None:
    (tmp_path / "given.txt").write_text(text)

    with pytest.raises(InputError, match=f"given.txt{problem}"):
        reader(tmp_path / "given.txt")
