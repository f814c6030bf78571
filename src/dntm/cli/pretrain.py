"""`dntm pretrain`: word embeddings and the context encoder from a large text.

Settings come from the recipe, then from a YAML file, then from the command line.
"""

import dataclasses
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from tqdm import tqdm

from dntm.cli.settings import recipe_and_file, shows
from dntm.experiments.recipes import PRETRAINING
from dntm.study.jobs import end_with_the_study
from dntm.study.sitting import Sitting
from dntm.training.pretraining_config import PretrainConfig

if TYPE_CHECKING:
    from dntm.training.pretraining import PretrainProgress


@dataclass(frozen=True, kw_only=True)
class Command(PretrainConfig):
    """Learn word embeddings and the context encoder by filling gaps in sentences of a text."""

    recipe: Literal["paper", "small"] = "small"
    """Where the settings below start from: the paper's, or what suits some million words."""
    config: Path | None = None
    """A YAML file of settings, such as a run's config.yaml; options given here override it."""
    resume: bool = False
    """Go on with the interrupted run of the output folder."""

    @classmethod
    def parse(cls, arguments: list[str], prog: str) -> "Command":
        """Read the recipe and the YAML file first: they are the defaults of all other options."""
        missing: Any = tyro.MISSING

        def from_recipe(name: str) -> Command:
            model, recipe, store = PRETRAINING[name]
            return cls(text=missing, output_dir=missing, model=model, training=recipe, store=store)

        default = recipe_and_file(arguments, prog, list(PRETRAINING), "small", from_recipe)
        return tyro.cli(cls, prog=prog, args=arguments, default=default)

    def run(self) -> None:
        """Pretrain with a progress bar and print how well hidden words are recovered."""
        end_with_the_study()
        import torch

        from dntm.training.pretraining import pretrain_run
        from dntm.training.signals import Interrupted

        names = [field.name for field in dataclasses.fields(PretrainConfig)]
        config = PretrainConfig(**{name: getattr(self, name) for name in names})
        sitting = Sitting.begin(config.output_dir / "machine.json", torch.get_num_threads())
        with tqdm(unit=" words", desc="reading", disable=not shows()) as read:
            run = pretrain_run(config, resume=self.resume, reading=read.update)
            try:
                _show(_noted(run, sitting), config.training.iterations, read)
            except Interrupted:
                sys.exit(f"dntm: interrupted; {config.output_dir} goes on with --resume")
        if shows():
            print(f"run: {config.output_dir}")


def _noted(run: "Iterator[PretrainProgress]", sitting: Sitting) -> "Iterator[PretrainProgress]":
    """The run, its time and memory noted as it goes on."""
    for progress in run:
        if shows():
            sitting.note()
        yield progress
    if shows():
        sitting.note(now=True)


def _show(run: "Iterator[PretrainProgress]", iterations: int, read: "tqdm[Any]") -> None:
    """Words a second, the running loss, the time left, and a line a validation."""
    words, start, loss = 0, 0.0, 0.0
    with tqdm(total=iterations, desc="pretraining", disable=not shows()) as bar:
        for progress in run:
            if not start:
                start = time.monotonic()
                read.close()
                bar.reset(total=iterations)
                bar.n = bar.initial = progress.iteration - 1
            bar.update(progress.iteration - bar.n)
            if found := progress.validation:
                recall, mrr = found["recall"], found["reciprocal_rank"]
                bar.write(
                    f"update {progress.iteration}: of {found['words']:,} hidden words held out "
                    f"recall at 1 / 10 / 100 {recall[1]:.3f} / {recall[10]:.3f} / "
                    f"{recall[100]:.3f}, mean reciprocal rank {mrr:.3f}",
                    file=sys.stderr,
                )
                continue
            words += progress.words
            mean = progress.loss / progress.words
            loss = mean if not loss else 0.98 * loss + 0.02 * mean
            rate = words / max(time.monotonic() - start, 1e-9)
            bar.set_postfix_str(f"{rate:,.0f} words/s, loss {loss:.3f}", refresh=False)
