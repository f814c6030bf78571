"""`dntm read` and `dntm score`: read texts with a trained model."""

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, cast

import tyro
from tqdm import tqdm

from dntm.cli.render import html_page, text_lines
from dntm.corpus.document import Document, EmptyInputError
from dntm.corpus.formats import ANNOTATED, Format, files_and_format, has_chains, read_documents
from dntm.corpus.text import Documents
from dntm.files import new_file, write_text
from dntm.reader.reading import (
    COLUMNS,
    WORD_COLUMNS,
    SentenceReading,
    Unit,
    token_rows,
    word_rows,
)

if TYPE_CHECKING:
    from dntm.reader.reader import Reader
    from dntm.reader.text import Kinds, PreparedText

Entities = Literal["auto", "chains", "names", "unknown", "inline", "resolver", "none"]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of commands that read with a model."""

    model: Path | None = None
    """A run folder or a checkpoint; if omitted (or "default"), the bundled model."""
    static: Path | None = None
    """The static baseline to compare with, a run folder or a checkpoint. If omitted, the baseline
    in the model's folder, or else the model itself without its memory of entities."""


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(ModelOptions):
    """Options of the model and of its entities."""

    entities: tuple[Entities, ...] = ("auto",)
    """What counts as an entity, one or several of: chains (as annotated), names (runs of
    capitalized words), unknown (words outside the vocabulary), inline (words such as [1]), resolver
    (found by a coreference model); or none. auto: chains in annotated files, inline in files with
    words such as [1], else names and unknown words."""
    entities_from: Literal["first", "repeated"] | None = None
    """Names and unknown words are entities from their first mention on (first), or only if they
    occur again later (repeated). If omitted, as in the model's training texts."""
    coref_model: Path | None = None
    """Weights of the coreference model for --entities resolver (extra: coref)."""
    input_format: Format | None = None
    """Format of the text; detected if omitted. inline: text with [1], [2] as mentions."""
    precision: Literal["double", "single"] | None = None
    """Floating-point precision. Single is faster, but values then depend on the batch by about
    1e-6. If omitted, double, except for the text output of dntm read."""
    threads: int = 1
    """CPU threads; 0: PyTorch's default."""

    def reader(self, precision: Literal["double", "single"] = "double") -> "Reader":
        """Load the models, in this precision if the user has not chosen one."""
        if self.threads < 0:
            raise ValueError(f"threads is {self.threads}, expected 0 or more")
        import torch

        from dntm.corpus.resolver import StanzaResolver
        from dntm.reader.reader import Reader

        if self.threads:
            torch.set_num_threads(self.threads)
        resolver = None
        if "resolver" in self.entities:
            if self.coref_model is None:
                raise ValueError("--entities resolver needs --coref-model")
            resolver = StanzaResolver(self.coref_model)
        return Reader.from_pretrained(
            self.model, self.static, resolver, precision=self.precision or precision
        )

    def prepared(self, reader: "Reader", text: tuple[Document, "Kinds"]) -> "PreparedText":
        """Find the entities of a document."""
        document, kinds = text
        return reader.prepare(document, kinds, entities_from=self.entities_from)

    def text(self, source: str, number: int = 1) -> tuple[Document, "Kinds"]:
        """One document of a source, counted from 1, and the kinds of its entities."""
        if number < 1:
            raise ValueError(f"document {number}, expected 1 or more")
        with closing(self.texts(source)) as documents:
            found = next(islice(documents, number - 1, None), None)
        if found is None:
            raise ValueError(f"{source} has no document {number}")
        return found

    def texts(
        self,
        source: str,
        documents: Documents = "file",
        skipped: list[str] | None = None,
        empty: list[str] | None = None,
    ) -> Generator[tuple[Document, "Kinds"], None, None]:
        """The documents of a file or folder (- for standard input), each with its kinds of
        entities.

        If `empty` is given, files and documents without words are skipped and listed there.
        """
        shown = "stdin" if source == "-" else source
        with _as_path(source) as path:
            files, found = files_and_format(path, self.input_format, option="--input-format")
            if "chains" in self.entities and found not in (*ANNOTATED, "inline"):
                raise ValueError(
                    f"{shown} is plain text and has no chains: choose other --entities"
                )
            if "inline" in self.entities and found == "text":
                found = "inline"
            for file in files:
                kinds = self._kinds(file, found)
                called = shown if source == "-" else None
                try:
                    for read in read_documents(
                        path, [file], found, documents, skipped, called=called
                    ):
                        yield read, kinds
                except EmptyInputError as error:
                    if empty is None:
                        raise
                    empty.append(str(error))

    def _kinds(self, file: Path, found: Format) -> "Kinds":
        if self.entities != ("auto",):
            if "auto" in self.entities:
                raise ValueError(f"entities {', '.join(self.entities)}: auto cannot be combined")
            return cast("Kinds", self.entities)
        if found == "inline":
            return "inline"
        return "chains" if has_chains(file, found) else ("names", "unknown")


@contextmanager
def _as_path(source: str) -> Iterator[Path]:
    """The path of a source; standard input is copied to a file, so that its format can be
    detected.
    """
    if source != "-":
        yield Path(source)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


