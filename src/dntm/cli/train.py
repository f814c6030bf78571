"""`dntm train` and `dntm pretrain`: a language model on a dataset, its encoder on a large text.

Settings come from the recipe, then from a YAML file, then from the command line; with `--resume`
from the run folder.
"""

import dataclasses
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import tyro
from tqdm import tqdm

from dntm.cli.runs import Computing, defaults, in_full, print_groups, refuse_given, shows
from dntm.study.recipes import PRETRAINING, RECIPES
from dntm.training.config import PretrainConfig, TrainConfig
from dntm.training.machine import Session

if TYPE_CHECKING:
    from dntm.training.language_modelling import Progress
    from dntm.training.pretraining import PretrainProgress

C = TypeVar("C", TrainConfig, PretrainConfig)

START_SECONDS = 10.0
"""After how long a run tells that the machine is crowded."""


@dataclass(frozen=True, kw_only=True)
class _RunOptions(Computing):
    """What both commands have beside their settings."""

    config: Path | None = None
    """A YAML file of settings, such as a run's config.yaml; options given here override it."""
    resume: bool = False
    """Go on with the interrupted run of the output folder, whose settings need not be given."""
    tensorboard: bool = False
    """Also write what metrics.jsonl holds for TensorBoard, to OUTPUT_DIR/tensorboard (extra:
    tensorboard)."""

    def settings(self, kind: type[C]) -> C:
        """The settings of the run alone."""
        names = [field.name for field in dataclasses.fields(kind)]
        return kind(**{name: getattr(self, name) for name in names})

    def begin(self, folder: Path) -> "_Watch":
        """Take the threads, on resuming those of before, and watch the beginning."""
        from dntm.training.processes import set_threads
        from dntm.training.run_folder import RunFolder

        before = RunFolder(folder).threads() if self.resume and not self.threads else 0
        threads = set_threads(before or self.threads)
        return _Watch(threads, folder / "tensorboard" if self.tensorboard and shows() else None)


@dataclass(frozen=True, kw_only=True)
class Train(_RunOptions, TrainConfig):
    """Train a baseline or dynamic language model and evaluate its best weights."""

    recipe: Literal["modern", "paper", "naming", "quick"] = "modern"
    """Where the settings below start from: the paper's, what helps on small corpora today, or
    small and quick."""

    def __post_init__(self) -> None:
        """Checked when the settings are complete."""

    @classmethod
    def parse(cls, arguments: list[str], prog: str) -> "Train":
        """Read the recipe and the YAML file first: they are the defaults of all other options."""
        missing: Any = tyro.MISSING

        def from_recipe(name: str) -> Train:
            model, recipe = RECIPES[name]
            return cls(dataset=missing, model=model, training=recipe)

        default = defaults(arguments, prog, list(RECIPES), "modern", from_recipe)
        found = tyro.cli(cls, prog=prog, args=in_full(arguments), default=default)
        dataset = "--model.vocabulary --model.entities"
        refuse_given(arguments, dataset, "in training: the dataset has its own")
        if found.model.variant == "baseline":
            context = "" if found.model.kind == "transformer" else "--model.dropout-context"
            why = "with --model.variant baseline"
            refuse_given(arguments, f"--model.merging {context}", why)
        if found.model.kind != "transformer":
            why = "without --model.kind transformer"
            refuse_given(arguments, "--model.layers --model.heads", why)
        if not found.model.naming:
            refuse_given(arguments, "--training.naming-weight", "without --model.naming")
        if found.pretrained is None:
            frozen = "--training.freeze-encoder --training.no-freeze-encoder"
            refuse_given(arguments, frozen, "without --pretrained")
        return found

    def run(self) -> None:
        """Train with a progress bar, then print Table 2's groups."""
        from dntm.training.language_modelling import train_run
        from dntm.training.processes import Interrupted
        from dntm.training.run_folder import RunFolder

        config = self.settings(TrainConfig)
        watch = self.begin(config.output_dir)
        try:
            show_training(train_run(config, resume=self.resume, device=self.device), watch)
        except Interrupted:
            sys.exit(f"dntm: interrupted; {config.output_dir} goes on with --resume")
        if not shows():
            return
        results = RunFolder(config.output_dir).read_results()
        for split, groups in results["splits"].items():
            print_groups(f"perplexity on {split}", {str(config.output_dir): groups})
        print(f"run: {config.output_dir}")


