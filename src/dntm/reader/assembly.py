"""Assembly: what both models say of sentences, put beside their words (Table 2's groups)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from dntm.reader.engine import Step
from dntm.reader.meaning import Meanings
from dntm.reader.prepared import PreparedText, Word
from dntm.reader.reading import (
    END,
    EntityReading,
    Group,
    Reading,
    SentenceReading,
    TokenReading,
)
from dntm.reader.units import NATS, Unit


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a text some sentences begin."""

    index: int
    """The first one's, from 0."""
    occurrences: Mapping[int, int]
    """How often each entity has occurred before."""
    names: Mapping[int, str]

    def after(self, sentences: Sequence[SentenceReading]) -> "Place":
        """The place once these sentences have been read."""
        seen = dict(self.occurrences)
        for sentence in sentences:
            seen |= mentioned(sentence.tokens)
        return Place(self.index + len(sentences), seen, self.names)


def assemble(
    sentences: Sequence[Sequence[Word]],
    steps: Sequence[Step],
    place: Place,
    unit: Unit,
    meanings: Meanings | None,
) -> list[SentenceReading]:
    """The readings of these sentences; without `meanings` none of their entities."""
    seen = dict(place.occurrences)
    tokens = [
        list(_tokens(words, step, seen, unit)) for words, step in zip(sentences, steps, strict=True)
    ]
    entities: list[list[EntityReading]] = [[] for _ in tokens]
    if meanings is not None:
        entities = _entities([mentioned(read) for read in tokens], steps, place.names, meanings)
    return [
        SentenceReading(index=index, tokens=read, entities=found)
        for index, (read, found) in enumerate(zip(tokens, entities, strict=True), place.index)
    ]


def reading_of(text: PreparedText, sentences: Sequence[SentenceReading], unit: Unit) -> Reading:
    """The reading of a whole text, of which these are all sentences."""
    return Reading(
        name=text.name, sentences=sentences, entities=text.names(), unit=unit, notes=text.notes
    )


def mentioned(tokens: Sequence[TokenReading]) -> dict[int, int]:
    """The entities of a sentence, and how often each has occurred by its end."""
    return {token.entity: token.occurrence for token in tokens if token.entity}


def _entities(
    sentences: Sequence[Mapping[int, int]],
    steps: Sequence[Step],
    names: Mapping[int, str],
    meanings: Meanings,
) -> list[list[EntityReading]]:
    """The entities mentioned in each sentence as they stand after it."""
    flat = [(s, entity) for s, entities in enumerate(sentences) for entity in entities]
    readings: list[list[EntityReading]] = [[] for _ in sentences]
    if not flat:
        return readings
    before = torch.stack([steps[s].before[entity - 1] for s, entity in flat])
    after = torch.stack([steps[s].after[entity - 1] for s, entity in flat])
    found = meanings.of([entity for _, entity in flat], before, after)
    for (s, entity), meaning, d in zip(flat, found, after.tolist(), strict=True):
        reading = EntityReading(
            entity=entity,
            name=names[entity],
            occurrence=sentences[s][entity],
            representation=d,
            input_words=meaning.input_words,
            output_words=meaning.output_words,
            gained=meaning.gained,
            lost=meaning.lost,
            change=meaning.change,
        )
        readings[s].append(reading)
    return readings


def _tokens(
    words: Sequence[Word], step: Step, seen: dict[int, int], unit: Unit
) -> Iterator[TokenReading]:
    """Every predicted token of a sentence; `seen` counts the entities and is carried on."""
    follows = False
    for place, read in enumerate([*words, Word(END, (END,))]):
        token = read.token
        entity = token if isinstance(token, int) else 0
        group: Group = "following" if follows else "other"
        if entity:
            seen[entity] = seen.get(entity, 0) + 1
            group = "new" if seen[entity] == 1 else "reappearing"
        yield TokenReading(
            word=read.shown,
            entity=entity,
            occurrence=seen[entity] if entity else 0,
            group=group,
            surprisal=float(-step.dynamic[place]) / NATS[unit],
            static_surprisal=float(-step.static[place]) / NATS[unit],
            unknown=read.unknown,
            end=place == len(words),
        )
        follows = bool(entity)
