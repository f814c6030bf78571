"""`dntm continue`, `fill` and `serve`, and the options of all commands that read texts."""

import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

import tyro

from dntm.cli.runs import Without, print_table, printable
from dntm.corpus.document import Document, files_below
from dntm.corpus.formats import ANNOTATED, Format, files_and_format, has_chains, read_documents
from dntm.corpus.text import Documents
from dntm.reader.reading import Unit

if TYPE_CHECKING:
    from dntm.reader.questions import Filling
    from dntm.reader.reader import Reader
    from dntm.reader.text import Kinds

_LONG = 100_000
"""Plain texts with more bytes than this are read in parts."""
Entities = Literal["auto", "chains", "names", "unknown", "inline", "resolver", "none"]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of commands that read with a model."""

    model: Path | None = None
    """A run folder or a checkpoint; if omitted (or "default"), the bundled model."""
    static: Path | None = None
    """The static baseline to compare with: a run folder, a checkpoint, or "default" (that of the
    bundled model). If omitted, the baseline in the model's folder; if there is none, the same model
    without its memory of entities."""
    without: Without = ()
    """Leave out a part of both models: memory, or an extension such as pointer. Can be repeated."""


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(ModelOptions):
    """Options of the model and of its entities."""

    entities: tuple[Entities, ...] = ("auto",)
    """What counts as an entity: chains (as annotated), names (runs of capitalized words), unknown
    (nouns outside the vocabulary), inline (words such as [1]), resolver (found by a coreference
    model), or none. Several can be combined. auto: chains in annotated files, inline in files with
    words such as [1], names and unknown in all other files and in tables."""
    coref_model: Path | None = None
    """Weights of the coreference model for --entities resolver (see docs/reading.md)."""
    input_format: Format | None = None
    """Format of the text; if omitted, it is detected. inline: text with [1], [2] as mentions."""
    precision: Literal["double", "single"] | None = None
    """Floating-point precision. Single is faster, but values vary by up to 1e-5 with the batch. If
    omitted: single for pretrained cores and for the text and HTML output of dntm read, double
    otherwise."""
    threads: int = 1
    """CPU threads; 0: PyTorch's default."""

    def reader(self, precision: Literal["auto", "single"] = "auto") -> "Reader":
        """Load the models; `precision` applies if the user has not chosen one."""
        from dntm.corpus.resolver import StanzaResolver
        from dntm.reader.reader import Reader
        from dntm.training.processes import set_threads

        set_threads(self.threads)
        resolver = None
        if "resolver" in self.entities:
            if self.coref_model is None:
                raise ValueError("--entities resolver needs --coref-model")
            resolver = StanzaResolver(self.coref_model)
        reader = Reader.from_pretrained(
            self.model,
            self.static,
            resolver,
            precision=self.precision or precision,
            without=self.without,
        )
        if reader.models.spelling is None:
            print(
                "note: the model has no spelling.json, so the surprisal of a name or an unknown "
                "word does not depend on its spelling (run dntm spelling to add it)",
                file=sys.stderr,
            )
        return reader

    def text(self, source: str, number: int = 1) -> tuple[Document, "Kinds"]:
        """One document of a source, counted from 1, and the kinds of its entities."""
        if number < 1:
            raise ValueError(f"document is {number}, expected 1 or more")
        if Path(source).is_dir():
            raise ValueError(f"{source} is a folder, expected a file (dntm score reads folders)")
        with closing(self.texts(source)) as documents:
            found = next(islice(documents, number - 1, None), None)
        if found is None:
            raise ValueError(f"{source} has no document {number}")
        return found[:2]

    def texts(
        self,
        source: str,
        documents: Documents = "file",
        skipped: list[str] | None = None,
        empty: list[str] | None = None,
        *,
        lazily: bool = False,
    ) -> Generator[tuple[Document, "Kinds", bool], None, None]:
        """The documents of a file or folder (- for standard input), each with its kinds of
        entities, and whether it is to be prepared lazily.

        If `empty` is given, files and documents without words are skipped and listed there.
        """
        shown = "stdin" if source == "-" else source
        with as_path(source) as path:
            files, found = files_and_format(path, self.input_format, option="--input-format")
            if path.is_dir() and (others := set(files_below(path)).difference(files)):
                names = ", ".join(sorted(str(file.relative_to(path)) for file in others))
                print(f"note: ignored files that are not {found}: {names:.200}", file=sys.stderr)
            if "chains" in self.entities and found not in (*ANNOTATED, "inline"):
                raise ValueError(
                    f"{shown} is plain text and has no chains: choose other --entities"
                )
            if "inline" in self.entities and found == "text":
                found = "inline"
            for file in files:
                kinds = self._kinds(file, found)
                lazy = (
                    lazily
                    and (found, documents) == ("text", "file")
                    and {"names", "unknown", "none"}.issuperset(kinds or ())
                    and file.stat().st_size > _LONG
                )
                read = read_documents(
                    path,
                    [file],
                    found,
                    documents,
                    skipped,
                    empty=empty,
                    called=shown if source == "-" else None,
                    whole=not lazy,
                )
                yield from ((document, kinds, lazy) for document in read)

    def _kinds(self, file: Path, found: Format) -> "Kinds":
        if self.entities != ("auto",):
            if "auto" in self.entities:
                raise ValueError(f"entities {', '.join(self.entities)}: auto cannot be combined")
            return cast("Kinds", self.entities)
        if found == "inline":
            return "inline"
        return "chains" if has_chains(file, found) else ("names", "unknown")


