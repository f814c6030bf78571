"""`dntm train` and `dntm pretrain`: train a model on a dataset, or its encoder on a large text.

Settings come from the recipe, then from a YAML file, then from the command line. With `--resume`
they come from the run folder.
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import tyro
from tqdm import tqdm

from dntm.cli.runs import Computing, print_groups
from dntm.settings import merged, read_yaml
from dntm.study.config import PRETRAINING, RECIPES
from dntm.training.config import PretrainConfig, TrainConfig

if TYPE_CHECKING:
    from dntm.training.state import Progress

C = TypeVar("C", TrainConfig, PretrainConfig)
MISSING: Any = tyro.MISSING


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The options that determine the defaults of all others."""

    recipe: str | None = None
    config: Path | None = None
    output_dir: Path | None = None
    resume: bool = False


@dataclass(frozen=True, kw_only=True)
class _RunOptions(Computing):
    """Options of both commands in addition to the settings of the run."""

    config: Path | None = None
    """A YAML file of settings, such as config.yaml of another run. Options override it."""
    resume: bool = False
    """Continue the interrupted run in --output-dir with its own settings."""

    def __post_init__(self) -> None:
        """Checked when the settings are complete."""

    @classmethod
    def defaults(cls, arguments: list[str]) -> Self:
        """The settings of the recipe, changed by the YAML file of --config.

        With --resume alone, the settings of the run in the output folder.
        """
        given, _ = tyro.cli(_Source, args=arguments, add_help=False, return_unknown_args=True)
        settings = given.config
        if given.resume and given.output_dir and not (given.config or given.recipe):
            saved = given.output_dir / "config.yaml"
            settings = saved if saved.exists() else None
        default = cls.of_recipe(given.recipe)
        return merged(default, read_yaml(settings), str(settings)) if settings else default

    @classmethod
    def of_recipe(cls, recipe: str | None) -> Self:
        """The default values of a recipe, or of the default recipe."""
        raise NotImplementedError

    def settings(self, kind: type[C]) -> C:
        """The settings of the run alone."""
        names = [field.name for field in dataclasses.fields(kind)]
        return kind(**{name: getattr(self, name) for name in names})

    @contextmanager
    def running(self, folder: Path) -> Iterator[None]:
        """Set the threads (a resumed run keeps its number), and exit if interrupted."""
        from dntm.training.processes import Interrupted, set_threads
        from dntm.training.run_folder import RunFolder

        before = RunFolder(folder).threads() if self.resume and not self.threads else 0
        set_threads(before or self.threads)
        try:
            yield
        except Interrupted:
            sys.exit(f"dntm: interrupted; resume {folder} with --resume")


@dataclass(frozen=True, kw_only=True)
class Train(_RunOptions, TrainConfig):
    """Train a language model on a dataset and keep the weights that are best on the dev split."""

    recipe: Literal["modern", "paper", "naming", "adapter", "quick"] = "modern"
    """Default settings: the paper's (paper), settings for small corpora (modern), settings for a
    model that also names hidden words (naming), settings for a pretrained core (adapter), or a
    small model for a first try (quick)."""

    @classmethod
    def of_recipe(cls, recipe: str | None) -> Self:
        """The default values of a recipe."""
        model, training = RECIPES.get(recipe or "", RECIPES["modern"])
        return cls(dataset=MISSING, model=model, training=training)

    def run(self) -> None:
        """Train with a progress bar, then print the token groups of Table 2."""
        from dntm.training.language_modeling import train_run
        from dntm.training.run_folder import RunFolder

        config = self.settings(TrainConfig)
        with self.running(config.output_dir):
            run = train_run(config, resume=self.resume, device=self.device)
            _show(run, "training", _perplexities)
        if is_first_process():
            results = RunFolder(config.output_dir).read_results()["splits"]["dev"]
            print_groups("perplexity on dev", {str(config.output_dir): results})
            print(f"run: {config.output_dir}")


@dataclass(frozen=True, kw_only=True)
class Pretrain(_RunOptions, PretrainConfig):
    """Pretrain word embeddings and the context encoder by predicting hidden words in sentences."""

    recipe: Literal["paper", "small", "naming"] = "small"
    """Default settings: the paper's (paper), settings for a few million words (small), or settings
    for a model that names hidden words (naming; best with --vectors)."""

    @classmethod
    def of_recipe(cls, recipe: str | None) -> Self:
        """The default values of a recipe."""
        model, training, store = PRETRAINING.get(recipe or "", PRETRAINING["small"])
        parts: dict[str, Any] = {"model": model, "training": training, "store": store}
        return cls(text=MISSING, output_dir=MISSING, **parts)

    def run(self) -> None:
        """Pretrain with a progress bar and print the recall of hidden words."""
        from dntm.training.pretraining import pretrain_run

        config = self.settings(PretrainConfig)
        with (
            self.running(config.output_dir),
            tqdm(unit=" words", desc="reading", disable=not is_first_process()) as read,
        ):
            run = pretrain_run(config, resume=self.resume, device=self.device, reading=read.update)
            _show(run, "pretraining", _recall, read.close)
        if is_first_process():
            print(f"run: {config.output_dir}")


def is_first_process() -> bool:
    """Whether this process prints; under torchrun, only the first one does."""
    return os.environ.get("RANK", "0") == "0"


def _show(
    run: "Iterator[Progress]",
    title: str,
    summary: Callable[[dict[str, Any]], str],
    before: Callable[[], object] = lambda: None,
) -> None:
    """Show a progress bar, and a line with the summary of each validation.

    `before` is called when the first batch is done.
    """
    with tqdm(desc=title, unit="batch", disable=not is_first_process()) as bar:
        for progress in run:
            if not bar.n:
                before()
                bar.reset(total=progress.total)
                bar.n = bar.initial = progress.done - 1
            bar.update(progress.done - bar.n)
            if found := progress.validation:
                bar.write(f"batch {progress.done}: {summary(found)}", file=sys.stderr)
            else:
                loss = progress.loss / max(progress.tokens, 1)
                bar.set_postfix_str(f"loss {loss:.3f}", refresh=False)


def _perplexities(found: dict[str, Any]) -> str:
    groups = (f"{group.replace('_', ' ')} {value:.1f}" for group, value in found.items())
    return f"dev perplexity {', '.join(groups)}"


def _recall(found: dict[str, Any]) -> str:
    recall = ", ".join(f"{value:.3f} at {k}" for k, value in found["recall"].items())
    rank = found["reciprocal_rank"]
    return f"recall of {found['cases']:,} held-out words {recall}; mean reciprocal rank {rank:.3f}"
