"""q, r and p are distributions over strings: exhaustive sums over a tiny alphabet."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entity_slots import NOBODY, Eviction, SentenceStrings
from dntm.corpus.vocabulary import BOS, EOS, Vocabulary
from dntm.model.baselines.ngram import NGram
from dntm.model.language_model import RowScores
from dntm.model.spelling import Forms, FormShares, Spelling, Words
from dntm.model.strings import StringReader

COUNTS = {"a": 3, "b a": 1, "ab": 2, "a b": 2, "bb": 1}
SHARES = [FormShares(0.1 * n, 0.5 - 0.1 * n, 0.3, 0.2) for n in range(1, 6)]
SPELLING = Spelling(COUNTS, 0.4, SHARES)
LONGEST = 4
"""The largest number of characters in an enumerated string."""
OUTSIDE = 0x110000 - 3
"""Code points outside the alphabet, which is a, b and the blank; z stands for all of them."""
VOCABULARY = Vocabulary(("a", "bb"), entities=3)
ROWS = len(VOCABULARY)
CHARACTERS = NGram(
    np.array([r for s in COUNTS for r in (1, *(3 + "ab ".index(c) for c in s), 2)]),
    Vocabulary(("a", "b", " "), entities=0),
    6,
)


def next_characters(beginning: str) -> dict[str, float]:
    """C as a plain loop: the probability of each next character, "" for the end."""
    rows = {"z": 0, "": 2, "a": 3, "b": 4, " ": 5}
    begun = [1, *(rows[c] for c in beginning)]
    found = {c: math.exp(CHARACTERS.score_sentences([[*begun, r]])[-1]) for c, r in rows.items()}
    if not beginning or beginning[-1] == " ":  # a word has at least one character
        del found[" "], found[""]
    return {c: p / sum(found.values()) for c, p in found.items()}


def all_strings(beginning: str = "", p: float = 1.0) -> Iterator[tuple[str, float, bool]]:
    """Every string of at most LONGEST characters, complete or truncated, and its C."""
    for character, share in next_characters(beginning).items():
        if character == "":
            yield beginning, p * share, True
        elif len(beginning) == LONGEST:
            yield beginning + character, p * share, False
        else:
            yield from all_strings(beginning + character, p * share)


STRINGS = list(all_strings())


def total(probability: Callable[[Words], float], rest: float) -> float:
    """The sum over all strings; `rest` is the share of q in the mass beyond LONGEST."""
    found = 0.0
    for string, p, whole in STRINGS:
        same = OUTSIDE ** string.count("z")
        found += probability(tuple(string.split(" "))) * same if whole else rest * 0.6 * p
    return found


def test_characters_have_the_probabilities_of_the_plain_loop() -> None:
    wanted = [math.log(p) - math.log(OUTSIDE) * s.count("z") for s, p, whole in STRINGS if whole]
    found = SPELLING._spell([tuple(s.split(" ")) for s, _, whole in STRINGS if whole])

    assert [spelled.whole for spelled in found] == pytest.approx(wanted, abs=1e-9)


def test_q_sums_to_one() -> None:
    assert total(lambda words: math.exp(SPELLING.q([words])[0].whole), 1) == pytest.approx(1)


@pytest.mark.parametrize("words", [("a",), ("b",), ("b", "a"), ("z",)])
def test_a_beginning_is_the_whole_string_or_one_more_word(words: Words) -> None:
    [spelled] = SPELLING.q([words])
    found = math.exp(spelled.whole)
    for string, p, whole in STRINGS:
        longer = tuple(string.split(" "))
        if longer[: len(words)] == words and len(longer) > len(words):
            q = math.exp(SPELLING.q([longer])[0].whole) * OUTSIDE ** string.count("z")
            found += (q if whole else 0.6 * p) / OUTSIDE ** words.count("z")

    assert math.exp(spelled.begins[-1]) == pytest.approx(found)


@pytest.mark.parametrize("mentions", [1, 2, 4, 8, 20])
def test_the_forms_of_an_entity_and_q_sum_to_one(mentions: int) -> None:
    forms, strings = Forms(), (("b", "a"), ("a",), ("bb", "ab", "a"))
    for n in range(mentions):
        forms.add(strings[n % 3])
    some = {*strings, *((word,) for word in ("b", "a", "bb", "ab"))}

    sums = np.sum([forms.parts(string)[-1] for string in some], axis=0)

    assert sums.tolist() == pytest.approx([1, 1, 1])
    assert forms.parts(("b", "a"))[0][2] == pytest.approx(1 / (4 if mentions > 2 else 2))


def scores(tokens: int, seed: int) -> RowScores:
    """A distribution over all rows at each token; the last two rows are the words."""
    p = np.random.default_rng(seed).dirichlet(np.ones(ROWS), tokens)
    return RowScores(np.log(p[:, :-2]), np.log(p[:, -2]))


def sentence(*tokens: tuple[int, str], evictions: tuple[Eviction, ...] = ()) -> SentenceStrings:
    """Mentions (entity, string) and words (0, string)."""
    strings = [tuple(string.split(" ")) for _, string in tokens]
    return SentenceStrings(
        tokens=[entity or string for entity, string in tokens],
        strings=strings,
        rows=[BOS, *(VOCABULARY.row((e - 1) % 3 + 1 if e else s) for e, s in tokens), EOS],
        words=[*(VOCABULARY.row(words[0]) for words in strings), EOS],
        evictions=evictions,
    )


HISTORY = {
    "nothing is known": sentence((0, "a")),
    "some slots are free": sentence((1, "b a"), (0, "a"), (2, "a"), (1, "ab")),
    "a label has no slot": sentence((1, "[1]"))._replace(rows=[BOS, 0, EOS]),
    "all slots are taken": sentence((1, "b a"), (2, "a"), (3, "ab b"), (1, "a"), (1, "b a")),
    "an entity is evicted": sentence(
        (1, "a"), (2, "a b"), (3, "b"), (4, "ab"), evictions=(Eviction(3, 1, NOBODY, 1),)
    ),
}


@pytest.mark.parametrize("history", HISTORY.values(), ids=HISTORY.keys())
def test_p_sums_to_one(history: SentenceStrings) -> None:
    before = StringReader(SPELLING, 3)
    before.read(history, [scores(len(history.words), 1)])
    rows = np.random.default_rng(2).dirichlet(np.ones(ROWS))
    end = np.full(ROWS, 1e-12)
    end[EOS] = 1

    def probability(words: Words) -> float:
        row = VOCABULARY.row(words[0])
        word = [rows[row] if row else 1, 1]
        given = RowScores(np.log([rows[:-2], end[:-2]]), np.log(word))
        one = sentence((0, words[0]))._replace(strings=[words])
        [[token, [eos]]] = before.copy().read(one, [given])
        first = before._ends[0]
        return math.exp(-sum(token) - eos + first)

    spelled = float(rows[:-2] @ before._weight)
    assert total(probability, spelled) + rows[EOS] == pytest.approx(1)


@pytest.mark.parametrize(("entity", "form"), [(1, "b a"), (2, "b")])
def test_an_entity_keeps_its_forms_when_another_one_has_the_same_word(
    entity: int, form: str
) -> None:
    reader = StringReader(SPELLING, 3)
    label_first = (3, "[1] b")  # a name, not a label
    reader.read(sentence((1, "b a"), (2, "b"), label_first), [scores(4, 1)])
    certain = np.full((2, ROWS - 2), -30.0)
    certain[:, VOCABULARY.row(entity)] = 0
    a, b, c, d = SPELLING.shares_after(1)

    [[token, end]] = reader.read(sentence((0, form)), [RowScores(certain, np.full(2, -30.0))])

    [spelled] = SPELLING.q([(*form.split(),)])
    p = a + b + c * (form == "b") + d * math.exp(spelled.whole)
    assert sum(token) + end[0] + certain[0, EOS] == pytest.approx(-math.log(p), abs=1e-9)


class Counted(str):
    """A word that counts how often it is looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        Counted.lookups += 1
        return super().__hash__()


