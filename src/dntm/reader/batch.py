"""Batch: whole texts, read side by side."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from dntm.reader.assembly import Place, assemble, reading_of
from dntm.reader.engine import Engine
from dntm.reader.meaning import Meanings
from dntm.reader.prepared import PreparedText
from dntm.reader.reading import Reading, SentenceReading
from dntm.reader.units import Unit

BATCH = 16
"""Texts read side by side."""


def read_texts(
    engine: Engine, texts: Iterable[PreparedText], unit: Unit, meanings: Meanings | None
) -> Iterator[Reading]:
    """Read these texts to their ends; without `meanings`, only their tokens."""
    remaining = iter(texts)
    while batch := list(islice(remaining, BATCH)):
        yield from _read_batch(engine, batch, unit, meanings)


def _read_batch(
    engine: Engine, batch: Sequence[PreparedText], unit: Unit, meanings: Meanings | None
) -> list[Reading]:
    read: list[list[SentenceReading]] = [[] for _ in batch]
    places = [Place(0, {}, text.names()) for text in batch]
    for stretch in engine.read(batch):
        for number, steps in enumerate(stretch):
            place = places[number]
            words = batch[number].sentences[place.index : place.index + len(steps)]
            found = assemble(words, steps, place, unit, meanings)
            places[number] = place.after(found)
            read[number] += found
    return [reading_of(text, found, unit) for text, found in zip(batch, read, strict=True)]
