"""The dataset folder: anonymized documents by split, the vocabulary, and how they were made.

dataset.json    format version, settings, counts, source, license, content hash
vocab.txt       one row of the embedding tables per line
counts.txt      how often each row occurs in the training split
train.jsonl     one anonymized document per line: words are strings, entities integers
dev.jsonl
test.jsonl

Entities are numbered by first appearance. With `overflow: evict` a document may have more entities
than the vocabulary has entity rows.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self

from dntm.corpus.document import AnonymizedDocument, InputError, are_sentences, numbered_lines
from dntm.corpus.vocabulary import TextSettings, Vocabulary, load_vocabulary
from dntm.files import new_folder, resolved, write_text
from dntm.settings import cut, parse_json, read_json

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
FORMAT_VERSION = 1
_HASHED = ("vocab.txt", *(f"{split}.jsonl" for split in SPLITS))
_MANY_UNKNOWN = 0.02
_FEW, _LONG = 15, 8
"""Fewer entities per document with more mentions each suggest that types were read as chains.
OntoNotes has 15.6 entities with 3.2 mentions each, LitBank 21 with 10.5."""
LEFT_OUT = ("too_many_entities", "in_no_split", "malformed", "not_of_the_corpus")
"""Why documents (or parts) are not in the dataset."""


def to_json(document: AnonymizedDocument) -> str:
    """One line of JSON, equal for equal documents."""
    values = {field.name: getattr(document, field.name) for field in fields(document)}
    known = {name: value for name, value in values.items() if value is not None}
    return json.dumps(known, ensure_ascii=False, separators=(",", ":"))


def from_json(line: str) -> AnonymizedDocument:
    """Read a line that `to_json` wrote; ValueError if it is malformed."""
    values = parse_json(line)
    if not isinstance(values, dict) or not are_sentences(values.get("sentences"), (str, int)):
        raise ValueError("expected a document with sentences of words and entity numbers")
    if not values["sentences"]:
        raise ValueError("expected at least one sentence")
    if not are_sentences(values.get("surfaces", []), (str,)):
        raise ValueError("expected surfaces: the words of each entity token")
    return AnonymizedDocument(
        name=str(values.get("name", "")),
        sentences=values["sentences"],
        surfaces=values.get("surfaces", ()),
        ideal=values.get("ideal"),
    )


def content_hash(folder: Path) -> str:
    """SHA-256 of the vocabulary and the documents."""
    digest = hashlib.sha256()
    for name in _HASHED:
        path = folder / name
        if path.exists():
            digest.update(f"{name}\0".encode())
            with path.open("rb") as handle:
                hashlib.file_digest(handle, lambda: digest)
    return digest.hexdigest()


@dataclass(frozen=True)
class Dataset:
    """An opened dataset folder."""

    folder: Path
    information: dict[str, Any]
    vocabulary: Vocabulary

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open a folder made by `dntm data build`."""
        folder = Path(folder)
        path = folder / "dataset.json"
        if not path.is_file():
            raise ValueError(f"{folder} is no dataset: it has no dataset.json (dntm data build)")
        information = read_json(path)
        try:
            version, entities = information["format_version"], information["entities"]
            rows = information["vocabulary"]
            counted = [asdict(SplitStatistics(**information["counts"][s])) for s in SPLITS]
            numbers = [entities, *(number for counts in counted for number in counts.values())]
            numbers += [information["left_out"][reason] for reason in LEFT_OUT]
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
        """The splits that contain documents."""
        return [split for split in SPLITS if self.information["counts"][split]["documents"]]

    @property
    def evicts(self) -> bool:
        """Whether documents may have more entities than the vocabulary has entity rows."""
        return bool(self.information["settings"].get("overflow") == "evict")

    def check_content(self) -> Self:
        """The dataset itself; ValueError if its files were changed since it was built."""
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
            if document.largest > self.vocabulary.entities and not self.evicts:
                problem = f"entity {document.largest} has no row in the vocabulary"
                expected = f"expected 1 to {self.vocabulary.entities}"
                raise InputError(path, number, f"{problem}, {expected}")
            yield document


@dataclass
class SplitStatistics:
    """Counts of one split, and the averages of Table 1."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    entity_tokens: int = 0
    entities: int = 0
    repeated_entities: int = 0
    unknown_tokens: int = 0

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
        self.unknown_tokens += sum(isinstance(t, str) and t not in vocabulary for t in tokens)

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


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a dataset comes from."""

    corpus: str
    """Its name, or the source as given."""
    given: str | None = None
    """The local copy it was read from."""
    version: str = ""
    """The commit or version."""
    digest: str = ""
    """SHA-256 of its files."""
    license: str = ""


def new_dataset(target: Path, *, overwrite: bool) -> AbstractContextManager[Path]:
    """A new dataset folder; `overwrite` replaces only another dataset."""
    if overwrite and target.exists() and not (target / "dataset.json").is_file():
        raise ValueError(f"{target} is no dataset: --overwrite replaces only datasets")
    return new_folder(target, overwrite=overwrite)


