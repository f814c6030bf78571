"""Building a dataset: read, anonymise, split, count the vocabulary, cut, write.

Documents stream through a temporary file, so that a corpus need not fit into memory:

    source -> documents -> anonymised, whole -> (temporary file) -> vocabulary of the training
    split -> unknown words as entities -> parts -> at most 50 entities each -> one file a split

The vocabulary is counted over the training documents that stay, before unknown words become
entities: what is unknown depends on it.

Departure: the paper counts more entities than there are chains and does not say how; here entities
are chains, and named entities outside of them only on request.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dntm.corpus.anonymize import AnonymizeConfig, anonymize, cut, without_single
from dntm.corpus.dataset import FORMAT_VERSION, Dataset, content_hash, from_json, to_json
from dntm.corpus.document import AnonymizedDocument, Document
from dntm.corpus.entities import find_names, with_unknown_words
from dntm.corpus.resolver import Resolver, resolve
from dntm.corpus.splits import SPLITS, Assign
from dntm.corpus.statistics import SplitStatistics
from dntm.corpus.vocabulary import SPECIALS, Vocabulary
from dntm.files import new_folder, write_text

Entities = Literal["chains", "names", "unknown", "resolver"]


@dataclass(frozen=True, kw_only=True)
class BuildConfig(AnonymizeConfig):
    """What becomes an entity, how long a document is, and how large the vocabulary."""

    entities: tuple[Entities, ...] | None = None
    """What counts as an entity, one or several of: chains (as annotated), names (runs of
    capitalised words), unknown (words outside the vocabulary that occur at least twice), resolver
    (a coreference model). Where not given: chains, or for plain text names and unknown words."""
    keep_single_in_part: bool = True
    """Keep an entity of which the cut leaves a single mention in a part."""
    max_entities: int = 50
    """Leave out documents (or parts) with more entities than this."""
    max_sentences: int | None = None
    """Cut documents into near-equal parts of at most so many sentences; 0: never. Where not given:
    never, or as the corpus known by name has it."""
    vocabulary_size: int = 10_000
    """Rows of the vocabulary in all, entities and special tokens included."""
    vocabulary_of: Path | None = None
    """A dataset whose vocabulary to take, entities included, instead of counting one: a model that
    was trained on that dataset can then be evaluated on this one, or go on learning from it."""

    def as_plain(self) -> dict[str, Any]:
        """The settings as JSON holds them."""
        of = None if self.vocabulary_of is None else str(self.vocabulary_of)
        return asdict(self) | {"vocabulary_of": of}

    def __post_init__(self) -> None:
        if self.max_entities < 1:
            raise ValueError(f"max_entities is {self.max_entities}, expected at least 1")
        if self.vocabulary_size <= (least := len(SPECIALS) + self.max_entities):
            raise ValueError(
                f"vocabulary_size is {self.vocabulary_size}, expected more than {least}: "
                f"{len(SPECIALS)} special and {self.max_entities} entity rows count too"
            )
        if self.max_sentences is not None and self.max_sentences < 0:
            raise ValueError(f"max_sentences is {self.max_sentences}, expected at least 0")
        if self.entities == ():
            raise ValueError("no kind of entity given, expected at least one")


@dataclass
class LeftOut:
    """Documents (or parts) that are not in the dataset, and why."""

    too_many_entities: int = 0
    in_no_split: int = 0
    malformed: int = 0
    not_of_the_corpus: int = 0


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a dataset comes from."""

    corpus: str
    """Its name, or the source as given."""
    given: str | None = None
    """The local copy or mirror it was taken from."""
    version: str = ""
    """The commit or version it was read at."""
    digest: str = ""
    """SHA-256 of its files."""
    licence: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a dataset is built from."""

    documents: Iterable[Document]
    assign: Callable[[list[tuple[str, str]]], Assign]
    """The rule of the splits, once the name and source file of every document are known."""
    origin: Origin
    left_out: LeftOut
    """Filled while the documents are read."""
    settings: dict[str, Any]
    """How they are read, to be kept with the dataset."""
    resolver: Resolver | None = None


def build(source: Source, target: Path, config: BuildConfig, *, overwrite: bool) -> dict[str, Any]:
    """Build the dataset folder and return the content of its `dataset.json`."""
    left_out = source.left_out
    given = Dataset.open(config.vocabulary_of).vocabulary if config.vocabulary_of else None
    if given is not None:
        config = replace(config, max_entities=given.entities, vocabulary_size=len(given))
    with new_dataset(target, overwrite=overwrite) as folder:
        staged = folder / "staged.jsonl"
        keys = _stage(source, staged, config)
        rule = source.assign(keys)
        split_of = [rule(*key) for key in keys]
        left_out.in_no_split = sum(split not in SPLITS for split in split_of)
        vocabulary = given or _count_vocabulary(_staged(staged, split_of), config)
        parts = _parts_of_all(_staged(staged, split_of), vocabulary, config, left_out)
        statistics = write_splits(folder, parts, vocabulary)
        staged.unlink()
        settings = {**config.as_plain(), "reading": source.settings}
        return finish(folder, vocabulary, statistics, settings, source)


def new_dataset(target: Path, *, overwrite: bool) -> AbstractContextManager[Path]:
    """The new folder of a dataset; only another dataset is ever replaced."""
    if overwrite and target.exists() and not (target / "dataset.json").is_file():
        raise ValueError(f"{target} is no dataset: --overwrite replaces nothing else")
    return new_folder(target, overwrite=overwrite)


def finish(
    folder: Path,
    vocabulary: Vocabulary,
    statistics: dict[str, SplitStatistics],
    settings: dict[str, Any],
    source: Source,
) -> dict[str, Any]:
    """Write `vocab.txt` and `dataset.json` beside the documents."""
    left_out = source.left_out
    if not statistics["train"].documents:
        raise ValueError(
            "the training split holds no document: "
            f"{statistics['dev'].documents} fell into dev, {statistics['test'].documents} into "
            f"test, {left_out.too_many_entities} had too many entities (cut documents with "
            f"--max-sentences or raise --max-entities), {left_out.in_no_split} belong to no "
            f"split, {left_out.malformed} were malformed"
        )
    if not vocabulary.words:
        raise ValueError("the training split holds no word outside its mentions: nothing to model")
    write_text(folder / "vocab.txt", vocabulary.text())
    information = {
        "dataset_type": "dntm",
        "format_version": FORMAT_VERSION,
        "source": asdict(source.origin),
        "settings": settings,
        "entities": vocabulary.entities,
        "vocabulary": len(vocabulary),
        "counts": {split: asdict(statistics[split]) for split in SPLITS},
        "left_out": asdict(left_out),
        "content_hash": content_hash(folder),
    }
    text = json.dumps(information, indent=2, ensure_ascii=False)
    write_text(folder / "dataset.json", text + "\n")
    return information


def write_splits(
    folder: Path, documents: Iterable[tuple[str, AnonymizedDocument]], vocabulary: Vocabulary
) -> dict[str, SplitStatistics]:
    """Write each document to the file of its split, and count."""
    statistics: dict[str, SplitStatistics] = {split: SplitStatistics() for split in SPLITS}
    with ExitStack() as stack:
        files = {
            split: stack.enter_context(
                (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n")
            )
            for split in SPLITS
        }
        for split, document in documents:
            files[split].write(to_json(document) + "\n")  # type: ignore[index]
            statistics[split].add(document, vocabulary)
    return statistics


def _stage(source: Source, staged: Path, config: BuildConfig) -> list[tuple[str, str]]:
    """Anonymise every document as a whole; returns their names and source files."""
    keys: list[tuple[str, str]] = []
    seen: dict[tuple[str, str], str] = {}
    with staged.open("w", encoding="utf-8") as handle:
        for document in source.documents:
            other = seen.setdefault((document.name, document.part), document.source)
            if len(seen) == len(keys):
                raise ValueError(
                    f"{document.source}: document {document.name!r} part {document.part!r} is "
                    f"also in {other}, expected each document once"
                )
            with_entities = _add_entities(document, config, source.resolver)
            handle.write(to_json(anonymize(with_entities, config)) + "\n")
            keys.append((document.name, document.source))
    return keys


def _add_entities(document: Document, config: BuildConfig, resolver: Resolver | None) -> Document:
    entities = config.entities or ("chains",)
    found = document if "chains" in entities else replace(document, chains=())
    if resolver is not None:
        resolved = resolve(document, resolver)
        found = replace(found, chains=[*found.chains, *resolved.chains])
    if "names" in entities:
        found = replace(found, chains=[*found.chains, *find_names(found)])
    return found


def _staged(staged: Path, split_of: list[str | None]) -> Iterator[tuple[str, AnonymizedDocument]]:
    with staged.open(encoding="utf-8", newline="\n") as handle:
        for line, split in zip(handle, split_of, strict=True):
            if split in SPLITS:
                yield split, from_json(line)


def _count_vocabulary(
    documents: Iterable[tuple[str, AnonymizedDocument]], config: BuildConfig
) -> Vocabulary:
    counts: Counter[str] = Counter()
    for split, document in documents:
        if split == "train":
            for part in _parts(document, config):
                if part.entities <= config.max_entities:
                    for sentence in part.sentences:
                        counts.update(t for t in sentence if isinstance(t, str))
    return Vocabulary.from_counts(counts, size=config.vocabulary_size, entities=config.max_entities)


def _parts_of_all(
    documents: Iterable[tuple[str, AnonymizedDocument]],
    vocabulary: Vocabulary,
    config: BuildConfig,
    left_out: LeftOut,
) -> Iterator[tuple[str, AnonymizedDocument]]:
    """Every part that stays, with its split."""
    for split, document in documents:
        unknown = "unknown" in (config.entities or ())
        whole = with_unknown_words(document, vocabulary) if unknown else document
        for part in _parts(whole, config):
            if part.entities > config.max_entities:
                left_out.too_many_entities += 1
            else:
                yield split, part


def _parts(document: AnonymizedDocument, config: BuildConfig) -> Iterator[AnonymizedDocument]:
    for part in cut(document, config.max_sentences or None):
        keep = config.keep_single_in_part or part is document
        yield part if keep else without_single(part, lower_case=config.lower_case)