def test_the_work_is_linear_in_the_number_of_forms() -> None:
    def lookups(mentions: int) -> int:
        reader, Counted.lookups = StringReader(Spelling(COUNTS, 0.4, SHARES), 3), 0
        for n in range(mentions):
            mention = sentence((1, "b"), (0, "a"))
            strings = [(Counted(f"b{n}"), Counted("a")), (Counted("a"),)]
            reader.read(mention._replace(strings=strings), [scores(3, n)])
        return Counted.lookups

    assert lookups(200) < 2.2 * lookups(100)


def test_the_weights_of_a_text_are_learned(tmp_path: Path) -> None:
    documents = [
        AnonymizedDocument(
            name=str(n),
            sentences=[[1, "saw", 2, "."], [1, "left", 2, "."]],
            surfaces=[["Ann", "Brandt"], [f"Bo{n % 7}"], ["Brandt"], [f"Bo{n % 7}"]],
        )
        for n in range(20)
    ]
    vocabulary = Vocabulary(("saw", "."), entities=3)
    spelling = Spelling.fit(documents, documents[:5], vocabulary)
    spelling.save(tmp_path)
    loaded = Spelling.load(tmp_path)

    assert spelling.counts["left"] == 20
    assert spelling.counts["ann brandt"] == 20
    assert "brandt" not in spelling.counts
    assert spelling.shares[0].word > 0.3
    assert spelling.shares[0].new < 0.1
    assert loaded is not None
    assert loaded.q([("ann", "bo9")]) == spelling.q([("ann", "bo9")])
    assert Spelling.load(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    "text", ["{}", "[1]", '{"format_version": 2}', '{"format_version": 1, "known": 2}']
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "spelling.json").write_text(text)
    with pytest.raises(ValueError, match=r"spelling\.json"):
        Spelling.load(tmp_path)
