"""From a corpus by name, or any file or folder, to a dataset folder: `dntm data build`."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from dntm.corpus.build import BuildConfig, Entities, LeftOut, Origin, build, finish
from dntm.corpus.catalog import CORPORA, Corpus, belongs, locate
from dntm.corpus.dataset import to_json
from dntm.corpus.document import Document
from dntm.corpus.reading import ANNOTATED, Format, Skipped, files_and_format, read_documents
from dntm.corpus.resolver import Resolver, StanzaResolver
from dntm.corpus.splits import SPLITS, Assign, by_folder, by_fraction, by_ids
from dntm.corpus.statistics import SplitStatistics
from dntm.corpus.storyworld.story import StoryworldConfig, stories
from dntm.corpus.text import Documents
from dntm.corpus.vocabulary import Vocabulary
from dntm.files import new_folder


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    """How a source is read and split."""

    given: str | None = None
    """A local copy or mirror of a corpus known by name."""
    format: Format | None = None
    documents: Documents | None = None
    skip_malformed: bool = False
    split_by: Literal["auto", "folder", "ids", "fraction"] = "auto"
    splits: Path | None = None
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 1
    coref_model: Path | None = None
    limit: int | None = None
    """Read only the first so many documents."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit is {self.limit}, expected at least 1")


@dataclass(frozen=True)
class Prepared:
    """What a build gave."""

    information: dict[str, Any]
    """The content of `dataset.json`."""
    skipped: list[str]
    """Why each malformed document was left out."""


def prepare(
    source: str,
    target: Path,
    reading: ReadConfig,
    settings: dict[str, Any],
    *,
    overwrite: bool = False,
    progress: Callable[[Iterator[Document]], Iterator[Document]] = iter,
) -> Prepared:
    """Build a dataset; `settings` are the fields of BuildConfig that the user gave."""
    corpus = CORPORA.get(source) or Corpus(
        name=source, summary="", licence="as the source's", how="given"
    )
    located = locate(corpus, reading.given if source in CORPORA else source)
    files, format_ = files_and_format(located.documents, reading.format or corpus.format)
    entities: tuple[Entities, ...] = (
        ("chains",) if format_ in ANNOTATED or format_ == "inline" else ("names", "unknown")
    )
    config = BuildConfig(**({"entities": entities} | corpus.settings | settings))
    skipped = Skipped([])
    documents = (
        document
        for document in read_documents(
            located.documents,
            files,
            format_,
            documents=reading.documents or "file",
            skipped=skipped if reading.skip_malformed else None,
        )
        if belongs(corpus, document.name)
    )
    information = build(
        progress(islice(documents, reading.limit)),
        target,
        config,
        origin=Origin(corpus=source, version=located.version, licence=corpus.licence),
        assign=lambda keys: _assign(keys, reading, located.splits),
        resolver=_resolver(config, reading.coref_model),
        malformed=lambda: len(skipped.errors),
        overwrite=overwrite,
    )
    return Prepared(information, skipped.errors)


def _assign(keys: list[tuple[str, str]], reading: ReadConfig, corpus_splits: Path | None) -> Assign:
    by, ids = reading.split_by, reading.splits or corpus_splits
    if by == "ids" or (by == "auto" and ids):
        if ids is None:
            raise ValueError("split by ids asked for: pass --splits with the file or folder of ids")
        return by_ids(ids)
    splits = {by_folder(*key) for key in keys}
    if by == "folder" or (by == "auto" and None not in splits and "train" in splits):
        return by_folder
    return by_fraction((name for name, _ in keys), reading.fractions, reading.seed)


def _resolver(config: BuildConfig, model: Path | None) -> Resolver | None:
    if "resolver" not in config.entities:
        return None
    if model is None:
        raise ValueError(
            "entities by a coreference model asked for: pass --coref-model with the path of its "
            "weights"
        )
    return StanzaResolver(model)


def prepare_storyworld(
    target: Path, config: StoryworldConfig, *, overwrite: bool = False
) -> dict[str, Any]:
    """Write generated stories; every word has its row, so that the ideal reader stays ideal."""
    counts: Counter[str] = Counter()
    statistics: dict[str, SplitStatistics] = {split: SplitStatistics() for split in SPLITS}
    most = 0
    with new_folder(target, overwrite=overwrite) as folder:
        made = {split: list(stories(config, split)) for split in SPLITS}
        for documents in made.values():
            for document in documents:
                most = max(most, document.entities)
                counts.update(t for s in document.sentences for t in s if isinstance(t, str))
        vocabulary = Vocabulary.from_counts(counts, size=3 + most + len(counts), entities=most)
        for split, documents in made.items():
            with (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as handle:
                for document in documents:
                    handle.write(to_json(document) + "\n")
                    statistics[split].add(document, vocabulary)
        return finish(
            folder,
            vocabulary,
            statistics,
            settings=config,
            origin=Origin(corpus="storyworld", licence=CORPORA["storyworld"].licence),
            left_out=LeftOut(),
        )
