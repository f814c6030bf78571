"""`dntm fill`: which words and entities fit a gap after a text."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from dntm.cli.reader_options import ReaderOptions, Shared
from dntm.cli.reading_text import printable
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
        if self.top < 1:
            raise ValueError(f"top is {self.top}, expected at least 1")
        text = None if self.history is None else self.options.text(self.history)
        reader = self.options.reader()
        found = reader.fill(
            self.sentence,
            "" if text is None else reader.prepare(*text),
            choose=self.choose,
            candidates=self.candidates,
            unit=self.unit,
        )
        print(f"{'':<24}{'dynamic':>10}{'static':>10}  {self.unit} of the sentence")
        for filling in found[: self.top]:
            word = printable(filling.word) + (f" [{filling.entity}]" if filling.entity else "")
            print(f"{word:<24}{filling.surprisal:>10.3f}{filling.static_surprisal:>10.3f}")
