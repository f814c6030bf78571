"""`dntm fill`: which words and entities fit a gap after a text."""

import itertools
from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from dntm.cli.reader_options import ReaderOptions, Shared
from dntm.reader.units import Unit


@dataclass(frozen=True, kw_only=True)
class Command:
    """Rank words and entities for the gap of a sentence, by the surprisal of the sentence."""

    sentence: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SENTENCE")]
    """The sentence with its gap as [], for example "[1] sat down at the [] ."; [1] is the first
    entity of the text before it."""
    history: str | None = None
    """The text before it: a file, or - for standard input."""
    choose: Literal["both", "words", "entities"] = "both"
    """What may stand in the gap."""
    candidates: int = 200
    """How many words to try, the likeliest at the gap; 0: all of the vocabulary."""
    top: int = 10
    """How many to print."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    options: Shared = field(default_factory=ReaderOptions)
    """Which model reads, and what it takes for an entity."""

    def run(self) -> None:
        """Print the likeliest, a line each."""
        texts = iter(()) if self.history is None else self.options.texts(self.history)
        text = next(itertools.islice(texts, 1), "")
        found = self.options.reader().fill(
            self.sentence,
            text,
            entities=self.options.kinds() if text else None,
            choose=self.choose,
            candidates=self.candidates,
            unit=self.unit,
        )
        print(f"{'':<24}{'dynamic':>10}{'static':>10}  {self.unit} of the sentence")
        for filling in found[: self.top]:
            word = f"{filling.word} [{filling.entity}]" if filling.entity else filling.word
            print(f"{word:<24}{filling.surprisal:>10.3f}{filling.static_surprisal:>10.3f}")
