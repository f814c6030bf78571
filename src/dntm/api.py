"""Train a model; load a model."""

from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from dntm.files import folder_of
from dntm.model.scorer import Scorer
from dntm.settings import merged
from dntm.study.config import RECIPES
from dntm.training.config import RUN, TrainConfig
from dntm.training.language_modeling import train_run
from dntm.training.processes import Device, set_threads
from dntm.training.run_folder import RunFolder


def train(
    config: TrainConfig | None = None,
    *,
    recipe: str = "modern",
    resume: bool = False,
    progress: bool = False,
    device: Device = "auto",
    threads: int = 0,
    **settings: Any,
) -> dict[str, Any]:
    """Train a language model and return the results of the run: perplexities by split.

    The settings are given either as a `config`, or as a recipe (modern, paper, naming, adapter or
    quick) and the fields of `TrainConfig` that differ from it. Nested settings are dictionaries:

        dntm.train(dataset="datasets/ontogum", model={"variant": "both"}, seed=2)

    The run folder is `output_dir`; if omitted, runs/DATASET-VARIANT-SEED. The key `run` of the
    results contains its path. `threads` is the number of CPU threads; 0: PyTorch's default.
    """
    if config is not None and settings:
        raise ValueError(f"both a config and {', '.join(settings)} given, expected only one")
    if config is None:
        if "dataset" not in settings:
            raise ValueError("no dataset given, expected the path of a dataset folder")
        if recipe not in RECIPES:
            raise ValueError(f"recipe is {recipe!r}, expected one of {', '.join(RECIPES)}")
        model, training = RECIPES[recipe]
        start = TrainConfig(dataset=Path(), output_dir=Path(), model=model, training=training)
        config = merged(start, {"output_dir": RUN} | settings, "dntm.train")
    before = torch.get_num_threads()
    set_threads(threads)
    try:
        with tqdm(unit="batch", desc="training", disable=not progress) as bar:
            for step in train_run(config, resume=resume, device=device):
                bar.total = step.total
                bar.update(step.done - bar.n)
                if step.validation:
                    bar.set_postfix_str(f"dev perplexity {step.validation['all']:.1f}")
    finally:
        torch.set_num_threads(before)
    return RunFolder(config.output_dir).read_results() | {"run": str(config.output_dir)}


def load(path: Path | str) -> Scorer:
    """Load the best weights of a run folder, a checkpoint, or "default" (the bundled model)."""
    return Scorer.load(folder_of(path))
