"""Passages: hidden words, gaps, and the file formats of the public test sets."""

from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.document import AnonymizedDocument, InputError, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.vocabulary import BOS, EOS, UNK, TextSettings, Vocabulary
from dntm.evaluation.passages import (
    Passage,
    gap_passage,
    hide_words,
    parts_of,
    passage_of,
    read_definitions,
    read_pairs,
    read_trials,
    sampled,
    text_blocks,
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


def document(*sentences: str) -> AnonymizedDocument:
    """Numbers are entities."""
    tokens: list[list[Token]] = [
        [int(w) if w.isdecimal() else w for w in sentence.split()] for sentence in sentences
    ]
    return AnonymizedDocument(name="d", sentences=tokens)


def test_entities_are_numbered_by_first_appearance_hidden_words_included() -> None:
    passage = passage_of(document("7 met dog", "cat dog 7"), {"dog": row("dog")}, VOCABULARY)

    assert read(passage) == ["[1] met [2]", "cat [2] [1]"]
    assert passage.hidden == {4: row("dog")}
    assert passage.mentions() == [(0, 3, 4), (1, 2, 4)]


def test_a_hidden_word_has_a_row_even_after_more_entities_than_rows() -> None:
    passage = passage_of(document("2 3 4 5 1"), {1: UNK}, VOCABULARY)

    assert read(passage) == ["[1] [2] <unk> <unk> [3]"]
    assert passage.hidden == {5: UNK}


def test_only_the_given_words_that_recur_are_hidden() -> None:
    able = np.zeros(len(VOCABULARY), dtype=bool)
    able[[row("dog"), row("cat"), row("barked")]] = True
    text = document("the dog met the cat and the dog", "barked")

    (passage,) = hide_words([text], able, VOCABULARY, most=5, seed=0)

    assert read(passage) == ["the [1] met the cat and the [1]", "barked"]


def test_no_more_words_are_hidden_than_allowed_or_than_rows_are_free() -> None:
    able = np.ones(len(VOCABULARY), dtype=bool)

    def hidden(entities: str, most: int) -> int:
        text = document(f"{entities} {'dog cat barked met ran ' * 2}")
        passages = hide_words([text], able, VOCABULARY, most=most, seed=0)
        return sum(len(passage.hidden) for passage in passages)

    assert hidden("", 2) == 2
    assert hidden("", 5) == 3
    assert hidden("1 2", 5) == 1
    assert hidden("1 2 3", 5) == 0


def parts(path: Path, text: str, lexicon: Lexicon = LEXICON) -> list[list[str]]:
    path.write_text(text)
    found = [
        part
        for block in text_blocks([path], "blank-line")
        for part in parts_of(block, "blank-line", lexicon)
    ]
    return [[" ".join(map(str, sentence)) for sentence in part.sentences] for part in found]


def test_names_and_unknown_words_are_entities_from_the_first_mention(tmp_path: Path) -> None:
    text = "The dog met Ann Smith. A zork ran, and it barked at Smith.\n\n\u00a0\n\nThe cat ran."

    first, second = parts(tmp_path / "a.txt", text)

    assert first == ["the dog met 1 .", "a 2 ran , and it barked at 1 ."]
    assert second == ["the cat ran ."]


def test_a_vocabulary_with_hindsight_has_only_entities_that_recur(tmp_path: Path) -> None:
    settings = TextSettings(lower_case=True, entities_from="repeated")
    lexicon = Lexicon(Vocabulary(WORDS, entities=3, settings=settings))

    ((sentence, _),) = parts(tmp_path / "a.txt", "A zork met a gork. It met a zork.", lexicon)

    assert sentence == "a 1 met a <unk> ."


def test_documents_are_cut_into_near_equal_parts_of_24_sentences(tmp_path: Path) -> None:
    found = parts(tmp_path / "a.txt", "The dog ran. " * 50)

    assert [len(part) for part in found] == [17, 16, 17]


def test_a_sample_is_some_whole_documents_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n\n".join(f"the dog {n:02}" for n in range(50)))
    blocks = list(text_blocks([tmp_path / "a.txt"], "blank-line"))

    chosen = sampled(blocks, 100, seed=1)

    lines = [block.first_line for block in chosen]
    assert len(chosen) == 10
    assert lines == sorted(lines)
    assert lines != [block.first_line for block in sampled(blocks, 100, seed=2)]
    assert sampled(blocks, 10_000, seed=1) == blocks


def test_a_gap_is_one_entity_in_any_prose() -> None:
    passage = gap_passage(["The ___'s dog barked. ___ ran, and Bo met it.", "a zork ___"], LEXICON)

    assert read(passage) == ["the [1] 's dog barked .", "[1] ran , and [2] met it .", "a [3] [1]"]
    assert passage is not None
    assert passage.hidden == {3: UNK}


def test_a_gap_may_be_glued_to_a_word_or_be_longer() -> None:
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


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1\ta ___\tdog,cat", "3 columns, expected 4"),
        ("1\ta ___\tdog,cat\t1", "2 probes and 1 ratings"),
        ("1\ta ___\tdog,\t1,2", "2 probes and 2 ratings, expected pairs"),
        ("1\ta ___\tdog,cat\t1,much", "found 'much', expected a number"),
        ("1\ta ___\tdog,cat\t1,nan", "found 'nan', expected a number"),
    ],
)
def test_a_malformed_trial_is_named_with_its_line(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "trials.txt"
    path.write_text(f"1\ta ___\tdog,cat\t1,2\n{line}\n")

    with pytest.raises(InputError, match=f"trials.txt, line 2: {problem}"):
        read_trials(path)


def test_definitions_are_a_word_and_what_is_said_of_it(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text("dog\t___ barked \n\ncat\tthe ___ ran\n")

    assert read_definitions(path) == [("dog", "___ barked"), ("cat", "the ___ ran")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("dog ___ barked\n", ", line 1: 1 columns, expected 2"),
        ("dog\ta\tb\n", ", line 1: 3 columns"),
        ("\n", ": empty file"),
    ],
)
def test_a_malformed_definition_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "d.txt"
    path.write_text(text)

    with pytest.raises(InputError, match=f"d.txt{problem}"):
        read_definitions(path)


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
    ("text", "problem"),
    [
        ("a b 1\na b\n", ", line 2: found 'a b', expected two words and a number"),
        ("a b 1\na b c\n", ", line 2: found 'c', expected a number"),
        ("a\tb\tc\na\tb\td\n", ", line 2: found 'd', expected a number"),
        ("a,,1\n", ", line 1: found 'a,,1'"),
        ("one two three\n", ": no word pair"),
    ],
)
def test_a_malformed_pair_is_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(text)

    with pytest.raises(InputError, match=f"pairs.txt{problem}"):
        read_pairs(path)
