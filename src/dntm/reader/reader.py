"""Reader: a text in, what the model makes of it out.

    reader = Reader.from_pretrained("runs/d")
    reading = reader.read("Old Marta sold her mule . Marta ...")

Beside the dynamic model stands a static one, so that every number has one to compare with.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from dntm.corpus.document import AnonymizedDocument, Document, Token
from dntm.corpus.resolver import Resolver
from dntm.reader.answers import Continuation, Filling, Predictions, Swap
from dntm.reader.position import ReadingPosition
from dntm.reader.reading import Reading, SentenceReading, Unit

Text = str | Document | AnonymizedDocument


class Reader:
    """A trained model and a static one beside it, ready to read texts."""

    @classmethod
    def from_pretrained(
        cls,
        path: Path | str | None = None,
        static: Path | str | None = None,
        resolver: Resolver | None = None,
    ) -> Self:
        """Load a run folder or a checkpoint; without a path, the model that ships with dntm."""
        raise NotImplementedError

    def read(self, text: Text, *, entities: object = None, unit: Unit = "bits") -> Reading:
        """Read a whole text. ValueError where it has no word."""
        raise NotImplementedError

    def read_all(
        self, texts: Iterable[Text], *, entities: object = None, unit: Unit = "bits"
    ) -> Iterator[Reading]:
        """Read many texts, several at once; the numbers are those of `read`."""
        raise NotImplementedError

    def stream(
        self,
        text: Text,
        *,
        entities: object = None,
        unit: Unit = "bits",
        known: Sequence[SentenceReading] = (),
    ) -> Iterator[SentenceReading]:
        """Read sentence by sentence; every sentence has a position to read on from.

        `known` are sentences of an earlier stream over this text, perhaps before an edit: those
        at the beginning that still hold are given again as they are, and only the rest is read.
        """
        raise NotImplementedError

    def position(self, history: Text | ReadingPosition, **_: object) -> ReadingPosition:
        """The position after a text; an empty string is the beginning."""
        raise NotImplementedError

    def predictions(
        self, history: Text | ReadingPosition, prefix: str | Sequence[Token] = "", k: int = 10
    ) -> Predictions:
        """The likeliest next tokens after `history` and the beginning of a sentence."""
        raise NotImplementedError

    def fill(self, sentence: str, history: Text | ReadingPosition = "") -> list[Filling]:
        """Rank words and entities for the gap [] of a sentence, likeliest sentence first."""
        raise NotImplementedError

    def swap(self, text: Text, mention: tuple[int, int], entity: int) -> Swap:
        """Give the mention at (sentence, token), from 0, to another entity."""
        raise NotImplementedError

    def continue_text(self, history: Text | ReadingPosition) -> Continuation:
        """Sample a continuation."""
        raise NotImplementedError
