"""Streaming: texts are read in batches, or sentence by sentence from any earlier position.

A `SentenceReading` joins the models' scores with the words of a sentence. Every sentence of a
stream has a digest of the reader, the unit and everything read so far. If a known sentence has the
same digest, it is not read again.
"""

import hashlib
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice

import torch
from typing_extensions import TypeAliasType

from dntm.corpus.entity_slots import SlotAllocator
from dntm.corpus.vocabulary import UNK
from dntm.evaluation.groups import group_of
from dntm.model.strings import StringReader
from dntm.reader.engine import Engine, SentenceScores, States
from dntm.reader.meaning import Evidence, Meanings
from dntm.reader.reading import (
    END,
    NATS,
    EntityReading,
    Reading,
    SentenceReading,
    TokenReading,
    Unit,
)
from dntm.reader.text import PreparedText, Text, Word

BATCH = 16
"""Texts per batch."""
LONG = 200
"""A text with more sentences is read alone, so that few long readings are in memory."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReadingPosition:
    """The place after some sentences of a text: everything that is carried to the next sentence.

    A position is immutable: reading can continue from it any number of times.
    """

    sentences: int
    """How many sentences have been read."""
    states: States = field(repr=False)
    """Both models' states, for a batch of one text."""
    slots: SlotAllocator = field(repr=False)
    """The entity in each slot."""
    strings: StringReader | None = field(repr=False)
    """The forms of each entity."""
    occurrences: Mapping[int, int] = field(repr=False)
    """How often each entity has occurred."""
    evidence: Mapping[int, Evidence] = field(repr=False)
    """What is known about the meaning of each entity."""
    names: Mapping[int, str] = field(repr=False)
    """The name of each entity of the text, including those not yet mentioned."""
    surfaces: Mapping[tuple[str, ...], int] = field(repr=False)
    """Capitalized or unknown words that always mention the same entity."""
    reader: bytes = field(repr=False)
    """Identifies the reader, whose models the states belong to."""
    digest: bytes = field(repr=False)
    """Identifies everything that was read, by which reader and in which unit."""


History = TypeAliasType("History", Text | ReadingPosition)
"""A text, or the position after a text that has been read."""


