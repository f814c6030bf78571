"""Building a dataset: read, anonymise, split, count the vocabulary, cut, write.

Documents stream through a temporary file, so that a corpus need not fit into memory:

    source -> documents -> anonymised, whole -> (temporary file) -> vocabulary of the training
    split -> unknown words as entities -> parts -> at most 50 entities each -> one file a split

The vocabulary is counted over the training documents that stay, before unknown words become
entities: what is unknown depends on it.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from dntm.corpus.anonymize import AnonymizeConfig, Nesting, anonymize, cut, without_single
from dntm.corpus.dataset import FORMAT_VERSION, content_hash, from_json, to_json
from dntm.corpus.document import AnonymizedDocument, Document
from dntm.corpus.entities import find_names, with_unknown_words
from dntm.corpus.resolver import Resolver
from dntm.corpus.splits import SPLITS, Assign
from dntm.corpus.statistics import SplitStatistics
from dntm.corpus.vocabulary import Vocabulary
from dntm.files import new_folder, write_text

Entities = Literal["chains", "names", "unknown", "resolver"]


@dataclass(frozen=True, kw_only=True)
class BuildConfig:
    """What becomes an entity, how long a document is, and how large the vocabulary."""

    entities: tuple[Entities, ...] = ("chains",)
    """What counts as an entity, one or several: annotated chains, names (runs of capitalised
    words), unknown words that occur at least twice, chains found by a coreference model
    (resolver)."""
    nested: Nesting = "innermost"
    """Which of two nested mentions becomes an entity token."""
    named_entities: bool = False
    """Give named entities outside every chain an identifier too (CoNLL-2012)."""
    keep_single: bool = False
    """Keep chains with a single mention in the whole document."""
    keep_single_in_part: bool = True
    """Keep an entity of which the cut leaves a single mention in a part."""
    max_entities: int = 50
    """Leave out documents (or parts) with more entities than this."""
    max_sentences: int | None = None
    """Cut documents into near-equal parts of at most so many sentences (none: never)."""
    vocabulary_size: int = 10_000
    """Rows of the vocabulary in all, entities and special tokens included."""
    lower_case: bool = False
    """Write all words in lower case."""

    def __post_init__(self) -> None:
        for name in ("max_entities", "max_sentences", "vocabulary_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        if not self.entities:
            raise ValueError("no kind of entity given, expected at least one")


@dataclass
class LeftOut:
    """Documents (or parts) that are not in the dataset, and why."""

    too_many_entities: int = 0
    in_no_split: int = 0
    malformed: int = 0


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a dataset comes from."""

    corpus: str
    """Its name, or the source as given."""
    version: str = ""
    """The commit or version it was read at."""
    licence: str = ""