@dataclass(frozen=True, kw_only=True)
class Pretrain(_RunOptions, PretrainConfig):
    """Learn word embeddings and the context encoder by filling gaps in sentences of a text."""

    recipe: Literal["paper", "small", "naming"] = "small"
    """Where the settings below start from: the paper's, what suits some million words, or what
    learns to name hidden words (best with --vectors)."""

    def __post_init__(self) -> None:
        """Checked when the settings are complete."""

    @classmethod
    def parse(cls, arguments: list[str], prog: str) -> "Pretrain":
        """Read the recipe and the YAML file first: they are the defaults of all other options."""
        missing: Any = tyro.MISSING

        def from_recipe(name: str) -> Pretrain:
            model, recipe, store = PRETRAINING[name]
            return cls(text=missing, output_dir=missing, model=model, training=recipe, store=store)

        default = defaults(arguments, prog, list(PRETRAINING), "small", from_recipe)
        found = tyro.cli(cls, prog=prog, args=arguments, default=default)
        objective, other = found.training.objective, "--training.negatives"
        if objective == "negatives":
            named = "--training.candidates --training.subsample --training.hide"
            other = f"{named} --model.context-dim --model.merging"
        refuse_given(arguments, other, f"with --training.objective {objective}")
        return found

    def run(self) -> None:
        """Pretrain with a progress bar and print how well hidden words are recovered."""
        from dntm.training.pretraining import pretrain_run
        from dntm.training.processes import Interrupted

        config = self.settings(PretrainConfig)
        watch = self.begin(config.output_dir)
        session = Session.begin(config.output_dir / "machine.json", watch.threads)
        with tqdm(unit=" words", desc="reading", disable=not shows()) as read:
            run = pretrain_run(config, resume=self.resume, device=self.device, reading=read.update)
            try:
                _show_pretraining(_noted(run, session), config.training.iterations, read, watch)
            except Interrupted:
                sys.exit(f"dntm: interrupted; {config.output_dir} goes on with --resume")
        if shows():
            print(f"run: {config.output_dir}")


class _Watch:
    """Looks at a run from outside: says when its machine is crowded, tells TensorBoard."""

    def __init__(self, threads: int, board: Path | None = None) -> None:
        from dntm.training.processes import Crowd

        self.threads, self.crowd, self.began = threads, Crowd(), time.monotonic()
        self.looked, self.writer = False, _tensorboard(board) if board else None

    def look(self, bar: "tqdm[Any]") -> None:
        """Say once, after some seconds, that other programs are in the way."""
        if not self.looked and time.monotonic() - self.began > START_SECONDS:
            self.looked = True
            if warning := self.crowd.warning(self.threads):
                bar.write(f"dntm: slow start: {warning}", file=sys.stderr)

    def tell(self, step: int, numbers: dict[str, float]) -> None:
        """Numbers for TensorBoard."""
        if self.writer is not None:
            for name, value in numbers.items():
                self.writer.add_scalar(name, value, step)


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError(
            "TensorBoard is not installed: pip install 'dntm[tensorboard]', or leave out "
            "--tensorboard (metrics.jsonl has the same numbers)"
        ) from None
    return SummaryWriter(folder)


def _noted(run: "Iterator[PretrainProgress]", session: Session) -> "Iterator[PretrainProgress]":
    """The run, its time and memory noted as it goes on."""
    for progress in run:
        if shows():
            session.note()
        yield progress
    if shows():
        session.note(now=True)


def show_training(run: "Iterator[Progress]", watch: _Watch) -> None:
    """Tokens a second, the running loss, the time left, and a line a validation."""
    tokens, start, loss = 0, time.monotonic(), 0.0
    with tqdm(unit="batch", desc="training", smoothing=0.05, disable=not shows()) as bar:
        for progress in run:
            bar.total = progress.batches
            bar.update(progress.batch - bar.n)
            watch.look(bar)
            if found := progress.validation:
                bar.write(
                    f"batch {progress.batch}: dev perplexity {found['all']:.1f} "
                    f"(reappearing {found['reappearing']:.1f}, following {found['following']:.1f}, "
                    f"non-entities {found['non_entities']:.1f})",
                    file=sys.stderr,
                )
                watch.tell(progress.batch, {f"dev perplexity/{g}": p for g, p in found.items()})
                continue
            tokens += progress.tokens
            mean = progress.nats / progress.tokens
            watch.tell(progress.batch, {"training/nats a token": mean})
            loss = mean if not loss else 0.95 * loss + 0.05 * mean
            rate = tokens / (time.monotonic() - start)
            bar.set_postfix_str(f"{rate:,.0f} tokens/s, loss {loss:.3f}", refresh=False)


def _show_pretraining(
    run: "Iterator[PretrainProgress]", iterations: int, read: "tqdm[Any]", watch: _Watch
) -> None:
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
            watch.look(bar)
            if found := progress.validation:
                recall, mrr = found["recall"], found["reciprocal_rank"]
                bar.write(
                    f"update {progress.iteration}: of {found['cases']:,} hidden words held out "
                    f"recall at 1 / 10 / 100 {recall[1]:.3f} / {recall[10]:.3f} / "
                    f"{recall[100]:.3f}, mean reciprocal rank {mrr:.3f}",
                    file=sys.stderr,
                )
                watch.tell(progress.iteration, {f"recall/at {k}": r for k, r in recall.items()})
                continue
            words += progress.words
            mean = progress.loss / max(progress.words, 1)
            watch.tell(progress.iteration, {"training/loss a word": mean})
            loss = mean if not loss else 0.98 * loss + 0.02 * mean
            rate = words / max(time.monotonic() - start, 1e-9)
            bar.set_postfix_str(f"{rate:,.0f} words/s, loss {loss:.3f}", refresh=False)