class ReadingBuilder:
    """Joins the models' scores of one text with its words, in reading order."""

    def __init__(
        self, engine: Engine, text: PreparedText, unit: Unit, meanings: Meanings | None
    ) -> None:
        """Without `meanings` entities are left out."""
        self._engine = engine
        self._meanings = meanings
        self._nats = NATS[unit]
        self._word_starts = array("q", (word.start() for word in re.finditer(r"\S+", text.text)))
        self.text = text
        self.names = text.names()
        self.index = 0
        self._end = 0
        self.occurrences: dict[int, int] = {}
        self.evidence: dict[int, Evidence] = {}
        self.strings = engine.strings()

    def add(
        self, scores: Sequence[SentenceScores], rest: Sequence[tuple[Sequence[Word], int]] = ()
    ) -> list[SentenceReading]:
        """The readings of the next sentences, which are from the `rest` of the text if given."""
        first, end = self.index, self.index + len(scores)
        words = [words for words, _ in rest] or self.text.sentences[first:end]
        paragraphs = [paragraph for _, paragraph in rest] or self.text.paragraphs[first:end]
        for word in (word for sentence, _ in rest for word in sentence):
            if isinstance(word.token, int):
                self.names.setdefault(word.token, word.shown)
        if self.strings and self.strings.spelling.ends is None:  # computing q together is faster
            self.strings.spelling.q(w for s in scores if s.strings for w in s.strings.strings)
        tokens = [list(self._tokens(w, s)) for w, s in zip(words, scores, strict=True)]
        entities = self._entities(tokens, scores) if self._meanings else [()] * len(scores)
        self.index = end
        parts = zip(tokens, entities, paragraphs or [0] * len(scores), strict=True)
        return [
            SentenceReading(index=i, tokens=read, entities=mentioned, paragraph=paragraph)
            for i, (read, mentioned, paragraph) in enumerate(parts, start=first)
        ]

    def step(self, position: ReadingPosition, digest: bytes) -> SentenceReading:
        """Read the next sentence alone, from the position before it."""
        slots = position.slots.copy()
        encoded = self._engine.encode_words([self.text.sentences[self.index]], slots)
        [scores], states = self._engine.advance([encoded], position.states)
        [read] = self.add(scores)
        after = replace(
            position,
            sentences=self.index,
            states=states,
            slots=slots,
            strings=self.strings and self.strings.copy(),
            occurrences=dict(self.occurrences),
            evidence=dict(self.evidence),
            digest=digest,
        )
        return replace(read, position=after)

    def skip(self, position: ReadingPosition) -> None:
        """Continue after a position of an earlier reading with the same beginning."""
        self.index = position.sentences
        self.occurrences = dict(position.occurrences)
        self.evidence = dict(position.evidence)
        self.strings = position.strings and position.strings.copy()

    def _tokens(self, words: Sequence[Word], scores: SentenceScores) -> Iterator[TokenReading]:
        """Every predicted token of a sentence."""
        follows = 0
        last = words[-1].end if words else 0
        ends = [Word(END, (END,), last, last)] * self._engine.models.vocabulary.ends
        parts = self._parts([*words, *ends], scores)
        for place, word in enumerate([*words, *ends]):
            entity = word.token if isinstance(word.token, int) else 0
            occurrence = self.occurrences.get(entity, 0) + 1 if entity else 0
            if entity:
                self.occurrences[entity] = occurrence
            row = scores.rows[place + 1]
            frequency = None if entity else self._engine.log_frequency(row)
            entropy, *then = (scores.entropy[place : place + 2] / self._nats).tolist()
            yield TokenReading(
                word=word.shown,
                entity=entity,
                occurrence=occurrence,
                group=group_of(occurrence, follows),
                parts=next(parts),
                entity_surprisal=float(-scores.dynamic[place]) / self._nats,
                static_entity_surprisal=float(-scores.static[place]) / self._nats,
                entropy=entropy,
                entropy_reduction=entropy - then[0] if then else None,
                static_entropy=float(scores.static_entropy[place]) / self._nats,
                unknown=row == UNK
                or (entity > 0 and not self._engine.lexicon.has_rows(word.words)),
                end=place == len(words),
                follows=follows,
                span=(word.start, word.end),
                words=self._words_at(word.start, word.end),
                unigram_surprisal=None if frequency is None else -frequency / self._nats,
            )
            follows = entity

    def _parts(
        self, words: Sequence[Word], scores: SentenceScores
    ) -> Iterator[list[tuple[int, float, float]]]:
        """`TokenReading.parts` of each token; without a spelling, first words have it all."""
        if self.strings is None or scores.strings is None:
            both = [
                [
                    [nats] + [0.0] * (len(word.words) - 1)
                    for nats, word in zip((-log_p).tolist(), words, strict=True)
                ]
                for log_p in (scores.dynamic, scores.static)
            ]
        else:
            both = self.strings.read(scores.strings, scores.others)
        for word, *nats in zip(words, *both, strict=True):
            starts = word.starts or [word.start] * len(word.words)
            places = [self._words_at(start, start + (word.end > start))[0] for start in starts]
            values = ([value / self._nats for value in own] for own in nats)
            yield list(zip(places, *values, strict=True))

    def part(self, read: list[SentenceReading], unit: Unit, end: int) -> Reading:
        """The reading of the next sentences; the following sentence begins at character `end`."""
        start, self._end = self._end, end
        return Reading(
            name=self.text.name,
            sentences=read,
            entities=self.names,
            unit=unit,
            text=self.text.text[start:end],
            place=(start, bisect_left(self._word_starts, start)),
        )

    def _words_at(self, start: int, end: int) -> tuple[int, int]:
        """The range of whitespace-separated words that these characters belong to."""
        places = (min(start, end - 1), end - 1)
        first, last = (max(bisect_right(self._word_starts, place) - 1, 0) for place in places)
        return first, last + 1

    def _entities(
        self, tokens: Sequence[Sequence[TokenReading]], scores: Sequence[SentenceScores]
    ) -> list[list[EntityReading]]:
        """The entities mentioned in each sentence as they are after it."""
        found: list[tuple[int, EntityReading]] = []
        evidence: list[Evidence] = []
        for s, (sentence, score) in enumerate(zip(tokens, scores, strict=True)):
            slots = map(self._engine.models.vocabulary.entity_at, score.rows[1:])
            mentions = [(token, slot) for token, slot in zip(sentence, slots, strict=True) if slot]
            for (token, _), h in zip(mentions, score.expected, strict=True):
                words, count, expected = self.evidence.get(token.entity, Evidence())
                self.evidence[token.entity] = Evidence(words, count + 1, expected + h)
            mentioned = {token.entity: (slot, token.occurrence) for token, slot in mentions}
            for entity, (slot, occurrence) in mentioned.items():
                assert self._meanings is not None
                known = self.evidence[entity]
                own_words = known.own_words | self._meanings.own_words(score.rows, slot)
                self.evidence[entity] = known._replace(own_words=own_words)
                evidence.append(self.evidence[entity])
                after = score.after[slot - 1]
                state = EntityReading(
                    entity=entity,
                    name=self.names[entity],
                    occurrence=occurrence,
                    row=slot,
                    representation=after.tolist(),
                    change=float((after - score.before[slot - 1]).norm()),
                )
                found.append((s, state))
        readings: list[list[EntityReading]] = [[] for _ in scores]
        if found and self._meanings:
            d = torch.stack([scores[s].after[state.row - 1] for s, state in found])
            states = [state for _, state in found]
            described = self._meanings.describe(states, d, evidence)
            for (s, _), state in zip(found, described, strict=True):
                readings[s].append(state)
        return readings


