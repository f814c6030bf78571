"""The options that all commands share which read texts with a trained model."""

import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dntm.corpus.document import Document
from dntm.corpus.reading import (
    ANNOTATED,
    Format,
    files_and_format,
    has_chains,
    read_documents,
)
from dntm.corpus.text import Documents

if TYPE_CHECKING:
    from dntm.reader.preparing import Kinds
    from dntm.reader.reader import Reader

MOST_THREADS = 512
Entities = Literal["auto", "chains", "names", "unknown", "inline", "resolver"]


@dataclass(frozen=True, kw_only=True)
class ReaderOptions:
    """Which model reads, and what it takes for an entity."""

    model: Path | None = None
    """A run folder or a checkpoint; the model that comes with dntm where not given."""
    static: Path | None = None
    """The baseline to compare with, a run folder or a checkpoint; where not given, the one inside
    the model's folder, or else the model itself without its memory."""
    entities: Entities = "auto"
    """What counts as an entity: chains (as annotated), names (runs of capitalised words that come
    more than once), unknown (words outside the vocabulary that come more than once), inline (words
    such as [1]), resolver (a coreference model). auto: chains in a file that annotates them, else
    names and unknown words."""
    coref_model: Path | None = None
    """The weights of the coreference model for --entities resolver."""
    input_format: Format | None = None
    """How the text is written: conll2012, conllu, json or text; recognised where not given."""
    threads: int = 1
    """Threads of the matrix products; 0: as many as PyTorch chooses. More than one is slower where
    the processor is busy with something else."""

    def reader(self) -> "Reader":
        """Load the models."""
        if not 0 <= self.threads <= MOST_THREADS:
            raise ValueError(f"threads is {self.threads}, expected 0 to {MOST_THREADS}")
        import torch

        from dntm.corpus.resolver import StanzaResolver
        from dntm.reader.reader import Reader

        if self.threads:
            torch.set_num_threads(self.threads)
        resolver = None
        if self.entities == "resolver":
            if self.coref_model is None:
                raise ValueError("--entities resolver needs --coref-model")
            resolver = StanzaResolver(self.coref_model)
        return Reader.from_pretrained(self.model, self.static, resolver)

    def text(self, source: str, number: int = 1) -> tuple[Document, "Kinds"]:
        """One document of a source, from 1, and what the reader is to look for in it."""
        if number < 1:
            raise ValueError(f"document {number}, expected 1 or more")
        with closing(self.texts(source)) as documents:
            found = next(islice(documents, number - 1, None), None)
        if found is None:
            raise ValueError(f"{source} has no document {number}")
        return found

    def texts(
        self, source: str, documents: Documents = "file", skipped: list[str] | None = None
    ) -> Generator[tuple[Document, "Kinds"], None, None]:
        """The documents of a file or folder, or of standard input where the source is -.

        Beside each of them what the reader is to look for, the same throughout a file.
        """
        shown = "stdin" if source == "-" else source
        with _as_path(source) as path:
            files, found = files_and_format(path, self.input_format, option="--input-format")
            if self.entities == "chains" and found not in (*ANNOTATED, "inline"):
                raise ValueError(
                    f"{shown} is plain text and has no chains: choose other --entities"
                )
            if self.entities == "inline" and found == "text":
                found = "inline"
            plain = found in ("text", "inline") and path.is_file() and documents == "file"
            for file in files:
                kinds = self._kinds(file, found)
                called = shown if source == "-" else None
                for read in read_documents(path, [file], found, documents, skipped, called=called):
                    yield replace(read, name=shown) if plain else read, kinds

    def _kinds(self, file: Path, found: Format) -> "Kinds":
        if self.entities != "auto":
            return self.entities
        if found == "inline":
            return "inline"
        return "chains" if has_chains(file, found) else ("names", "unknown")


@contextmanager
def _as_path(source: str) -> Iterator[Path]:
    """The path of a source; standard input becomes a file, to be recognised and read like one."""
    if source != "-":
        yield Path(source)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


Shared = Annotated[ReaderOptions, tyro.conf.arg(name="")]
"""The options of a command, without a prefix."""