Shared = Annotated[ReaderOptions, tyro.conf.arg(name="")]
"""Options without a prefix."""
File = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="FILE",
        help="A file of plain text, CoNLL-2012, CoNLL-U or JSON lines, optionally gzipped; - for "
        "standard input.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Read:
    """Read a text: predicted words for its entities after each sentence, and mean surprisals."""

    source: File
    document: int = 1
    """Number of the document in the file, from 1."""
    format: Literal["text", "html", "json"] = "text"
    """text: for the terminal; html: a page; json: all results. For tables, see dntm score."""
    output: Path | None = None
    """Output file; if omitted, standard output."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    color: Literal["auto", "always", "never"] = "auto"
    """Colored text; auto: if the output is a terminal."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Read and print."""
        text = self.options.text(self.source, self.document)
        reader = self.options.reader("double" if self.format == "json" else "single")
        reading = reader.read(self.options.prepared(reader, text), unit=self.unit)
        if self.format == "json":
            lines = iter([json.dumps(reading.to_dict(), ensure_ascii=False)])
        elif self.format == "html":
            lines = iter([html_page(reading)])
        else:
            lines = text_lines(reading, color=self._in_color())
        if self.output is None:
            for line in lines:
                print(line)
        else:
            write_text(self.output, "".join(f"{line}\n" for line in lines))

    def _in_color(self) -> bool:
        terminal = self.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return self.color == "always" or (self.color == "auto" and terminal)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Print the surprisal of every token of many texts, for the model and its static baseline."""

    sources: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES")]
    """Files or folders of plain text, CoNLL-2012, CoNLL-U or JSON lines, optionally gzipped; - for
    standard input."""
    format: Literal["tsv", "jsonl"] = "tsv"
    """tsv: tab-separated with a header line; jsonl: one JSON object per line."""
    output: Path | None = None
    """Output file; if omitted, standard output."""
    words: bool = False
    """Print one row per white-space separated word instead of one per token."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    documents: Documents = "file"
    """Plain text: one document per file, or one between blank lines (one paragraph per line)."""
    on_error: Literal["stop", "skip"] = "stop"
    """Stop at a file that cannot be read or a malformed document, or skip and list it."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Print while reading: only a few sentences of a long text are held in memory."""
        if not self.sources:
            raise ValueError("no file given, expected at least one")
        skipped: list[str] = []
        empty: list[str] = []
        problems: list[Exception] = []
        reader = self.options.reader()
        bar: tqdm[Any] = tqdm(desc="scoring", unit=" words", disable=None, mininterval=0.5)
        scored = 0
        with bar, self._target() as target:
            texts = _until_a_problem(self._texts(reader, skipped, empty), problems)
            write = self._writer(target)
            found = reader.read_sentences(texts, unit=self.unit)
            for _, group in groupby(found, key=lambda some: id(some[0])):
                scored += 1
                for row in self._rows(group, bar):
                    write(row)
            for problem in (*skipped, *empty):
                bar.write(f"skipped: {problem}", file=sys.stderr)
            for error in problems:
                raise error
            if empty and not scored:
                raise ValueError("no text left to score: every file is empty")

    def _writer(self, target: TextIO) -> Callable[[Sequence[object]], object]:
        """A function that writes one row; missing values are empty in TSV and null in JSON."""
        columns = WORD_COLUMNS if self.words else COLUMNS
        if self.format == "jsonl":
            return lambda row: print(
                json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False), file=target
            )
        writer = csv.writer(target, delimiter="\t", lineterminator="\n")
        writer.writerow(columns)
        return lambda row: writer.writerow(
            f"{value:.6f}" if isinstance(value, float) else value for value in row
        )

    def _rows(
        self, found: Iterator[tuple["PreparedText", SentenceReading]], bar: "tqdm[Any]"
    ) -> Iterator[tuple[object, ...]]:
        """The rows of one text."""
        text, first = next(found)
        names = text.names()

        def sentences() -> Iterator[SentenceReading]:
            for sentence in chain([first], (sentence for _, sentence in found)):
                yield sentence
                bar.update(len(sentence.tokens) - 1)

        if self.words:
            return word_rows(text.name, text.text, sentences(), names)
        return chain.from_iterable(token_rows(text.name, s, names) for s in sentences())

    def _texts(
        self, reader: "Reader", skipped: list[str], empty: list[str]
    ) -> Iterator["PreparedText"]:
        noted = skipped if self.on_error == "skip" else None
        for source in self.sources:
            try:
                for text in self.options.texts(source, self.documents, noted, empty):
                    yield self.options.prepared(reader, text)
            except (ValueError, OSError) as error:
                if noted is None:
                    raise
                noted.append(str(error))

    def _target(self) -> AbstractContextManager[TextIO]:
        return nullcontext(sys.stdout) if self.output is None else new_file(self.output)


def _until_a_problem(
    texts: Iterator["PreparedText"], problems: list[Exception]
) -> Iterator["PreparedText"]:
    """The texts before one that cannot be read, so that a batch is finished before the error."""
    try:
        yield from texts
    except (ValueError, OSError) as error:
        problems.append(error)
