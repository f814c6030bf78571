"""`dntm train`: train a language model on a dataset.

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
from dntm.cli.tables import print_groups
from dntm.experiments.recipes import RECIPES
from dntm.training.config import TrainConfig

if TYPE_CHECKING:
    from dntm.training.language_modelling import Progress


@dataclass(frozen=True, kw_only=True)
class Command(TrainConfig):
    """Train a baseline or dynamic language model and evaluate its best weights."""

    recipe: Literal["modern", "paper", "quick"] = "modern"
    """Where the settings below start from: the paper's, what helps on small corpora today, or
    small and quick."""
    config: Path | None = None
    """A YAML file of settings, such as a run's config.yaml; options given here override it."""
    resume: bool = False
    """Go on with the interrupted run of the output folder."""

    @classmethod
    def parse(cls, arguments: list[str], prog: str) -> "Command":
        """Read the recipe and the YAML file first: they are the defaults of all other options."""
        missing: Any = tyro.MISSING

        def from_recipe(name: str) -> Command:
            model, recipe = RECIPES[name]
            return cls(dataset=missing, output_dir=missing, model=model, training=recipe)

        default = recipe_and_file(arguments, prog, list(RECIPES), "modern", from_recipe)
        return tyro.cli(cls, prog=prog, args=arguments, default=default)

    def run(self) -> None:
        """Train with a progress bar, then print Table 2's groups."""
        from dntm.training.language_modelling import train_run
        from dntm.training.run_folder import RunFolder
        from dntm.training.signals import Interrupted

        names = [field.name for field in dataclasses.fields(TrainConfig)]
        config = TrainConfig(**{name: getattr(self, name) for name in names})
        try:
            _show(train_run(config, resume=self.resume))
        except Interrupted:
            sys.exit(f"dntm: interrupted; {config.output_dir} goes on with --resume")
        if not shows():
            return
        results = RunFolder(config.output_dir).read_results()
        for split, groups in results["splits"].items():
            print_groups(f"perplexity on {split}", {str(config.output_dir): groups})
        print(f"run: {config.output_dir}")


def _show(run: "Iterator[Progress]") -> None:
    """Tokens a second, the running loss, the time left, and a line a validation."""
    tokens, start, loss = 0, time.monotonic(), 0.0
    with tqdm(unit="batch", desc="training", smoothing=0.05, disable=not shows()) as bar:
        for progress in run:
            bar.total = progress.batches
            bar.update(progress.batch - bar.n)
            if progress.validation:
                bar.write(_validation(progress.batch, progress.validation), file=sys.stderr)
                continue
            tokens += progress.tokens
            mean = progress.nats / progress.tokens
            loss = mean if not loss else 0.95 * loss + 0.05 * mean
            rate = tokens / (time.monotonic() - start)
            bar.set_postfix_str(f"{rate:,.0f} tokens/s, loss {loss:.3f}", refresh=False)


def _validation(batch: int, groups: dict[str, float]) -> str:
    return (
        f"batch {batch}: dev perplexity {groups['all']:.1f} "
        f"(reappearing {groups['reappearing']:.1f}, following {groups['following']:.1f}, "
        f"non-entities {groups['non_entities']:.1f})"
    )
