"""`dntm read`: a text, what its entities come to mean, and the surprisal of every word."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dntm.cli.reader_options import ReaderOptions, Shared
from dntm.cli.reading_page import page
from dntm.cli.reading_text import lines
from dntm.cli.token_table import table_lines
from dntm.files import write_text
from dntm.reader.units import Unit

if TYPE_CHECKING:
    from dntm.reader.reading import Reading


@dataclass(frozen=True, kw_only=True)
class Command:
    """Read a text: meanings of its entities, sentence by sentence, and surprisals."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A file of plain text, CoNLL-2012, CoNLL-U or JSON lines, gzip or not; - for standard
    input."""
    document: int = 1
    """Which document of the file, from 1."""
    format: Literal["text", "json", "tsv", "html"] = "text"
    """text: for the terminal; json: everything; tsv: a row a word, as dntm score prints it; html:
    a page that needs nothing else."""
    output: Path | None = None
    """The file to write; standard output where not given."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    colour: Literal["auto", "always", "never"] = "auto"
    """Colour the text: auto means when the output is a terminal."""
    options: Shared = field(default_factory=ReaderOptions)
    """Which model reads, and what it takes for an entity."""

    def run(self) -> None:
        """Read and print."""
        text = self.options.text(self.source, self.document)
        reader = self.options.reader()
        reading = reader.read(reader.prepare(*text), unit=self.unit)
        if self.output is None:
            for line in self._lines(reading, colour=self._in_colour()):
                print(line)
        else:
            shown = self._lines(reading, colour=self.colour == "always")
            write_text(self.output, "".join(f"{line}\n" for line in shown))

    def _lines(self, reading: "Reading", *, colour: bool) -> Iterator[str]:
        if self.format == "text":
            return lines(reading, colour=colour)
        if self.format == "tsv":
            return table_lines([reading])
        if self.format == "json":
            return iter([json.dumps(reading.to_dict(), ensure_ascii=False)])
        return iter([page(reading).rstrip("\n")])

    def _in_colour(self) -> bool:
        terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return self.colour == "always" or (self.colour == "auto" and terminal)
