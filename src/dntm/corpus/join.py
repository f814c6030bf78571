"""Joining datasets: the documents of each split together, with one vocabulary."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dntm.corpus.dataset import (
    SPLITS,
    Dataset,
    LeftOut,
    Origin,
    new_dataset,
    write_documents,
    write_information,
)
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import TextSettings, Vocabulary, load_vocabulary
from dntm.files import resolved


def join_datasets(
    folders: Sequence[Path],
    target: Path,
    *,
    vocabulary_size: int,
    vocabulary_of: Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write the joined dataset and return the content of its `dataset.json`.

    The name of each document is prefixed with that of its dataset. The vocabulary is counted over
    all training words, unless `vocabulary_of` names a dataset to take it from.
    """
    if len({folder.resolve().name for folder in folders}) < max(2, len(folders)):
        given = ", ".join(map(str, folders))
        raise ValueError(f"datasets {given}: expected at least two, with different names")
    if resolved(target) in {folder.resolve() for folder in folders}:
        raise ValueError(f"{target} is one of the datasets to join: choose another folder")
    datasets = [Dataset.open(folder) for folder in folders]
    entities = max(dataset.vocabulary.entities for dataset in datasets)
    if vocabulary_of is None:
        vocabulary = _count_vocabulary(datasets, vocabulary_size, entities)
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
        licence="; ".join(dict.fromkeys(source["licence"] for source in sources)),
    )
    settings = {
        "joined": {d.folder.name: d.information["content_hash"] for d in datasets},
        "vocabulary_size": len(vocabulary),
        "vocabulary_of": None if vocabulary_of is None else str(vocabulary_of),
        "overflow": "evict" if any(dataset.evicts for dataset in datasets) else "drop",
        **asdict(TextSettings(lower_case=_lower_case(datasets))),
    }
    with new_dataset(target, overwrite=overwrite) as folder:
        statistics = write_documents(folder, _documents(datasets), vocabulary)
        return write_information(
            folder, vocabulary, statistics, settings=settings, origin=origin, left_out=LeftOut()
        )


def _lower_case(datasets: Sequence[Dataset]) -> bool:
    spelled = {dataset.vocabulary.lower_case for dataset in datasets}
    if len(spelled) > 1:
        given = ", ".join(d.folder.name for d in datasets if not d.vocabulary.lower_case)
        raise ValueError(
            f"only some of the datasets are in lower case, expected all or none: not {given}"
        )
    return spelled.pop()


def _count_vocabulary(datasets: Sequence[Dataset], size: int, entities: int) -> Vocabulary:
    counts = Counter(
        word
        for dataset in datasets
        for document in dataset.documents("train")
        for sentence in document.sentences
        for word in sentence
        if isinstance(word, str)
    )
    return Vocabulary.from_counts(counts, size=size, entities=entities)


def _documents(datasets: Sequence[Dataset]) -> Iterator[tuple[str, AnonymizedDocument]]:
    for dataset in datasets:
        for split in SPLITS:
            for document in dataset.documents(split):
                yield split, replace(document, name=f"{dataset.folder.name}/{document.name}")