def write_dataset(
    folder: Path,
    documents: Iterable[tuple[str, AnonymizedDocument]],
    vocabulary: Vocabulary,
    *,
    settings: dict[str, Any],
    origin: Origin,
    left_out: Counter[str] | None = None,
) -> dict[str, Any]:
    """Write documents with their splits, the vocabulary and `dataset.json`; return the latter."""
    statistics = {str(split): SplitStatistics() for split in SPLITS}
    words: Counter[str] = Counter()
    with ExitStack() as stack:
        files = {
            split: stack.enter_context(
                (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n")
            )
            for split in statistics
        }
        for split, document in documents:
            files[split].write(to_json(document) + "\n")
            statistics[split].add(document, vocabulary)
            if split == "train":
                words.update(document.words())
    left_out = left_out or Counter()
    documents_in = [counted.documents for counted in statistics.values()]
    if not documents_in[0] and not (settings.get("vocabulary_of") and sum(documents_in)):
        raise ValueError(
            "the training split is empty, so no vocabulary can be counted (--vocabulary-of gives "
            f"one): {documents_in[1]} documents are in dev, {documents_in[2]} in test, "
            f"{left_out['in_no_split']} in no split, {left_out['malformed']} malformed, "
            f"{left_out['too_many_entities']} with too many entities (divide documents with "
            "--max-sentences or raise --max-entities)"
        )
    if not vocabulary.words:
        raise ValueError("the training split has no word outside mentions: nothing to model")
    train, counts = statistics["train"], [words[word] for word in vocabulary.words]
    if any(counts):
        specials = [train.unknown_tokens, train.sentences, train.sentences]
        counts = [*specials, *[0] * vocabulary.entities, *counts]
        vocabulary = replace(vocabulary, counts=counts)
    replace(vocabulary, settings=None).save(folder)  # dataset.json contains the settings
    information = {
        "dataset_type": "dntm",
        "format_version": FORMAT_VERSION,
        "source": asdict(origin),
        "settings": settings,
        "entities": vocabulary.entities,
        "vocabulary": len(vocabulary),
        "counts": {split: asdict(counted) for split, counted in statistics.items()},
        "left_out": {reason: left_out[reason] for reason in LEFT_OUT},
        "warnings": _warnings(statistics, settings.get("entities") or ()),
        "content_hash": content_hash(folder),
    }
    text = json.dumps(information, indent=2, ensure_ascii=False)
    write_text(folder / "dataset.json", text + "\n")
    return information


def _warnings(statistics: dict[str, SplitStatistics], entities: Collection[str]) -> list[str]:
    """Likely mistakes in the settings."""
    found = []
    if not sum(c.entity_tokens for c in statistics.values()) and "none" not in entities:
        tokens = sum(counted.tokens for counted in statistics.values())
        found.append(
            f"none of the {tokens:,} tokens is an entity: check --entities and --format (inline "
            "markup is --format inline)"
        )
    for split, counted in statistics.items():
        _, _, unique, _, mentions = counted.table_1()
        if "chains" in entities and unique < _FEW and mentions > _LONG:
            found.append(
                f"{split} has {unique:.1f} entities per document with {mentions:.1f} mentions "
                "each: check that the chains are not entity types"
            )
    train = statistics["train"]
    for split in ("dev", "test"):
        other = statistics[split]
        share = other.unknown_tokens / max(other.tokens, 1)
        if train.documents and not train.unknown_tokens and share > _MANY_UNKNOWN:
            found.append(
                f"{split} has {share:.0%} unknown words and train has none, so a model never "
                "learns <unk>: set --vocabulary-size below the number of words in train"
            )
    return found


def join_datasets(
    folders: Sequence[Path],
    target: Path,
    *,
    vocabulary_size: int,
    vocabulary_of: Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Join the documents of each split and return the content of the new `dataset.json`.

    The name of each document is prefixed with that of its dataset. The vocabulary is counted over
    all training words, unless `vocabulary_of` names a dataset to take it from.
    """
    if len({folder.resolve().name for folder in folders}) < max(2, len(folders)):
        given = ", ".join(map(str, folders))
        raise ValueError(f"datasets {given}: expected at least two, with different names")
    if resolved(target) in {folder.resolve() for folder in folders}:
        raise ValueError(f"{target} is one of the datasets to join: choose another folder")
    datasets = [Dataset.open(folder) for folder in folders]
    if len(spelled := {dataset.vocabulary.lower_case for dataset in datasets}) > 1:
        raise ValueError("only some of the datasets are in lower case, expected all or none")
    entities = max(dataset.vocabulary.entities for dataset in datasets)
    if vocabulary_of is None:
        train = (document for dataset in datasets for document in dataset.documents("train"))
        counts = Counter(word for document in train for word in document.words())
        vocabulary = Vocabulary.from_counts(counts, size=vocabulary_size, entities=entities)
    else:
        vocabulary = load_vocabulary(vocabulary_of, entities=entities)
        if vocabulary.entities < entities:
            raise ValueError(
                f"the vocabulary of {vocabulary_of} has {vocabulary.entities} entities, "
                f"expected at least {entities}"
            )
    sources = [dataset.information["source"] for dataset in datasets]
    origin = Origin(
        corpus=" + ".join(Path(source["corpus"]).name for source in sources),
        license="; ".join(dict.fromkeys(source["license"] for source in sources)),
    )
    settings = {
        "joined": {d.folder.name: d.information["content_hash"] for d in datasets},
        "vocabulary_size": len(vocabulary),
        "vocabulary_of": None if vocabulary_of is None else str(vocabulary_of),
        "overflow": "evict" if any(dataset.evicts for dataset in datasets) else "drop",
        **asdict(TextSettings(lower_case=spelled.pop())),
    }
    documents = (
        (split, replace(document, name=f"{dataset.folder.name}/{document.name}"))
        for dataset in datasets
        for split in SPLITS
        for document in dataset.documents(split)
    )
    with new_dataset(target, overwrite=overwrite) as folder:
        return write_dataset(folder, documents, vocabulary, settings=settings, origin=origin)
