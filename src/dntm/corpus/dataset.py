"""The dataset folder: anonymised documents by split, the vocabulary, and all that made them.

dataset.json    format version, settings, counts, source, licence, content hash
vocab.txt       one row of the embedding tables a line
train.jsonl     one anonymised document a line: words are strings, entities integers
dev.jsonl
test.jsonl
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dntm.corpus.document import AnonymizedDocument, are_sentences
from dntm.corpus.source import InputError, numbered_lines
from dntm.corpus.splits import SPLITS
from dntm.corpus.vocabulary import Vocabulary

FORMAT_VERSION = 1
_HASHED = ("vocab.txt", *(f"{split}.jsonl" for split in SPLITS))


def to_json(document: AnonymizedDocument) -> str:
    """One line of JSON, the same for the same document."""
    fields: dict[str, Any] = {
        "name": document.name,
        "sentences": document.sentences,
        "surfaces": document.surfaces,
    }
    if document.ideal is not None:
        fields["ideal"] = document.ideal
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def from_json(line: str) -> AnonymizedDocument:
    """Read such a line; ValueError where it is not one."""
    fields = json.loads(line)
    if not isinstance(fields, dict) or not are_sentences(fields.get("sentences"), (str, int)):
        raise ValueError("expected a document with sentences of words and entity numbers")
    if not are_sentences(fields.get("surfaces", []), (str,)):
        raise ValueError("expected surfaces: the words of each entity token")
    return AnonymizedDocument(
        name=str(fields.get("name", "")),
        sentences=fields["sentences"],
        surfaces=fields.get("surfaces", ()),
        ideal=fields.get("ideal"),
    )


def content_hash(folder: Path) -> str:
    """SHA-256 over the vocabulary and the documents."""
    digest = hashlib.sha256()
    for name in _HASHED:
        path = folder / name
        if path.exists():
            digest.update(f"{name}\0".encode())
            with path.open("rb") as handle:
                while piece := handle.read(1 << 20):
                    digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True)
class Dataset:
    """An opened dataset folder."""

    folder: Path
    information: dict[str, Any]
    vocabulary: Vocabulary

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open a folder that `dntm data build` made."""
        folder = Path(folder)
        path = folder / "dataset.json"
        if not path.is_file():
            raise ValueError(f"{folder} is no dataset: it has no dataset.json (dntm data build)")
        try:
            information = json.loads(path.read_text(encoding="utf-8"))
            version, entities = information["format_version"], information["entities"]
            rows = information["vocabulary"]
            if not isinstance(entities, int) or not all(
                isinstance(information["counts"][split]["documents"], int) for split in SPLITS
            ):
                raise TypeError("expected whole numbers of entities and documents")
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from None
        if version != FORMAT_VERSION:
            raise ValueError(f"{path}: format version {version}, expected {FORMAT_VERSION}")
        vocabulary = Vocabulary.load(folder / "vocab.txt", entities=entities)
        if len(vocabulary) != rows:
            raise ValueError(f"{folder / 'vocab.txt'}: {len(vocabulary)} rows, expected {rows}")
        return cls(folder, information, vocabulary)

    @property
    def splits(self) -> list[str]:
        """The splits that hold documents."""
        return [split for split in SPLITS if self.information["counts"][split]["documents"]]

    def documents(self, split: str) -> Iterator[AnonymizedDocument]:
        """The documents of a split, one at a time."""
        if split not in SPLITS:
            raise ValueError(f"split {split!r}, expected one of {', '.join(SPLITS)}")
        path = self.folder / f"{split}.jsonl"
        for number, line in numbered_lines(path):
            try:
                document = from_json(line.decode())
            except ValueError as error:
                raise InputError(str(path), number, f"not a document: {error}") from None
            if document.entities > self.vocabulary.entities:
                raise InputError(
                    str(path),
                    number,
                    f"entity {document.entities} has no row in the vocabulary, "
                    f"expected 1 to {self.vocabulary.entities}",
                )
            yield document
