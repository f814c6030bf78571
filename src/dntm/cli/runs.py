"""Runs as commands take them: the dataset they were trained on, its documents, the model."""

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument

if TYPE_CHECKING:
    from dntm.evaluation.scoring import TextModel


def dataset_of(run: Path, given: Path | None) -> Dataset:
    """The dataset that was given, or else the one the run was trained on."""
    if given is not None:
        return Dataset.open(given)
    if (own := _own_dataset(run)) is None:
        raise ValueError(f"{run} is no run folder that names its dataset: pass --dataset")
    return Dataset.open(own)


def result_file(run: Path, dataset: Dataset, name: str) -> Path:
    """Where a run's records go: RUN/NAME.csv, of another dataset RUN/NAME-DATASET.csv.

    A report takes RUN/records-test.csv for the run's own dataset.
    """
    own, here = _own_dataset(run), dataset.folder.resolve()
    foreign = own is not None and own.resolve() != here
    return run / (f"{name}-{here.name}.csv" if foreign else f"{name}.csv")


def _own_dataset(run: Path) -> Path | None:
    path = run / "config.yaml"
    if not path.is_file():
        return None
    return Path(yaml.safe_load(path.read_text(encoding="utf-8"))["dataset"])


def documents_of(dataset: Dataset, split: str) -> list[AnonymizedDocument]:
    """The documents of a split; ValueError where there are none."""
    documents = list(dataset.documents(split))
    if not documents:
        raise ValueError(f"{dataset.folder} has no document in its {split} split")
    return documents


def model_of(run: Path, dataset: Dataset) -> "TextModel":
    """The best model of a run; ValueError where the dataset has another vocabulary."""
    from dntm.evaluation.scoring import TextModel

    model = TextModel.load(run)
    if model.vocabulary != dataset.vocabulary:
        raise ValueError(f"{run} was trained with another vocabulary than {dataset.folder}")
    return model
