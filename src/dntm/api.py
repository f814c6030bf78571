"""The two calls that most programs need: train a model, load a model."""

from pathlib import Path
from typing import Any

from dntm.evaluation.scoring import TextModel
from dntm.training.config import TrainConfig
from dntm.training.language_modelling import train_run
from dntm.training.run_folder import RunFolder


def train(config: TrainConfig, *, resume: bool = False) -> dict[str, Any]:
    """Train to the end and return the run's results: parameters, and perplexities by split."""
    for _ in train_run(config, resume=resume):
        pass
    return RunFolder(config.output_dir).read_results()


def load(path: Path | str) -> TextModel:
    """Load a run folder (its best weights) or a checkpoint folder."""
    return TextModel.load(path)
