"""Streaming: texts read sentence by sentence, side by side or one on from where a reading holds.

A sentence's reading is what both models say of it, put beside its words (Table 2's groups). Every
sentence of a stream is known by a digest of all that was read up to it, in which unit and by which
reader. Where that of a known sentence is the same, so is all that the models would say.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from dntm.corpus.rows import Lender
from dntm.corpus.vocabulary import BOS, EOS, UNK
from dntm.model.reading_state import ReadingState
from dntm.reader.engine import Engine, States, Step
from dntm.reader.meaning import Meanings
from dntm.reader.reading import (
    END,
    NATS,
    EntityReading,
    Group,
    Reading,
    SentenceReading,
    TokenReading,
    Unit,
)
from dntm.reader.text import PreparedText, Word

BATCH = 16
"""Texts read side by side."""
LONG = 200
"""Sentences above which a text is read by itself, so that its readings need not be held."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReadingPosition:
    """The place after some sentences of one text: everything carried from one to the next.

    A position is a value: nothing ever changes it, so a text can be read on from it any number of
    times, and an edited text from the last position before the edit.
    """

    sentences: int
    """How many sentences have been read."""
    dynamic: ReadingState
    static: ReadingState
    """The state of each model, for a batch of one document."""
    lender: Lender
    """Who has which row."""
    occurrences: Mapping[int, int]
    """How often each entity has occurred."""
    topics: Mapping[int, torch.Tensor] = field(repr=False)
    """What the sentences speak of that have mentioned each entity."""
    names: Mapping[int, str]
    """What each entity of the text is called, also those still to come."""
    surfaces: Mapping[tuple[str, ...], int]
    """Capitalised or unknown words that always mention the same entity."""
    word: int
    """How many words between white space have been begun."""
    reader: bytes = field(repr=False)
    """Tells one reader from another: the states mean something to its models only."""
    digest: bytes = field(repr=False)
    """Tells one history from another: of all that was read, by which reader and in which unit."""


