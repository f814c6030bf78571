"""Streaming: a text read sentence by sentence, and read on from where an earlier reading holds.

Every sentence is known by a digest of all that was read up to it, in which unit and by which
reader. Where that of a known sentence is the same, so is all that the models would say.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dntm.reader.assembly import Place, assemble
from dntm.reader.engine import Engine
from dntm.reader.meaning import Meanings
from dntm.reader.position import ReadingPosition
from dntm.reader.prepared import PreparedText, Word
from dntm.reader.reading import SentenceReading
from dntm.reader.units import Unit


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
            occurrences={},
            names=text.names(),
            surfaces=text.surfaces(self._engine.lexicon),
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
        for index, words in enumerate(text.sentences):
            digest = _digest(position.digest, words)
            earlier = known[index] if index < len(known) else None
            if earlier and earlier.position and earlier.position.digest == digest:
                reached = earlier.position
                position = replace(reached, names=position.names, surfaces=position.surfaces)
                yield _again(earlier, position)
            else:
                known = ()
                read, position = self._step(words, position, digest, unit)
                yield replace(read, position=position)

    def _step(
        self, words: Sequence[Word], position: ReadingPosition, digest: bytes, unit: Unit
    ) -> tuple[SentenceReading, ReadingPosition]:
        states = position.dynamic, position.static
        [steps], (dynamic, static) = self._engine.advance([[self._engine.rows(words)]], states)
        place = Place(position.sentences, position.occurrences, position.names)
        [read] = assemble([words], steps, place, unit, self._meanings)
        after = place.after([read])
        return read, replace(
            position,
            sentences=after.index,
            dynamic=dynamic,
            static=static,
            occurrences=after.occurrences,
            digest=digest,
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
    read = repr([(word.token, tuple(word.words)) for word in words])
    return hashlib.sha256(before + read.encode()).digest()
