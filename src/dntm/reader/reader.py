"""Reader: applies a trained model to texts.

    reader = Reader.from_pretrained("runs/d")
    reading = reader.read("Old Marta kept the ferry. Every morning Marta rowed across.")

Every value is accompanied by that of a static model (see `reader/engine.py`). Values are computed
in double precision and are the same to 1e-9 in every batch, and whether a text is read at once or
as a stream.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self, get_args

from dntm.corpus.anonymize import From
from dntm.corpus.document import Document, Token
from dntm.corpus.resolver import Resolver
from dntm.reader.engine import Engine, ModelPair, Precision
from dntm.reader.meaning import Meanings
from dntm.reader.questions import (
    Choose,
    Continuation,
    Filling,
    Predictions,
    Sampling,
    fill_gap,
    predict,
    sample,
)
from dntm.reader.reading import Reading, SentenceReading, Unit, check_unit
from dntm.reader.scores import TextScores
from dntm.reader.streaming import ReadingPosition, Streaming, read_sentences, read_texts
from dntm.reader.text import Kinds, PreparedText, Text, check_entities, prepare, tokens_of


class Reader(TextScores):
    """A trained model and a static model, ready to read texts."""

    def __init__(self, models: ModelPair, resolver: Resolver | None = None) -> None:
        self.models = models
        self.vocabulary = models.vocabulary
        self._engine = Engine(models)
        self.meanings = Meanings(models.dynamic, models.vocabulary)
        self._streaming = Streaming(self._engine, self.meanings)
        self._resolver = resolver

    @classmethod
    def from_pretrained(
        cls,
        path: Path | str | None = None,
        static: Path | str | None = None,
        resolver: Resolver | None = None,
        *,
        precision: Precision = "double",
    ) -> Self:
        """Load a run folder or a checkpoint; if `path` is omitted, the bundled model.

        `static` is the checkpoint of a baseline to compare with. `resolver` finds the entities of
        texts that are read with entities="resolver". Single `precision` is faster; values then
        differ by about 1e-6 between batches.
        """
        return cls(ModelPair.load(path, static, precision), resolver)

    def prepare(
        self,
        text: Text,
        entities: Kinds = None,
        *,
        entities_from: From | None = None,
        border: int = 0,
    ) -> PreparedText:
        """Find the entities of a text; ValueError if it has no word.

        Names and unknown words are entities from their "first" mention on, or only if they are
        "repeated"; if omitted, as in the model's training texts. No mention crosses the `border`, a
        number of characters.
        """
        return prepare(
            text,
            self._engine.lexicon,
            entities,
            self._resolver,
            since=entities_from,
            border=border,
        )

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
        """Read many texts in batches; without `meanings`, only their tokens."""
        check_unit(unit)
        if isinstance(texts, (str, bytes, Document, PreparedText)):
            raise TypeError(f"expected several texts, not one {type(texts).__name__}: use read()")
        prepared = (self.prepare(text, entities) for text in texts)
        return read_texts(self._engine, prepared, unit, self.meanings if meanings else None)

    def read_sentences(
        self, texts: Iterable[PreparedText], *, unit: Unit = "bits"
    ) -> Iterator[tuple[PreparedText, SentenceReading]]:
        """Read many texts sentence by sentence, so that long texts are not held in memory.

        Only tokens are read, no meanings.
        """
        check_unit(unit)
        yield from read_sentences(self._engine, texts, unit, None)

    def stream(
        self,
        text: Text,
        *,
        entities: Kinds = None,
        unit: Unit = "bits",
        known: Sequence[SentenceReading] = (),
    ) -> Iterator[SentenceReading]:
        """Read sentence by sentence; reading can continue from the position of every sentence.

        `known` are sentences of an earlier stream over this text, perhaps before an edit: unchanged
        sentences at the beginning are returned as they are, and only the rest is read.
        """
        check_unit(unit)

        def sentences() -> Iterator[SentenceReading]:
            yield from self._streaming.read(self.prepare(text, entities), unit, known)

        return sentences()

    def position(
        self, history: Text | ReadingPosition, *, entities: Kinds = None
    ) -> ReadingPosition:
        """The position after a text; an empty string is the beginning."""
        if isinstance(history, ReadingPosition):
            return self._streaming.checked(history)
        if history == "":
            return self._streaming.beginning(PreparedText(name="", sentences=()), "bits")
        return self._streaming.end(self.prepare(history, entities))

    def predictions(
        self,
        history: Text | ReadingPosition,
        prefix: str | Sequence[Token] = "",
        k: int = 10,
        *,
        entities: Kinds = None,
    ) -> Predictions:
        """The k most likely next tokens after a text and the beginning of a sentence.

        `prefix` can mention the text's entities by name or as [1]. As a sequence it holds words and
        entity numbers; the next numbers introduce new entities.
        """
        position, lexicon = self.position(history, entities=entities), self._engine.lexicon
        if isinstance(prefix, str):
            prefix = tokens_of(prefix, position.names, position.surfaces, lexicon)
        check_entities(prefix, position.names, new=True)
        return predict(self._engine, position, prefix, k)

    def ranks(self, text: Text, *, entities: Kinds = None) -> list[int]:
        """The rank of every predicted token among all rows, 1 for the most likely."""
        return self._engine.ranks(self.prepare(text, entities))

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
        """Rank words and entities for the gap [] of a sentence, the most likely sentence first.

        Candidates are ranked by the surprisal of the whole sentence. They are all entities of the
        history, and as many words as `candidates` (0: all), the most likely at the gap.
        """
        check_unit(unit)
        if choose not in get_args(Choose):
            raise ValueError(f"choose {choose!r}, expected one of {', '.join(get_args(Choose))}")
        position = self.position(history, entities=entities)
        return fill_gap(
            self._engine, position, sentence, choose=choose, candidates=candidates, unit=unit
        )

    def continue_text(
        self,
        history: Text | ReadingPosition = "",
        *,
        sentences: int = 3,
        tokens: int = 60,
        temperature: float = 0.7,
        top_p: float = 0.9,
        seed: int = 0,
        entities: Kinds = None,
    ) -> Continuation:
        """Sample a continuation, with at most `tokens` tokens per sentence.

        It can mention the entities of the text.
        """
        sampling = Sampling(
            sentences=sentences, tokens=tokens, temperature=temperature, top_p=top_p, seed=seed
        )
        return sample(self.models, self.position(history, entities=entities), sampling)
