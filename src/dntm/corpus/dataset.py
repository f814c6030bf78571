"""The dataset folder: anonymised documents by split, the vocabulary, and all that made them.

dataset.json    format version, settings, counts, source, licence, content hash
vocab.txt       one row of the embedding tables a line
train.jsonl     one anonymised document a line: words are strings, entities integers
dev.jsonl
test.jsonl

Entities are numbered by first appearance. With `rows: lend` there may be more of them than rows:
`corpus.rows` tells which row each one has when.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

from dntm.corpus.document import AnonymizedDocument, are_sentences
from dntm.corpus.source import InputError, numbered_lines
from dntm.corpus.vocabulary import TextSettings, Vocabulary
from dntm.settings import cut, parse_json, read_json

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
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
    fields = parse_json(line)
    if not isinstance(fields, dict) or not are_sentences(fields.get("sentences"), (str, int)):
        raise ValueError("expected a document with sentences of words and entity numbers")
    if not fields["sentences"]:
        raise ValueError("expected at least one sentence")
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
        information = read_json(path)
        try:
            version, entities = information["format_version"], information["entities"]
            rows = information["vocabulary"]
            counted = [SplitStatistics(**information["counts"][s]).as_plain() for s in SPLITS]
            numbers = [entities, *(number for counts in counted for number in counts.values())]
            if not all(type(number) is int and number >= 0 for number in numbers):
                raise TypeError("expected whole numbers of entities, documents and tokens")
            if not isinstance(information.setdefault("settings", {}), dict):
                raise TypeError("expected settings by name")
            settings = TextSettings.from_plain(information["settings"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {cut(repr(error), 300)}") from None
        if version != FORMAT_VERSION:
            raise ValueError(f"{path}: format version {version!r:.40}, expected {FORMAT_VERSION}")
        vocabulary = Vocabulary.load(folder / "vocab.txt", entities=entities)
        vocabulary = replace(vocabulary, settings=settings)
        if len(vocabulary) != rows:
            raise ValueError(f"{folder / 'vocab.txt'}: {len(vocabulary)} rows, expected {rows}")
        return cls(folder, information, vocabulary)

    @property
    def splits(self) -> list[str]:
        """The splits that hold documents."""
        return [split for split in SPLITS if self.information["counts"][split]["documents"]]

    @property
    def lends(self) -> bool:
        """Whether documents may have more entities than the vocabulary has rows for them."""
        return bool(self.information["settings"].get("rows") == "lend")

    def check_content(self) -> Self:
        """The dataset itself; ValueError where its files are not those that were built."""
        if self.information.get("content_hash") != content_hash(self.folder):
            raise ValueError(f"{self.folder} was changed since it was built: its hash differs")
        return self

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
            if document.largest > self.vocabulary.entities and not self.lends:
                raise InputError(
                    str(path),
                    number,
                    f"entity {document.largest} has no row in the vocabulary, "
                    f"expected 1 to {self.vocabulary.entities}",
                )
            yield document


@dataclass
class SplitStatistics:
    """Counts over the documents of one split, and the averages of Table 1."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    entity_tokens: int = 0
    entities: int = 0
    repeated_entities: int = 0
    unknown_tokens: int = 0
    rows: Counter[str] = field(default_factory=Counter, repr=False)
    """How often each known word occurs; of documents counted here, not of ones read back."""

    def as_plain(self) -> dict[str, int]:
        """The counts as JSON holds them."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "rows"}

    def row_counts(self, vocabulary: Vocabulary) -> list[int]:
        """How often each row occurs; those of entities are 0."""
        specials = [self.unknown_tokens, self.sentences, self.sentences]
        words = [self.rows[word] for word in vocabulary.words]
        return [*specials, *[0] * vocabulary.entities, *words]

    def add(self, document: AnonymizedDocument, vocabulary: Vocabulary) -> None:
        """Count one more document."""
        tokens = [token for sentence in document.sentences for token in sentence]
        occurrences = Counter(token for token in tokens if isinstance(token, int))
        self.documents += 1
        self.sentences += len(document.sentences)
        self.tokens += len(tokens)
        self.entity_tokens += occurrences.total()
        self.entities += len(occurrences)
        self.repeated_entities += sum(count > 1 for count in occurrences.values())
        known = [token for token in tokens if isinstance(token, str) and token in vocabulary]
        self.unknown_tokens += len(tokens) - occurrences.total() - len(known)
        self.rows.update(known)

    def table_1(self) -> tuple[float, ...]:
        """The rows of Table 1."""
        documents = max(self.documents, 1)
        return (
            self.documents,
            self.sentences / documents,
            self.entities / documents,
            self.repeated_entities / documents,
            self.entity_tokens / max(self.entities, 1),
        )