@contextmanager
def as_path(source: str) -> Iterator[Path]:
    """The path of a source; standard input is copied to a file to detect its format."""
    if source != "-":
        check_exists(source)
        yield Path(source)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def check_exists(source: str) -> None:
    """Raise ValueError if a source does not exist."""
    if source != "-" and not Path(source).exists():
        raise ValueError(f"{source}: no such file or folder (- reads from standard input)")


def output_format(given: str | None, output: Path | None, formats: Sequence[str]) -> str:
    """The given format, else the extension of the output file, else the first format."""
    extension = output.suffix[1:] if output else ""
    if not given and extension not in (*formats, "txt", ""):
        known = ", ".join(f".{name}" for name in formats)
        raise ValueError(f"--output {output}: expected {known} as the extension, or --format")
    return given or (extension if extension in formats else formats[0])


def check_output(output: Path | None, *sources: str) -> None:
    """Refuse to overwrite an input file with the output."""
    if output and output.exists() and any(Path(s).exists() and output.samefile(s) for s in sources):
        raise ValueError(f"--output {output} is an input file, expected another file")


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
class Continue:
    """Sample a continuation of a text, one word at a time (experimental).

    The sentences may be fluent, but are not necessarily true or coherent.
    """

    main_options: ClassVar = ("sentences", "temperature", "samples", "seed", "model")

    source: File
    sentences: int = 3
    """Number of sentences to sample."""
    tokens: int = 60
    """Maximum number of tokens per sentence."""
    temperature: float = 0.7
    """Sampling temperature. Below 1, likely words become more likely; 0 always selects the most
    likely word."""
    top_p: float = 0.9
    """Nucleus sampling: sample from the most likely words with this total probability."""
    samples: int = 1
    """Number of continuations, with the seeds SEED, SEED + 1, ..."""
    seed: int = 0
    """Random seed."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Read the first document of the file and print its continuation."""
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}, expected at least 1")
        text, kinds = self.options.text(self.source)
        reader = self.options.reader()
        position = reader.position(text, entities=kinds)
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


@dataclass(frozen=True, kw_only=True)
class Fill:
    """Rank words and entities for a gap by the surprisal of the filled sentence."""

    main_options: ClassVar = ("history", "choose", "function_words", "top", "model")

    sentence: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SENTENCE")]
    """A sentence with [] for the gap, such as "[1] sat down at the [] .", where [1] is the first
    entity of --history."""
    history: str | None = None
    """The text before the sentence: a file, or - for standard input."""
    choose: Literal["both", "words", "entities"] = "both"
    """What can fill the gap."""
    candidates: int = 200
    """Number of words to try: those most likely at the gap. 0: the whole vocabulary."""
    function_words: bool = False
    """Also rank function words and punctuation, not only content words."""
    top: int = 10
    """Number of candidates to print."""
    unit: Unit = "bits"
    """The unit of surprisal."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""

    def run(self) -> None:
        """Print the best candidates of both models next to each other."""
        if self.top < 1:
            raise ValueError(f"top is {self.top}, expected at least 1")
        text, kinds = self.options.text(self.history) if self.history is not None else ("", None)
        reader = self.options.reader()
        found = reader.fill(
            self.sentence,
            text,
            entities=kinds,
            choose=self.choose,
            candidates=self.candidates,
            function_words=self.function_words,
            unit=self.unit,
        )
        if not found:
            raise ValueError("no candidates for the gap: the text before it has no entities")
        static = sorted(found, key=lambda filling: filling.static_surprisal)
        rows: list[tuple[str, ...]] = [("model", self.unit, "static baseline", self.unit)]
        for ours, theirs in islice(zip(found, static, strict=True), self.top):
            values = (f"{ours.surprisal:.2f}", f"{theirs.static_surprisal:.2f}")
            rows.append((_filled(ours), values[0], _filled(theirs), values[1]))
        width = max(len(row[2]) for row in rows)
        print("surprisal of the filled sentence")
        print_table([(word, bits, other.ljust(width), more) for word, bits, other, more in rows])


def _filled(filling: "Filling") -> str:
    return printable(filling.word) + (f" [{filling.entity}]" if filling.entity else "")


@dataclass(frozen=True, kw_only=True)
class Serve(ModelOptions):
    """Serve a local web page that reads texts and predicts unknown words."""

    main_options: ClassVar = ("host", "port", "browser", "model")

    host: str = "127.0.0.1"
    """Address to listen on. The default is reachable from this machine only."""
    names: tuple[str, ...] = ()
    """Additional host names of this machine, such as reading.example. Requests to other names are
    refused."""
    port: int = 8321
    """Port to listen on; 0: any free port."""
    browser: bool = True
    """Open the page in a browser; --no-browser: only serve it."""
    threads: int = 2
    """Number of worker threads; each reads one text at a time."""

    def run(self) -> None:
        """Serve until interrupted."""
        from dntm.web.server import Limits, address, bind, serve

        if self.threads < 1:
            raise ValueError(f"threads is {self.threads}, expected at least 1")
        with bind(self.host, self.port) as listening:
            import torch

            from dntm.reader.reader import Reader
            from dntm.web.app import create_app

            torch.set_num_threads(1)
            reader = Reader.from_pretrained(self.model, self.static, without=self.without)
            app = create_app(reader, Limits(threads=self.threads), hosts=[self.host, *self.names])
            print(f"Serving on {address(listening)} (Ctrl-C to stop)", flush=True)
            with suppress(KeyboardInterrupt):
                serve(app, listening, browser=self.browser)
