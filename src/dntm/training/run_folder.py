"""The run folder: what a training run leaves behind, and what it goes on from.

    config.yaml        every setting, resolved
    metrics.jsonl      one line a validation
    best/              the best weights by validation perplexity
    checkpoints/N/     the whole state after update N (the latest only)
    all_results.json   perplexity of every token group, once the run has ended

Each is complete or absent: files and folders are written aside and moved into place.
"""

import json
import math
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import torch

from dntm.files import exclusive_folder, new_folder, remove_stale_files, write_text
from dntm.model.checkpoint import current_names, load_tensors, save_tensors
from dntm.settings import read_json, shown
from dntm.training.processes import MOST_THREADS, Processes
from dntm.training.state import Model, TrainingState

FORMAT_VERSION = 1


class RunConfig(Protocol):
    """The settings of a run, as its folder knows them."""

    @property
    def output_dir(self) -> Path:
        """The run folder."""

    def to_yaml(self) -> str:
        """All settings, resolved."""


class RunFolder:
    """A run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self.results = path / "all_results.json"
        self.best = path / "best"

    @classmethod
    @contextmanager
    def of_one(cls, path: Path, group: Processes) -> Iterator["RunFolder"]:
        """The folder, locked by the first process of a run and swept; ValueError where another
        run is at work in it.
        """
        with exclusive_folder(path) if group.is_first else nullcontext():
            run = cls(path)
            try:
                if group.is_first:
                    run.sweep()
                yield run
            finally:
                if group.is_first:
                    run.sweep()

    def sweep(self) -> None:
        """Remove what killed processes left half written."""
        remove_stale_files(self.path)
        remove_stale_files(self.path / "checkpoints")

    def begin(self, config: RunConfig, *, resume: bool = False) -> None:
        """Begin a run, or with `resume` go on with what is there of it, be it nothing.

        A run in the folder is not written over, nor gone on with by other settings.
        """
        path, settings = self.path / "config.yaml", config.to_yaml()
        if not path.exists():
            write_text(path, settings)
        elif not resume:
            raise ValueError(
                f"{self.path} holds a run already: pass --resume to go on with it, "
                "or choose another folder"
            )
        elif (saved := path.read_text(encoding="utf-8")) != settings:
            changed = _first_difference(saved, settings)
            raise ValueError(f"{path} differs from the settings given ({changed}): cannot resume")

    def latest(self) -> Path | None:
        """The newest complete checkpoint."""
        folder = self.path / "checkpoints"
        complete = [p for p in folder.iterdir() if p.name.isdecimal()] if folder.is_dir() else []
        return max(complete, key=lambda p: int(p.name), default=None)

    def save(self, state: TrainingState[Model]) -> None:
        """Save the whole state; the one before is removed once this one is in place."""
        before = self.latest()
        target = self.path / "checkpoints" / str(state.position.updates)
        lines = self.metrics.read_text(encoding="utf-8") if self.metrics.exists() else ""
        with new_folder(target, overwrite=True) as folder:
            save_tensors(state.tensors(), folder / "state.safetensors")
            header = {"format_version": FORMAT_VERSION, "threads": torch.get_num_threads()}
            numbers = header | {"metrics": lines} | state.numbers()
            write_text(folder / "state.json", json.dumps(numbers))
        if before and before != target:
            shutil.rmtree(before)

    def restore(self, state: TrainingState[Model]) -> None:
        """Set the state and the metrics back to the latest checkpoint, or to the beginning."""
        metrics = self.load(state)
        if metrics is None:
            self.metrics.unlink(missing_ok=True)
        else:
            write_text(self.metrics, metrics)

    def load(self, state: TrainingState[Model]) -> str | None:
        """Set the state back to the latest checkpoint; returns its metrics, None without one."""
        checkpoint = self.latest()
        if checkpoint is None:
            return None
        try:
            numbers = read_json(checkpoint / "state.json")
            tensors = current_names(load_tensors(checkpoint / "state.safetensors"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{checkpoint} is damaged: {error}") from None
        version, metrics = (numbers.pop(name, None) for name in ("format_version", "metrics"))
        numbers.pop("threads", None)
        if version != FORMAT_VERSION:
            raise ValueError(
                f"{checkpoint}: format version {shown(version)}, expected {FORMAT_VERSION}"
            )
        if not isinstance(metrics, str) or not metrics.isascii():
            raise ValueError(f"{checkpoint}: metrics are {shown(metrics)}, expected lines of text")
        try:
            state.restore(tensors, numbers)
        except ValueError as error:
            raise ValueError(f"{checkpoint}: {error}") from None
        return metrics

    def threads(self) -> int:
        """With how many threads the latest checkpoint was made; 0 where that is not known.

        Sums depend on it in their last bits.
        """
        try:
            path = (self.latest() or self.path) / "state.json"
            threads = read_json(path).get("threads")
        except (OSError, ValueError):
            return 0
        return threads if type(threads) is int and 0 < threads < MOST_THREADS else 0

    def write_results(self, results: dict[str, Any], keep: Collection[Path] = ()) -> None:
        """Write what the run came to; records of earlier weights go, they would be taken for it.

        Those in `keep` are of the final ones.
        """
        for kind in ("records", "cloze"):
            for path in self.path.glob(f"{kind}-*.csv"):
                if path not in keep:
                    path.unlink()
        write_text(self.results, json.dumps(_null_for_nan(results), indent=2) + "\n")

    def read_results(self) -> dict[str, Any]:
        """What the run came to; ValueError where it has not ended."""
        try:
            results: dict[str, Any] = _nan_for_null(read_json(self.results))
        except FileNotFoundError:
            raise ValueError(
                f"{self.path} has no all_results.json: the run has not ended"
            ) from None
        return results

    def append(self, line: dict[str, Any]) -> None:
        """Add a line of metrics."""
        lines = self.metrics.read_text(encoding="utf-8") if self.metrics.exists() else ""
        write_text(self.metrics, lines + json.dumps(_null_for_nan(line)) + "\n")


def _null_for_nan(value: Any) -> Any:
    """Numbers that JSON does not have, such as the perplexity of an empty group, are null."""
    if isinstance(value, dict):
        return {name: _null_for_nan(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _nan_for_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _nan_for_null(item) for name, item in value.items()}
    return math.nan if value is None else value


def _first_difference(saved: str, given: str) -> str:
    pairs = zip(saved.splitlines(), given.splitlines(), strict=False)
    return next((f"{a.strip()} / {b.strip()}" for a, b in pairs if a != b), "its length")
