"""`dntm score`: surprisals only, one tidy row a word, for any number of documents."""

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import tyro
from tqdm import tqdm

from dntm.cli.reader_options import ReaderOptions, Shared
from dntm.cli.token_table import table_lines
from dntm.corpus.text import Documents
from dntm.files import new_file
from dntm.reader.reading import COLUMNS, Reading
from dntm.reader.units import Unit

if TYPE_CHECKING:
    from dntm.reader.prepared import PreparedText
    from dntm.reader.reader import Reader


@dataclass(frozen=True, kw_only=True)
class Command:
    """Print the surprisal of every word, under the dynamic and under the static model."""

    sources: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """Files or folders of plain text, CoNLL-2012, CoNLL-U or JSON lines, gzip or not; - for
    standard input."""
    format: Literal["tsv", "jsonl"] = "tsv"
    """tsv: tab-separated with a header line; jsonl: a JSON object a line."""
    output: Path | None = None
    """The file to write; standard output where not given."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    documents: Documents = "file"
    """Plain text: a document a file, or one between every two empty lines."""
    on_error: Literal["stop", "skip"] = "stop"
    """A file that cannot be read or a malformed document ends the scoring, or is left out and
    named."""
    options: Shared = field(default_factory=ReaderOptions)
    """Which model reads, and what it takes for an entity."""

    def run(self) -> None:
        """Print while reading."""
        if not self.sources:
            raise ValueError("no file given, expected at least one")
        skipped: list[str] = []
        reader = self.options.reader()
        bar: tqdm[Any] = tqdm(desc="scoring", unit=" documents", disable=None, mininterval=0.5)
        with bar, self._target() as target:
            problems: list[Exception] = []
            texts = _until_a_problem(self._texts(reader, skipped), problems)
            readings = reader.read_all(texts, unit=self.unit, meanings=False)
            for line in self._lines(_counted(readings, bar)):
                print(line, file=target)
            for error in problems:
                raise error
        for problem in skipped:
            print(f"left out: {problem}", file=sys.stderr)

    def _texts(self, reader: "Reader", skipped: list[str]) -> Iterator["PreparedText"]:
        noted = skipped if self.on_error == "skip" else None
        for source in self.sources:
            try:
                for text in self.options.texts(source, self.documents, noted):
                    yield reader.prepare(*text)
            except (ValueError, OSError) as error:
                if noted is None:
                    raise
                noted.append(str(error))

    def _target(self) -> AbstractContextManager[TextIO]:
        return nullcontext(sys.stdout) if self.output is None else new_file(self.output)

    def _lines(self, readings: Iterator[Reading]) -> Iterator[str]:
        if self.format == "tsv":
            yield from table_lines(readings)
            return
        for reading in readings:
            for row in reading.rows():
                yield json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False)


def _until_a_problem(
    texts: Iterator["PreparedText"], problems: list[Exception]
) -> Iterator["PreparedText"]:
    """The texts up to one that cannot be read: texts are read several at once, and none is lost."""
    try:
        yield from texts
    except (ValueError, OSError) as error:
        problems.append(error)


def _counted(readings: Iterator[Reading], bar: "tqdm[Any]") -> Iterator[Reading]:
    notes = 0
    for reading in readings:
        notes += bool(reading.notes)
        yield reading
        bar.update()
    if notes:
        print(
            f"note: {notes} documents have more entities than the model has rows; "
            "their least frequent ones stay words",
            file=sys.stderr,
        )
