"""`dntm continue`: a text goes on, its entities with it."""

from dataclasses import dataclass, field
from typing import Annotated

import tyro

from dntm.cli.reader_options import ReaderOptions, Shared
from dntm.cli.reading_text import printable


@dataclass(frozen=True, kw_only=True)
class Command:
    """Sample a continuation of a text, in which its entities come back."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A file of plain text, CoNLL-2012, CoNLL-U or JSON lines, gzip or not; - for standard
    input."""
    sentences: int = 3
    """How many sentences to write."""
    tokens: int = 60
    """The longest a sentence may become, in words."""
    temperature: float = 1.0
    """Below 1 the likely becomes likelier; 0 always takes the likeliest word."""
    top_p: float = 0.9
    """Draw only from the likeliest words that together have this probability."""
    samples: int = 1
    """How many continuations to write, from seed, seed + 1 and so on."""
    seed: int = 0
    """The same seed gives the same continuation."""
    options: Shared = field(default_factory=ReaderOptions)
    """Which model reads, and what it takes for an entity."""

    def run(self) -> None:
        """Read the first document of the file and print what comes next."""
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}, expected at least 1")
        text = self.options.text(self.source)
        reader = self.options.reader()
        position = reader.position(reader.prepare(*text))
        for seed in range(self.seed, self.seed + self.samples):
            found = reader.continue_text(
                position,
                sentences=self.sentences,
                tokens=self.tokens,
                temperature=self.temperature,
                top_p=self.top_p,
                seed=seed,
            )
            print(printable(found.text))
