"""Entity slots: a model has a fixed number of entity rows, and a text may have more entities.

Entity k occupies slot k while slots are free. If a text may have more entities than slots, one slot
is kept free for the next entity: when the last slot is taken, the least recently mentioned entity
is evicted. Slots therefore never depend on later words. The state of an evicted entity is stored.
When the entity is mentioned again, it takes the free slot, and its state is restored after the
mention (`model.entity_memory`). A reader always keeps one slot free; a document of a dataset does
so only if it has more entities than slots.

If one sentence mentions more entities than there are slots, the rest are read as unknown words.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.vocabulary import BOS, EOS, Vocabulary, row_of_entity

NOBODY = 1 << 40
"""Stands for the occupant of a slot that an eviction has freed."""


class Eviction(NamedTuple):
    """A slot is reassigned: its entity is evicted, or an evicted entity returns."""

    position: int
    """Index of the first token in the sentence that is predicted with the new occupant."""
    slot: int
    """From 1, like entities."""
    entity: int
    """The new occupant: NOBODY, or an entity that was evicted before."""
    evicted: int
    """The entity that occupied the slot, or NOBODY."""


class SlotAllocator:
    """Assigns slots to entities, sentence by sentence."""

    def __init__(self, slots: int, *, evicts: bool = False) -> None:
        """If `evicts`, one slot is kept free."""
        self._free = dict.fromkeys(range(1, slots + 1))
        self._evicts = evicts
        self._slot: dict[int, int] = {}
        """The slot of each entity that has one, the least recently mentioned entity first."""
        self._evicted: set[int] = set()

    def assign(self, sentence: Iterable[Token]) -> tuple[list[int | None], list[Eviction]]:
        """The slot of each token of the next sentence (None for words), and the evictions."""
        here: set[int] = set()
        slots: list[int | None] = []
        evictions = self._evict(0, here)
        for position, token in enumerate(sentence):
            if isinstance(token, str):
                slots.append(None)
                continue
            slot = self._slot.pop(token, None)
            if slot is None and self._free:
                slot = token if token in self._free else next(iter(self._free))
                del self._free[slot]
                if token in self._evicted:
                    self._evicted.remove(token)
                    evictions.append(Eviction(position + 1, slot, token, NOBODY))
            if slot is not None:
                self._slot[token] = slot
                here.add(token)
                evictions += self._evict(position + 1, here)
            slots.append(slot)
        return slots, evictions

    def _evict(self, position: int, here: set[int]) -> list[Eviction]:
        """If no slot is free, evict the least recently mentioned entity outside the sentence."""
        oldest = next((entity for entity in self._slot if entity not in here), None)
        if self._free or not self._evicts or oldest is None:
            return []
        slot = self._slot.pop(oldest)
        self._free[slot] = None
        self._evicted.add(oldest)
        return [Eviction(position, slot, NOBODY, oldest)]

    def copy(self) -> "SlotAllocator":
        """An independent copy, to continue from here more than once."""
        other = SlotAllocator(0)
        other._free, other._slot = dict(self._free), dict(self._slot)
        other._evicts, other._evicted = self._evicts, set(self._evicted)
        return other

    def occupied(self) -> list[int]:
        """The slots that hold an entity."""
        return list(self._slot.values())

    def occupant(self, slot: int) -> int:
        """The entity in a slot, or 0."""
        return next((entity for entity, own in self._slot.items() if own == slot), 0)


class SentenceStrings(NamedTuple):
    """A sentence with the words of its tokens, as the vocabulary spells them."""

    tokens: Sequence[Token]
    strings: Sequence[tuple[str, ...]]
    """The words of every token."""
    rows: Sequence[int]
    """<bos>, the (first) row of every token, <eos>."""
    words: Sequence[int]
    """The row of each token's first word (<unk> if it has none), and <eos>; if words are divided
    into pieces, the rows of the sentence after <bos>."""
    evictions: Sequence[Eviction]
    """Their positions count tokens."""
    pieces: Sequence[Sequence[Sequence[int]]] = ()
    """The pieces of every word of every token, if words are divided into pieces."""


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """A document as rows of the vocabulary, with its evictions."""

    sentences: Sequence[Sequence[int]]
    """Each begins with <bos> and ends with <eos>, if the vocabulary has sentence ends."""
    evictions: Sequence[Sequence[Eviction]]
    """Of each sentence."""
    widths: Sequence[Sequence[int]] = ()
    """The number of rows of every token of each sentence, if a token can have several."""
    strings: Sequence[SentenceStrings] = ()
    """One per sentence, if the words of mentions are known."""

    def part(self, start: int, count: int) -> "DocumentRows":
        """Some consecutive sentences."""
        own = slice(start, start + count)
        widths, strings = self.widths[own], self.strings[own]
        return DocumentRows(self.sentences[own], self.evictions[own], widths, strings)


def with_strings(
    encoded: DocumentRows,
    sentences: Sequence[Sequence[tuple[Token, tuple[str, ...]]]],
    vocabulary: Vocabulary,
) -> DocumentRows:
    """Add the strings of sentences, given as tokens with their words."""
    found = []
    for number, (sentence, rows) in enumerate(zip(sentences, encoded.sentences, strict=True)):
        firsts: Sequence[int] = rows
        tokens, strings = [token for token, _ in sentence], [words for _, words in sentence]
        evictions, pieces = encoded.evictions[number], list[list[Sequence[int]]]()
        if encoded.widths:
            places = list(accumulate(encoded.widths[number], initial=0))
            evictions = [e._replace(position=places.index(e.position)) for e in evictions]
            spelled = iter(vocabulary.rows_of([word for words in strings for word in words]))
            each = ([next(spelled) for _ in words] for words in strings)
            pieces = [
                own if isinstance(token, int) else [rows[start + 1 : end + 1]]
                for token, own, start, end in zip(tokens, each, places, places[1:], strict=False)
            ]
            words, firsts = list(rows[1:]), [BOS, *(rows[place + 1] for place in places[:-1])]
        else:
            words = [*(vocabulary.row(words[0]) for words in strings), EOS]
        found.append(SentenceStrings(tokens, strings, firsts, words, evictions, pieces))
    return replace(encoded, strings=found)


def encode(document: AnonymizedDocument, vocabulary: Vocabulary) -> DocumentRows:
    """Turn a document into rows."""
    slots = vocabulary.entities
    allocator = SlotAllocator(slots, evicts=document.largest > slots)
    return encode_sentences(document.sentences, vocabulary, allocator)


def encode_sentences(
    sentences: Iterable[Sequence[Token]],
    vocabulary: Vocabulary,
    allocator: SlotAllocator,
    spelled: Callable[[str], str] = str,
) -> DocumentRows:
    """Turn the allocator's next sentences into rows; `spelled` adapts words to the vocabulary."""
    rows: list[list[int]] = []
    evictions: list[list[Eviction]] = []
    widths: list[list[int]] = []
    for sentence in sentences:
        slots, evicted = allocator.assign(sentence)
        rows.append([BOS])
        widths.append([])
        places: list[int] = []
        written = [
            spelled(token) if isinstance(token, str) else slot or vocabulary.without_row
            for token, slot in zip(sentence, slots, strict=True)
        ]
        for slot, own in zip(slots, vocabulary.rows_of(written), strict=True):
            if slot is not None:
                own = (row_of_entity(slot),)  # noqa: PLW2901
            places.append(len(rows[-1]) - 1)
            rows[-1].extend(own)
            widths[-1].append(len(own))
        places.append(len(rows[-1]) - 1)
        if vocabulary.ends:
            rows[-1].append(EOS)
        evictions.append([e._replace(position=places[e.position]) for e in evicted])
    return DocumentRows(rows, evictions, () if vocabulary.ends else widths)
