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
    path = run / "config.yaml"
    if not path.is_file():
        raise ValueError(f"{run} is no run folder that names its dataset: pass --dataset")
    return Dataset.open(Path(yaml.safe_load(path.read_text(encoding="utf-8"))["dataset"]))


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
