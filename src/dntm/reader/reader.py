"""Reader: a text in, what the model makes of it out.

    reader = Reader.from_pretrained("runs/d")
    reading = reader.read("Old Marta kept the ferry. Every morning Marta rowed across.")

Beside the dynamic model stands a static one (`reader/pair.py` says which), so that every number has
one to compare with. Numbers are made in double precision and are the same, to 1e-9, whatever is
read in the same batch and whether a text is read at once or as a stream.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Self

from dntm.corpus.document import Token
from dntm.corpus.resolver import Resolver
from dntm.corpus.vocabulary import BOS
from dntm.reader.answers import Continuation, Filling, Predictions, Swap
from dntm.reader.assembly import Place, assemble
from dntm.reader.continuation import Sampling, sample
from dntm.reader.engine import Engine
from dntm.reader.gaps import Choose, fill_gap, gap_candidates, swapped
from dntm.reader.meaning import Meanings
from dntm.reader.pair import ModelPair
from dntm.reader.position import ReadingPosition
from dntm.reader.predicting import predict
from dntm.reader.prepared import PreparedText, Word, tokens_of
from dntm.reader.preparing import Kinds, Text, prepare
from dntm.reader.reading import Reading, SentenceReading, Unit
from dntm.reader.scores import Scores

BATCH = 16
"""Texts read side by side."""


class Reader(Scores):
    """A trained model and a static one beside it, ready to read texts."""

    def __init__(self, models: ModelPair, resolver: Resolver | None = None) -> None:
        self.models = models
        self.vocabulary = models.vocabulary
        self._engine = Engine(models)
        self._meanings = Meanings(models.dynamic, models.vocabulary)
        self._resolver = resolver

    @classmethod
    def from_pretrained(
        cls,
        path: Path | str | None = None,
        static: Path | str | None = None,
        resolver: Resolver | None = None,
    ) -> Self:
        """Load a run folder or a checkpoint; without a path, the model that comes with dntm.

        `static` is the checkpoint of a baseline to compare with. `resolver` finds the entities of
        texts that are read with entities="resolver".
        """
        return cls(ModelPair.load(path, static), resolver)

    def prepare(self, text: Text, entities: Kinds = None) -> PreparedText:
        """Find the entities of a text; ValueError where it has no word."""
        return prepare(text, self.vocabulary, entities, self._resolver)

    def read(self, text: Text, *, entities: Kinds = None, unit: Unit = "bits") -> Reading:
        """Read a whole text."""
        return next(self.read_all([text], entities=entities, unit=unit))

    def read_all(
        self,
        texts: Iterable[Text],
        *,
        entities: Kinds = None,
        unit: Unit = "bits",
        meanings: bool = True,
    ) -> Iterator[Reading]:
        """Read many texts, several at once; without `meanings`, only their tokens."""
        _check_unit(unit)
        prepared = (self.prepare(text, entities) for text in texts)
        while batch := list(islice(prepared, BATCH)):
            yield from self._read_batch(batch, unit, self._meanings if meanings else None)

    def stream(
        self,
        text: Text | PreparedText,
        *,
        entities: Kinds = None,
        unit: Unit = "bits",
        known: Sequence[SentenceReading] = (),
    ) -> Iterator[SentenceReading]:
        """Read sentence by sentence; every sentence has a position to read on from.

        `known` are sentences of an earlier stream over this text, perhaps before an edit: those
        at the beginning that still hold are given again as they are, and only the rest is read.
        """
        _check_unit(unit)
        prepared = text if isinstance(text, PreparedText) else self.prepare(text, entities)
        position = self._beginning(prepared, unit)
        for index, words in enumerate(prepared.sentences):
            digest = _digest(position.digest, words)
            earlier = known[index] if index < len(known) else None
            if earlier and earlier.position and earlier.position.digest == digest:
                position = replace(
                    earlier.position, names=position.names, surfaces=position.surfaces
                )
                yield replace(earlier, position=position)
            else:
                known = ()
                read = self._step(words, position, digest, unit)
                assert read.position is not None
                position = read.position
                yield read

    def position(
        self, history: Text | PreparedText | ReadingPosition, *, entities: Kinds = None
    ) -> ReadingPosition:
        """The position after a text; an empty string is the beginning."""
        if isinstance(history, ReadingPosition):
            return history
        if history == "":
            return self._beginning(PreparedText(name="", sentences=()), "bits")
        prepared = history if isinstance(history, PreparedText) else self.prepare(history, entities)
        *_, last = self.stream(prepared)
        assert last.position is not None
        return last.position

    def predictions(
        self,
        history: Text | ReadingPosition,
        prefix: str | Sequence[Token] = "",
        k: int = 10,
        *,
        entities: Kinds = None,
    ) -> Predictions:
        """The likeliest next tokens after a text and the beginning of a sentence.

        `prefix` may mention the text's entities by name or as [1]; as a sequence it holds words
        and entity numbers.
        """
        position = self.position(history, entities=entities)
        return predict(self.models, position, [BOS, *self._rows(prefix, position)], k)

    def fill(
        self,
        sentence: str,
        history: Text | ReadingPosition = "",
        *,
        entities: Kinds = None,
        choose: Choose = "both",
        candidates: int = 200,
        unit: Unit = "bits",
    ) -> list[Filling]:
        """Rank words and entities for the gap [] of a sentence, the likeliest sentence first.

        Each candidate stands by the surprisal of the whole sentence with it in the gap. Every
        entity of the history is one; of the words the `candidates` likeliest at the gap, with 0
        the whole vocabulary.
        """
        _check_unit(unit)
        position = self.position(history, entities=entities)
        tokens = tokens_of(sentence, position.names, position.surfaces)
        rows = gap_candidates(self._engine, position, tokens, choose, candidates)
        return fill_gap(self._engine, position, tokens, rows, unit)

    def swap(
        self,
        text: Text,
        mention: tuple[int, int],
        entity: int,
        *,
        entities: Kinds = None,
        unit: Unit = "bits",
    ) -> Swap:
        """Give the mention at (sentence, token), both from 0, to another entity of the text."""
        prepared = self.prepare(text, entities)
        other = swapped(prepared, mention, entity)
        before = list(self.stream(prepared, unit=unit))
        after = list(self.stream(other, unit=unit, known=before))
        readings = (
            Reading(name=prepared.name, sentences=read, entities=prepared.names(), unit=unit)
            for read in (before, after)
        )
        one, other_one = readings
        return Swap(sentence=mention[0], position=mention[1], before=one, after=other_one)

    def continue_text(
        self,
        history: Text | ReadingPosition = "",
        *,
        sentences: int = 3,
        temperature: float = 1.0,
        top_p: float = 0.9,
        seed: int = 0,
        entities: Kinds = None,
    ) -> Continuation:
        """Sample what comes next, in which the entities of the text come back."""
        sampling = Sampling(sentences=sentences, temperature=temperature, top_p=top_p, seed=seed)
        return sample(self.models, self.position(history, entities=entities), sampling)

    def _read_batch(
        self, batch: Sequence[PreparedText], unit: Unit, meanings: Meanings | None
    ) -> list[Reading]:
        read: list[list[SentenceReading]] = [[] for _ in batch]
        places = [Place(0, {}, text.names()) for text in batch]
        for stretch in self._engine.read(batch):
            for number, steps in enumerate(stretch):
                place = places[number]
                words = batch[number].sentences[place.index : place.index + len(steps)]
                found = assemble(words, steps, place, unit, meanings)
                places[number] = place.after(found)
                read[number] += found
        return [
            Reading(
                name=text.name,
                sentences=sentences,
                entities=place.names,
                unit=unit,
                notes=text.notes,
            )
            for text, sentences, place in zip(batch, read, places, strict=True)
        ]

    def _rows(self, tokens: str | Sequence[Token], position: ReadingPosition) -> list[int]:
        if isinstance(tokens, str):
            tokens = tokens_of(tokens, position.names, position.surfaces)
        return [self.vocabulary.row(token) for token in tokens]

    def _beginning(self, text: PreparedText, unit: Unit) -> ReadingPosition:
        dynamic, static = self._engine.initial()
        return ReadingPosition(
            sentences=0,
            dynamic=dynamic,
            static=static,
            occurrences={},
            names=text.names(),
            surfaces=text.surfaces(self.vocabulary),
            digest=unit.encode(),
        )

    def _step(
        self, words: Sequence[Word], position: ReadingPosition, digest: bytes, unit: Unit
    ) -> SentenceReading:
        states = position.dynamic, position.static
        [steps], (dynamic, static) = self._engine.advance([[self._engine.rows(words)]], states)
        place = Place(position.sentences, position.occurrences, position.names)
        [read] = assemble([words], steps, place, unit, self._meanings)
        after = place.after([read])
        reached = replace(
            position,
            sentences=after.index,
            dynamic=dynamic,
            static=static,
            occurrences=after.occurrences,
            digest=digest,
        )
        return replace(read, position=reached)


def _check_unit(unit: str) -> None:
    if unit not in ("bits", "nats"):
        raise ValueError(f"unit {unit!r}, expected bits or nats")


def _digest(before: bytes, words: Sequence[Word]) -> bytes:
    read = repr([(word.token, tuple(word.words)) for word in words])
    return hashlib.sha256(before + read.encode()).digest()