def build(
    documents: Iterable[Document],
    target: Path,
    config: BuildConfig,
    *,
    origin: Origin,
    assign: Callable[[list[tuple[str, str]]], Assign],
    resolver: Resolver | None = None,
    malformed: Callable[[], int] = lambda: 0,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Build the dataset folder and return the content of its `dataset.json`.

    `assign` gets the name and source file of every document and returns the rule of the splits;
    `malformed` tells, once all are read, how many documents could not be.
    """
    left_out = LeftOut()
    with new_folder(target, overwrite=overwrite) as folder:
        staged = folder / "staged.jsonl"
        keys = _stage(documents, staged, config, resolver)
        rule = assign(keys)
        split_of = [rule(*key) for key in keys]
        left_out.malformed = malformed()
        left_out.in_no_split = sum(split not in SPLITS for split in split_of)
        vocabulary = _count_vocabulary(staged, split_of, config)
        statistics = _write_splits(
            folder, _staged(staged, split_of), vocabulary, config=config, left_out=left_out
        )
        staged.unlink()
        return finish(
            folder, vocabulary, statistics, settings=config, origin=origin, left_out=left_out
        )


def finish(
    folder: Path,
    vocabulary: Vocabulary,
    statistics: dict[str, SplitStatistics],
    *,
    settings: Any,
    origin: Origin,
    left_out: LeftOut,
) -> dict[str, Any]:
    """Write `vocab.txt` and `dataset.json` beside the documents."""
    if not statistics["train"].documents:
        raise ValueError(
            "the training split holds no document: "
            f"{left_out.too_many_entities} had too many entities (cut documents with "
            f"--max-sentences or raise --max-entities), {left_out.in_no_split} belong to no "
            f"split, {left_out.malformed} were malformed"
        )
    write_text(folder / "vocab.txt", vocabulary.text())
    information = {
        "dataset_type": "dntm",
        "format_version": FORMAT_VERSION,
        "source": dataclasses.asdict(origin),
        "settings": dataclasses.asdict(settings),
        "entities": vocabulary.entities,
        "vocabulary": len(vocabulary),
        "counts": {split: dataclasses.asdict(statistics[split]) for split in SPLITS},
        "left_out": dataclasses.asdict(left_out),
        "content_hash": content_hash(folder),
    }
    write_text(
        folder / "dataset.json", json.dumps(information, indent=2, ensure_ascii=False) + "\n"
    )
    return information


def _stage(
    documents: Iterable[Document], staged: Path, config: BuildConfig, resolver: Resolver | None
) -> list[tuple[str, str]]:
    """Anonymise every document as a whole; returns their names and source files."""
    anonymizing = AnonymizeConfig(
        nested=config.nested,
        named_entities=config.named_entities,
        keep_single=config.keep_single,
        lower_case=config.lower_case,
    )
    keys: list[tuple[str, str]] = []
    with staged.open("w", encoding="utf-8") as handle:
        for document in documents:
            with_entities = _add_entities(document, config, resolver)
            handle.write(to_json(anonymize(with_entities, anonymizing)) + "\n")
            keys.append((document.name, document.source))
    return keys


def _add_entities(document: Document, config: BuildConfig, resolver: Resolver | None) -> Document:
    chains = list(document.chains) if "chains" in config.entities else []
    if "resolver" in config.entities:
        if resolver is None:
            raise ValueError("entities by a coreference model asked for, but no model given")
        chains += resolver.chains(document.sentences)
    found = dataclasses.replace(document, chains=chains)
    if "names" in config.entities:
        found = dataclasses.replace(found, chains=[*chains, *find_names(found)])
    return found


def _staged(staged: Path, split_of: list[str | None]) -> Iterator[tuple[str, AnonymizedDocument]]:
    with staged.open(encoding="utf-8") as handle:
        for line, split in zip(handle, split_of, strict=True):
            if split in SPLITS:
                yield split, from_json(line)


def _count_vocabulary(staged: Path, split_of: list[str | None], config: BuildConfig) -> Vocabulary:
    counts: Counter[str] = Counter()
    for split, document in _staged(staged, split_of):
        if split == "train":
            for part in _parts(document, config):
                if part.entities <= config.max_entities:
                    for sentence in part.sentences:
                        counts.update(t for t in sentence if isinstance(t, str))
    return Vocabulary.from_counts(counts, size=config.vocabulary_size, entities=config.max_entities)


def _parts(document: AnonymizedDocument, config: BuildConfig) -> Iterator[AnonymizedDocument]:
    for part in cut(document, config.max_sentences):
        if config.keep_single_in_part or part is document:
            yield part
        else:
            yield without_single(part)


def _write_splits(
    folder: Path,
    documents: Iterable[tuple[str, AnonymizedDocument]],
    vocabulary: Vocabulary,
    *,
    config: BuildConfig,
    left_out: LeftOut,
) -> dict[str, SplitStatistics]:
    statistics: dict[str, SplitStatistics] = {split: SplitStatistics() for split in SPLITS}
    handles: dict[str, IO[str]] = {
        split: (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n")
        for split in SPLITS
    }
    try:
        for split, document in documents:
            whole = (
                with_unknown_words(document, vocabulary)
                if "unknown" in config.entities
                else document
            )
            for part in _parts(whole, config):
                if part.entities > config.max_entities:
                    left_out.too_many_entities += 1
                    continue
                handles[split].write(to_json(part) + "\n")
                statistics[split].add(part, vocabulary)
    finally:
        for handle in handles.values():
            handle.close()
    return statistics