class Assembly:
    """Puts what the models say of one text's sentences beside their words, in reading order."""

    def __init__(
        self,
        engine: Engine,
        text: PreparedText,
        unit: Unit,
        meanings: Meanings | None,
        names: Mapping[int, str],
    ) -> None:
        self._vocabulary = engine.models.vocabulary
        self._frequencies = engine.frequencies
        self.text = text
        self.unit = unit
        self.names = names
        self._meanings = meanings
        self.index = 0
        self.occurrences: dict[int, int] = {}
        self.topics: dict[int, torch.Tensor] = {}
        self.words = WordIndex(text.text)

    def add(self, steps: Sequence[Step]) -> list[SentenceReading]:
        """The readings of the next sentences; without `meanings` none of their entities."""
        found = self.text.sentences[self.index : self.index + len(steps)]
        tokens = [list(self._tokens(w, s)) for w, s in zip(found, steps, strict=True)]
        entities = self._entities(tokens, steps)
        first = self.index
        self.index += len(steps)
        paragraphs = self.text.paragraphs or [0] * len(self.text.sentences)
        return [
            SentenceReading(index=i, tokens=read, entities=entities[i - first], paragraph=p)
            for i, (read, p) in enumerate(
                zip(tokens, paragraphs[first : self.index], strict=True), start=first
            )
        ]

    def skip(self, position: ReadingPosition) -> None:
        """Go on after a position that an earlier reading of the same beginning reached."""
        self.index = position.sentences
        self.occurrences = dict(position.occurrences)
        self.topics = dict(position.topics)
        end = self.text.sentences[self.index - 1][-1].end
        self.words = WordIndex(self.text.text, position.word, end)

    def _tokens(self, words: Sequence[Word], step: Step) -> Iterator[TokenReading]:
        """Every predicted token of a sentence."""
        follows = 0
        nats = NATS[self.unit]
        last = words[-1].end if words else 0
        ending = Word(END, (END,), start=last, end=last)
        for place, read in enumerate([*words, ending]):
            entity = read.token if isinstance(read.token, int) else 0
            group: Group = "following" if follows else "other"
            if entity:
                self.occurrences[entity] = self.occurrences.get(entity, 0) + 1
                group = "new" if self.occurrences[entity] == 1 else "reappearing"
            row = step.rows[place + 1]
            yield TokenReading(
                word=read.shown,
                entity=entity,
                occurrence=self.occurrences[entity] if entity else 0,
                group=group,
                surprisal=float(-step.dynamic[place]) / nats,
                static_surprisal=float(-step.static[place]) / nats,
                entropy=float(step.entropy[place]) / nats,
                static_entropy=float(step.static_entropy[place]) / nats,
                unknown=read.unknown or bool(entity and row == UNK),
                end=place == len(words),
                follows=follows,
                span=(read.start, read.end),
                words=self.words.of(read.start, read.end),
                log_frequency=None if entity else self._frequencies.of(row),
            )
            follows = entity

    def _entities(
        self,
        tokens: Sequence[Sequence[TokenReading]],
        steps: Sequence[Step],
    ) -> list[list[EntityReading]]:
        """The entities mentioned in each sentence as they stand after it."""
        readings: list[list[EntityReading]] = [[] for _ in steps]
        flat: list[tuple[int, int, int, int]] = []
        topics: list[tuple[torch.Tensor, torch.Tensor]] = []
        if self._meanings is None:
            return readings
        for s, step in enumerate(steps):
            rows = (self._vocabulary.entity_at(row) for row in step.rows[1:-1])
            mentioned = {
                token.entity: (row, token.occurrence)
                for token, row in zip(tokens[s][:-1], rows, strict=True)
                if token.entity and row
            }
            flat += [(s, entity, *both) for entity, both in mentioned.items()]
            if mentioned:
                topics += self._speaks_of(step.rows, mentioned)
        if not flat:
            return readings
        before = torch.stack([steps[s].before[row - 1] for s, _, row, _ in flat])
        after = torch.stack([steps[s].after[row - 1] for s, _, row, _ in flat])
        spoken_of = [torch.stack(states) for states in zip(*topics, strict=True)]
        found = self._meanings.of([row for _, _, row, _ in flat], before, after, spoken_of)
        for (s, entity, row, occurrence), meaning, d in zip(
            flat, found, after.tolist(), strict=True
        ):
            reading = EntityReading(
                entity=entity,
                name=self.names[entity],
                occurrence=occurrence,
                row=row,
                representation=d,
                input_words=meaning.input_words,
                output_words=meaning.output_words,
                gained=meaning.gained,
                lost=meaning.lost,
                change=meaning.change,
                taken_for=meaning.taken_for,
                sure=meaning.sure,
            )
            readings[s].append(reading)
        return readings

    def _speaks_of(
        self, sentence: Sequence[int], mentioned: Iterable[int]
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """For each entity what its sentences spoke of before this one, and with it."""
        assert self._meanings is not None
        here = self._meanings.topic(sentence)
        for entity in mentioned:
            before = self.topics.get(entity, torch.zeros_like(here))
            self.topics[entity] = before + here
            yield before, self.topics[entity]


class WordIndex:
    """Counts the words of a text between white space, from left to right."""

    def __init__(self, text: str, begun: int = 0, place: int = 0) -> None:
        self._text = text
        self.index = begun - 1
        """The last word that was begun."""
        self._end = place
        self._matches = re.compile(r"\S+").finditer(text, place)

    def of(self, start: int, end: int) -> tuple[int, int]:
        """The words that hold these characters: the first one and the end."""
        self._reach(start if end > start else start - 1)
        first = self.index
        self._reach(end - 1)
        return max(first, 0), max(self.index, 0) + 1

    def _reach(self, place: int) -> None:
        while self._end <= place:
            match = next(self._matches, None)
            if match is None:
                return
            self.index += 1
            self._end = match.end()


def read_sentences(
    engine: Engine, texts: Iterable[PreparedText], unit: Unit, meanings: Meanings | None
) -> Iterator[tuple[Assembly, list[SentenceReading]]]:
    """Read these texts to their ends, some sentences at a time, a text after the other.

    Short texts are read side by side; of a long one no more is held than a window.
    """
    batch: list[PreparedText] = []
    for text in texts:
        if len(text.sentences) > LONG:
            yield from _read_batch(engine, batch, unit, meanings)
            batch = []
            yield from _read_long(engine, text, unit, meanings)
            continue
        batch.append(text)
        if len(batch) == BATCH:
            yield from _read_batch(engine, batch, unit, meanings)
            batch = []
    yield from _read_batch(engine, batch, unit, meanings)


def _read_batch(
    engine: Engine, batch: Sequence[PreparedText], unit: Unit, meanings: Meanings | None
) -> Iterator[tuple[Assembly, list[SentenceReading]]]:
    assemblies = [Assembly(engine, text, unit, meanings, text.names()) for text in batch]
    read: list[list[SentenceReading]] = [[] for _ in batch]
    for window in engine.read(batch) if batch else ():
        for number, steps in enumerate(window):
            read[number] += assemblies[number].add(steps)
    yield from zip(assemblies, read, strict=True)


def _read_long(
    engine: Engine, text: PreparedText, unit: Unit, meanings: Meanings | None
) -> Iterator[tuple[Assembly, list[SentenceReading]]]:
    assembly = Assembly(engine, text, unit, meanings, text.names())
    for [steps] in engine.read([text]):
        yield assembly, assembly.add(steps)


def read_texts(
    engine: Engine, texts: Iterable[PreparedText], unit: Unit, meanings: Meanings | None
) -> Iterator[Reading]:
    """Read these texts to their ends; without `meanings`, only their tokens."""
    found: list[SentenceReading] = []
    for assembly, sentences in read_sentences(engine, texts, unit, meanings):
        found += sentences
        if len(found) == len(assembly.text.sentences):
            yield reading_of(assembly.text, found, unit)
            found = []


def reading_of(text: PreparedText, sentences: Sequence[SentenceReading], unit: Unit) -> Reading:
    """The reading of a whole text, of which these are all sentences."""
    return Reading(
        name=text.name,
        sentences=sentences,
        entities=text.names(),
        unit=unit,
        notes=text.notes,
        text=text.text,
    )


class Streaming:
    """Both models, read a sentence at a time."""

    def __init__(self, engine: Engine, meanings: Meanings) -> None:
        self._engine = engine
        self._meanings = meanings
        self._reader = secrets.token_bytes(16)

    def beginning(self, text: PreparedText, unit: Unit) -> ReadingPosition:
        """The position before the first sentence."""
        dynamic, static = self._engine.initial()
        return ReadingPosition(
            sentences=0,
            dynamic=dynamic,
            static=static,
            lender=self._engine.lender(),
            occurrences={},
            topics={},
            names=text.names(),
            surfaces=text.surfaces(self._engine.lexicon),
            word=0,
            reader=self._reader,
            digest=self._reader + unit.encode(),
        )

    def end(self, text: PreparedText) -> ReadingPosition:
        """The position after the last sentence."""
        position = self.beginning(text, "bits")
        for sentence in self.read(text, "bits"):
            assert sentence.position is not None
            position = sentence.position
        return position

    def checked(self, position: ReadingPosition) -> ReadingPosition:
        """The position itself; ValueError where another reader made it."""
        if position.reader != self._reader:
            raise ValueError(
                "the position is another reader's, expected one of this reader's own: "
                "what it holds are the states of that one's models"
            )
        return position

    def read(
        self, text: PreparedText, unit: Unit, known: Sequence[SentenceReading] = ()
    ) -> Iterator[SentenceReading]:
        """Every sentence with the position after it; `known` ones that hold are not read again."""
        position = self.beginning(text, unit)
        assembly = Assembly(self._engine, text, unit, self._meanings, position.names)
        for index, words in enumerate(text.sentences):
            digest = _digest(position.digest, words)
            earlier = known[index] if index < len(known) else None
            if earlier and earlier.position and earlier.position.digest == digest:
                reached = earlier.position
                position = replace(reached, names=position.names, surfaces=position.surfaces)
                assembly.skip(position)
                yield _again(earlier, position)
            else:
                known = ()
                read, position = self._step(words, position, assembly)
                position = replace(position, digest=digest)
                yield replace(read, position=position)

    def _step(
        self, words: Sequence[Word], position: ReadingPosition, assembly: Assembly
    ) -> tuple[SentenceReading, ReadingPosition]:
        lender = position.lender.copy()
        rows, loans = self._engine.rows([word.token for word in words], lender)
        states = States(position.dynamic, position.static)
        sentence = [BOS, *rows, EOS]
        [steps], (dynamic, static) = self._engine.advance([[sentence]], [[loans]], states)
        [read] = assembly.add(steps)
        return read, replace(
            position,
            sentences=position.sentences + 1,
            dynamic=dynamic,
            static=static,
            lender=lender,
            occurrences=dict(assembly.occurrences),
            topics=dict(assembly.topics),
            word=assembly.words.index + 1,
        )


def _again(earlier: SentenceReading, position: ReadingPosition) -> SentenceReading:
    """A known sentence, its entities called as they now are: an edit may have renamed them."""
    names: Mapping[int, str] = position.names
    entities = [
        entity
        if entity.name == names[entity.entity]
        else replace(entity, name=names[entity.entity])
        for entity in earlier.entities
    ]
    return replace(earlier, entities=entities, position=position)


def _digest(before: bytes, words: Sequence[Word]) -> bytes:
    read = repr([(word.token, tuple(word.words), word.start) for word in words])
    return hashlib.sha256(before + read.encode()).digest()
