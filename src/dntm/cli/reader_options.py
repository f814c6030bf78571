"""The options that all commands share which read texts with a trained model."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dntm.corpus.document import Document
from dntm.corpus.reading import ANNOTATED, Format, files_and_format, read_documents
from dntm.corpus.source import Block
from dntm.corpus.text import Documents, parse

if TYPE_CHECKING:
    from dntm.reader.preparing import Kinds
    from dntm.reader.reader import Reader

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
    such as [1]), resolver (a coreference model). auto: chains where the text has them, else names
    and unknown words."""
    coref_model: Path | None = None
    """The weights of the coreference model for --entities resolver."""
    input_format: Format | None = None
    """How the text is written: conll2012, conllu, json or text; recognised where not given."""
    threads: int = 1
    """Threads of the matrix products; 0: as many as PyTorch chooses. More than one is slower where
    the processor is busy with something else."""

    def reader(self) -> "Reader":
        """Load the models."""
        if self.threads < 0:
            raise ValueError(f"threads is {self.threads}, expected 0 or more")
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

    def texts(
        self, source: str, documents: Documents = "file", skipped: list[str] | None = None
    ) -> Iterator[Document]:
        """The documents of a file or folder, or of standard input where the source is -."""
        inline = self.entities == "inline" or self.input_format == "inline"
        if source == "-":
            lines = sys.stdin.buffer.readlines()
            lines[:1] = [line.removeprefix(b"\xef\xbb\xbf") for line in lines[:1]]
            yield parse(Block("stdin", 1, lines), inline=inline)
            return
        path = Path(source)
        files, found = files_and_format(path, self.input_format)
        if self.entities == "chains" and found not in (*ANNOTATED, "inline"):
            raise ValueError(f"{source} is plain text and has no chains: choose other --entities")
        if inline and found == "text":
            found = "inline"
        for document in read_documents(path, files, found, documents, skipped):
            plain = found in ("text", "inline") and path.is_file() and documents == "file"
            yield replace(document, name=source) if plain else document

    def kinds(self) -> "Kinds":
        """What the reader is told to look for."""
        if self.entities == "auto":
            return "inline" if self.input_format == "inline" else None
        return self.entities


Shared = Annotated[ReaderOptions, tyro.conf.arg(name="")]
"""The options of a command, without a prefix."""
