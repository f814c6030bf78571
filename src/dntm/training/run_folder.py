"""The run folder: the results of a training run, and its state to resume from.

    config.yaml        every setting, resolved
    metrics.jsonl      one line per validation
    best/              the best weights by validation perplexity
    checkpoints/N/     the whole state after update N (the latest only)
    all_results.json   results on the dev split, written at the end of the run

Each file or folder is complete or absent: it is written under a temporary name and moved.
"""

import json
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from dntm.files import exclusive_folder, new_folder, remove_stale_files, write_text
from dntm.model.checkpoint import load_tensors, save_tensors
from dntm.settings import read_json, shown
from dntm.training.config import PretrainConfig, TrainConfig
from dntm.training.processes import MAX_THREADS, Processes
from dntm.training.state import Model, TrainingState

FORMAT_VERSION = 1


class RunFolder:
    """The files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self.results = path / "all_results.json"
        self.best = path / "best"

    @classmethod
    @contextmanager
    def exclusive(cls, path: Path, group: Processes) -> Iterator["RunFolder"]:
        """Lock the folder for this run; ValueError if another run uses it."""
        if not group.is_first:
            yield cls(path)
            return
        with exclusive_folder(path):
            remove_stale_files(path)
            remove_stale_files(path / "checkpoints")
            yield cls(path)

    def begin(self, config: TrainConfig | PretrainConfig, *, resume: bool = False) -> None:
        """Begin a run; with `resume`, continue the one in the folder if there is one.

        ValueError if the folder has a run already, or `config` differs from the run to resume.
        """
        path, settings = self.path / "config.yaml", config.to_yaml()
        if not path.exists():
            write_text(path, settings)
        elif not resume:
            raise ValueError(
                f"{self.path} holds a run already: pass --resume to continue it, "
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
        """Save the whole state, then remove the previous one."""
        before = self.latest()
        target = self.path / "checkpoints" / str(state.position.updates)
        with new_folder(target, overwrite=True) as folder:
            save_tensors(state.tensors(), folder / "state.safetensors")
            header = {"format_version": FORMAT_VERSION, "threads": torch.get_num_threads()}
            numbers = header | {"metrics": self._lines()} | state.numbers()
            write_text(folder / "state.json", json.dumps(numbers))
        if before and before != target:
            shutil.rmtree(before)

    def restore(self, state: TrainingState[Model]) -> None:
        """Reset the state and the metrics to the latest checkpoint, or to the beginning."""
        metrics = self.load(state)
        if metrics is None:
            self.metrics.unlink(missing_ok=True)
        else:
            write_text(self.metrics, metrics)

    def load(self, state: TrainingState[Model]) -> str | None:
        """Reset the state to the latest checkpoint; return its metrics, or None without one."""
        checkpoint = self.latest()
        if checkpoint is None:
            return None
        try:
            numbers = read_json(checkpoint / "state.json")
            tensors = load_tensors(checkpoint / "state.safetensors")
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
        """The CPU threads that the latest checkpoint was made with; 0 if unknown.

        The last bits of sums depend on the number of threads.
        """
        try:
            path = (self.latest() or self.path) / "state.json"
            threads = read_json(path).get("threads")
        except (OSError, ValueError):
            return 0
        return threads if type(threads) is int and 0 < threads <= MAX_THREADS else 0

    def append(self, line: dict[str, Any]) -> None:
        """Append a line to the metrics."""
        write_text(self.metrics, self._lines() + json.dumps(_null_for_nan(line)) + "\n")

    def _lines(self) -> str:
        return self.metrics.read_text(encoding="utf-8") if self.metrics.exists() else ""

    def write_results(self, results: dict[str, Any]) -> None:
        """Write the results; remove records that were made with earlier weights."""
        for kind in ("records", "cloze"):
            for path in self.path.glob(f"{kind}-*.csv"):
                path.unlink()
        write_text(self.results, json.dumps(_null_for_nan(results), indent=2) + "\n")

    def read_results(self) -> dict[str, Any]:
        """Read the results; ValueError if the run has not ended."""
        try:
            results: dict[str, Any] = _nan_for_null(read_json(self.results))
        except FileNotFoundError:
            raise ValueError(
                f"{self.path} has no all_results.json: the run has not ended"
            ) from None
        return results


def _null_for_nan(value: Any) -> Any:
    """JSON has no NaN, such as the perplexity of an empty group: write null."""
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