def read_texts(
    engine: Engine,
    texts: Iterable[PreparedText],
    unit: Unit,
    meanings: Meanings | None,
    *,
    parts: bool = False,
) -> Iterator[Reading]:
    """Read texts to their ends, in batches; without `meanings`, only their tokens.

    With `parts`, a long text gives several readings.
    """
    for is_long, some in groupby(texts, key=lambda text: len(text.sentences) > LONG or text.rest):
        if is_long and parts:
            yield from chain.from_iterable(_parts(engine, text, unit, meanings) for text in some)
            continue
        while batch := list(islice(some, 1 if is_long else BATCH)):
            builders = [ReadingBuilder(engine, text, unit, meanings) for text in batch]
            read: list[list[SentenceReading]] = [[] for _ in batch]
            for window in engine.read(batch):
                for builder, found, scores in zip(builders, read, window, strict=True):
                    found.extend(builder.add(scores))
            for builder, sentences in zip(builders, read, strict=True):
                yield builder.part(sentences, unit, len(builder.text.text))


def _parts(
    engine: Engine, text: PreparedText, unit: Unit, meanings: Meanings | None
) -> Iterator[Reading]:
    """The readings of a text, one per window."""
    builder = ReadingBuilder(engine, text, unit, meanings)
    sentences = text.rest or zip(text.sentences, text.paragraphs, strict=True)
    states, slots, window = engine.initial(), engine.slots(), list(islice(sentences, 1))
    with ThreadPoolExecutor(1) as pool:
        while window:
            encoded = engine.encode_words([words for words, _ in window], slots)
            [scores], states = engine.advance([encoded], states, pool)
            read, window = builder.add(scores, window), list(islice(sentences, engine.sentences))
            yield builder.part(read, unit, window[0][0][0].start if window else len(text.text))


def read_stream(
    builder: ReadingBuilder, position: ReadingPosition, known: Sequence[SentenceReading] = ()
) -> Iterator[SentenceReading]:
    """Read a text from its beginning, each sentence with the position after it.

    `known` sentences are not read again, up to the first whose digest differs.
    """
    for index, words in enumerate(builder.text.sentences):
        digest = _digest(position.digest, words)
        earlier = known[index] if index < len(known) else None
        if earlier and earlier.position and earlier.position.digest == digest:
            names, surfaces = position.names, position.surfaces  # an edit may have changed them
            position = replace(earlier.position, names=names, surfaces=surfaces)
            builder.skip(position)
            entities = [replace(e, name=names[e.entity]) for e in earlier.entities]
            yield replace(earlier, entities=entities, position=position)
        else:
            known = ()
            read = builder.step(position, digest)
            position = read.position or position
            yield read


def _digest(before: bytes, words: Sequence[Word]) -> bytes:
    read = repr([(word.token, tuple(word.words), word.start, word.end) for word in words])
    return hashlib.sha256(before + read.encode()).digest()
