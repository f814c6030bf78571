"""Anonymising: mentions become entity numbers (Section 4).

One way for all texts, in one direction:

    document -> chains that count -> no overlap -> names and unknown words -> parts -> numbers

Where mentions nest, the innermost (or outermost) is kept, so that no overlap survives; the words of
a mention that was not kept stay as they are. Until the end an entity is a key, any integer; then,
once, those of each document or part are numbered by first appearance, and each mention becomes a
single token.

Departure: the paper does not say which of two nested mentions it kept.

Names and unknown words with hindsight, the paper's setting: only what comes again counts.

`names`: maximal runs of capitalised words; the same string is the same entity. The first word of
a sentence is capitalised anyway, so there it counts only when the document also writes it with a
capital inside a sentence and never without one. A headline, all of whose words but the smallest
(of, the, ...) are capitalised, says nothing and is passed over.

`unknown`: words outside the vocabulary that come at least twice; the same word is the same entity.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from dntm.corpus.document import AnonymizedDocument, Document, Mention, Token
from dntm.corpus.entities import LeftToRight, Lexicon
from dntm.settings import settle

Nesting = Literal["innermost", "outermost"]
From = Literal["first", "repeated"]
"""From when on a name or an unknown word is an entity."""


@dataclass(frozen=True, kw_only=True)
class AnonymizeConfig:
    """How chains become entities."""

    nested: Nesting = "innermost"
    """Which of two nested mentions becomes an entity token."""
    named_entities: bool = False
    """Give named entities outside every chain an identifier too, the same string the same one."""
    keep_single: bool = False
    """Keep chains with a single mention in the whole document."""
    entities_from: From = "first"
    """A name or an unknown word is an entity from its first mention on, as a reader knows it who
    goes from left to right, or only if it is repeated later (the paper's setting)."""
    lower_case: bool = False
    """Write all words in lower case; mentions keep their spelling beside the text."""

    def __post_init__(self) -> None:
        settle(self)


class Mark(NamedTuple):
    """A mention inside its sentence: words `start` to `end` (excluded) and the entity's key."""

    start: int
    end: int
    key: int


class Piece(NamedTuple):
    """A token as a model reads it, and the words of the sentence that it stands for."""

    token: Token
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """A text whose mentions are known and do not overlap."""

    name: str
    sentences: Sequence[Sequence[str]]
    marks: Sequence[Sequence[Mark]]
    """Of each sentence, from left to right."""

    @property
    def entities(self) -> int:
        """How many different ones."""
        return len({mark.key for marks in self.marks for mark in marks})

    def words(self) -> Iterator[str]:
        """The words outside all mentions."""
        for sentence, marks in zip(self.sentences, self.marks, strict=True):
            place = 0
            for mark in marks:
                yield from sentence[place : mark.start]
                place = mark.end
            yield from sentence[place:]

    def pieces(self, *, lower_case: bool) -> list[list[Piece]]:
        """The tokens of each sentence, entities numbered by first appearance."""
        numbers: dict[int, int] = {}
        found: list[list[Piece]] = []
        for sentence, marks in zip(self.sentences, self.marks, strict=True):
            words = [word.lower() for word in sentence] if lower_case else sentence
            found.append([])
            place = 0
            for start, end, key in (*marks, Mark(len(words), len(words), 0)):
                found[-1] += [Piece(words[w], w, w + 1) for w in range(place, start)]
                if end > start:
                    number = numbers.setdefault(key, len(numbers) + 1)
                    found[-1].append(Piece(number, start, end))
                place = end
        return found

    def anonymized(self, *, lower_case: bool) -> AnonymizedDocument:
        """The text in which each mention has become its entity's number."""
        pieces = self.pieces(lower_case=lower_case)
        return AnonymizedDocument(
            name=self.name,
            sentences=[[piece.token for piece in sentence] for sentence in pieces],
            surfaces=[
                words[piece.start : piece.end]
                for words, sentence in zip(self.sentences, pieces, strict=True)
                for piece in sentence
                if isinstance(piece.token, int)
            ],
        )

    def cut(self, longest: int | None) -> Iterator["Marked"]:
        """Near-equal parts of at most `longest` sentences.

        With n sentences there are k = ceil(n / longest) parts, part i from round(i n / k).
        """
        count = len(self.sentences)
        parts = 1 if longest is None else -(-count // longest)
        if parts <= 1:
            yield self
            return
        bounds = [round(i * count / parts) for i in range(parts + 1)]
        for number, (start, end) in enumerate(pairwise(bounds), start=1):
            yield Marked(
                name=f"{self.name}/{number}",
                sentences=self.sentences[start:end],
                marks=self.marks[start:end],
            )

    def without_single(self) -> "Marked":
        """Give entities with a single mention their words back."""
        counts = Counter(mark.key for marks in self.marks for mark in marks)
        kept = [[mark for mark in marks if counts[mark.key] > 1] for marks in self.marks]
        return replace(self, marks=kept)


def mark_chains(document: Document, config: AnonymizeConfig) -> Marked:
    """The mentions of the chains that count, none of which overlaps another."""
    chains = [c for c in document.chains if config.keep_single or len(set(c)) > 1]
    if config.named_entities:
        chains += _named_outside_chains(document)
    kept = _without_overlap(chains, config.nested)
    return Marked(
        name=f"{document.name}:{document.part}" if document.part else document.name,
        sentences=document.sentences,
        marks=[kept.get(s, []) for s in range(len(document.sentences))],
    )


def mark_words(marked: Marked, kinds: Collection[str], lexicon: Lexicon, since: From) -> Marked:
    """The text with its names and unknown words; with hindsight names are marked already."""
    if not {"names", "unknown"}.intersection(kinds):
        return marked
    if since == "repeated":
        found = repeated_unknown_words(marked.words(), lexicon) if "unknown" in kinds else {}
        return replace(marked, marks=list(_with_words(marked, found, lexicon)))
    first = 1 + max((mark.key for marks in marked.marks for mark in marks), default=-1)
    reader = LeftToRight(lexicon, kinds, first)
    added = []
    for words, marks in zip(marked.sentences, marked.marks, strict=True):
        taken = {w for mark in marks for w in range(mark.start, mark.end)}
        new = [Mark(found.start, found.end, found.entity) for found in reader.read(words, taken)]
        added.append(sorted([*marks, *new]) if marks else new)
    return replace(marked, marks=added)


def mark(
    document: Document, kinds: Collection[str], lexicon: Lexicon, config: AnonymizeConfig
) -> Marked:
    """All of it: the entities of a text whose vocabulary is known."""
    return mark_words(first_marks(document, kinds, config), kinds, lexicon, config.entities_from)


def first_marks(document: Document, kinds: Collection[str], config: AnonymizeConfig) -> Marked:
    """What can be marked before the vocabulary is known: chains, and with hindsight names."""
    if "names" in kinds and config.entities_from == "repeated":
        document = replace(document, chains=[*document.chains, *find_names(document)])
    return mark_chains(document, config)


def _with_words(marked: Marked, keys: dict[str, int], lexicon: Lexicon) -> Iterator[list[Mark]]:
    """The marks of each sentence and those of the words that have a key."""
    first = 1 + max((mark.key for marks in marked.marks for mark in marks), default=-1)
    for words, marks in zip(marked.sentences, marked.marks, strict=True):
        found: list[Mark] = []
        place = 0
        for mark in (*marks, Mark(len(words), len(words), 0)):
            spelled = ((w, lexicon.spelled(words[w])) for w in range(place, mark.start))
            found += [Mark(w, w + 1, first + keys[word]) for w, word in spelled if word in keys]
            if mark.end > mark.start:
                found.append(mark)
            place = mark.end
        yield found


def _named_outside_chains(document: Document) -> list[list[Mention]]:
    taken = covered(mention for chain in document.chains for mention in chain)
    by_string: dict[tuple[str, ...], list[Mention]] = {}
    for name in document.named_entities:
        if not overlaps(name, taken):
            words = tuple(document.sentences[name.sentence][name.start : name.end])
            by_string.setdefault(words, []).append(name)
    return list(by_string.values())


def _without_overlap(chains: Iterable[Sequence[Mention]], nested: Nesting) -> dict[int, list[Mark]]:
    """The mentions kept in each sentence, left to right, with the index of their chain."""
    sign = 1 if nested == "innermost" else -1
    ranked = sorted(
        ((mention, index) for index, chain in enumerate(chains) for mention in chain),
        key=lambda item: (sign * (item[0].end - item[0].start), item[0].start, item[1]),
    )
    kept: dict[int, list[Mark]] = {}
    for (sentence, start, end), index in ranked:
        marks = kept.setdefault(sentence, [])
        place = bisect_right(marks, start, key=lambda mark: mark.start)
        free = place == 0 or marks[place - 1].end <= start
        if free and (place == len(marks) or marks[place].start >= end):
            marks.insert(place, Mark(start, end, index))
    return kept


_NEVER_NAMES = frozenset({"I"})
_SMALL_IN_HEADLINES = frozenset("a an and as at but by for from in of on or the to with s".split())

Covered = Mapping[int, Sequence[tuple[int, int]]]
"""The runs of each sentence that some mentions cover, left to right and apart."""


def covered(mentions: Iterable[Mention]) -> Covered:
    """The words that these mentions cover, in time that does not depend on how they nest."""
    found: dict[int, list[tuple[int, int]]] = {}
    for sentence, start, end in sorted(mentions):
        runs = found.setdefault(sentence, [])
        if runs and start <= runs[-1][1]:
            runs[-1] = runs[-1][0], max(end, runs[-1][1])
        else:
            runs.append((start, end))
    return found


def overlaps(mention: Mention, taken: Covered) -> bool:
    """Whether one of a mention's words is covered."""
    runs = taken.get(mention.sentence, ())
    place = bisect_right(runs, (mention.end - 1, 1 << 60))
    return place > 0 and runs[place - 1][1] > mention.start


def find_names(document: Document) -> list[list[Mention]]:
    """Chains of names that lie outside the document's own mentions."""
    taken = covered(mention for chain in document.chains for mention in chain)
    readable = [s for s, words in enumerate(document.sentences) if not _is_headline(words)]
    inside: set[str] = set()
    lower: set[str] = set()
    for s in readable:
        words = document.sentences[s]
        lower.update(word for word in words if word[0].islower())
        inside.update(word for word in words[_start(words) + 1 :] if _is_capitalised(word))

    chains: dict[tuple[str, ...], list[Mention]] = {}
    for s in readable:
        words = document.sentences[s]
        start = _start(words)
        outside = [True] * len(words)
        for first, end in taken.get(s, ()):
            outside[first:end] = [False] * (end - first)
        named = [
            _is_capitalised(word)
            and outside[w]
            and (w != start or (word in inside and word.lower() not in lower))
            for w, word in enumerate(words)
        ]
        for is_name, run in groupby(range(len(words)), named.__getitem__):
            if is_name:
                span = list(run)
                key = tuple(words[span[0] : span[-1] + 1])
                chains.setdefault(key, []).append(Mention(s, span[0], span[-1] + 1))
    return list(chains.values())


def repeated_unknown_words(words: Iterable[str], lexicon: Lexicon) -> dict[str, int]:
    """A key for every unknown word, as it is spelled, that comes at least twice."""
    counts = Counter(lexicon.spelled(w) for w in words if w[0].isalpha() and w not in lexicon)
    repeated = (word for word, count in counts.items() if count > 1)
    return {word: key for key, word in enumerate(repeated)}


def _start(words: Sequence[str]) -> int:
    """The first word that is not a quote, bracket or dash."""
    return next((w for w, word in enumerate(words) if word[0].isalnum()), 0)


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() and word not in _NEVER_NAMES


def _is_headline(words: Iterable[str]) -> bool:
    letters = [word for word in words if word[0].isalpha()]
    return len(letters) > 3 and all(
        word[0].isupper() or word in _SMALL_IN_HEADLINES for word in letters
    )
