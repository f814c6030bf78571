"""The run folder: the results of a training run, and its state to resume from.

    config.yaml        every setting, resolved
    metrics.jsonl      one line per validation
    best/              the best weights by validation perplexity
    checkpoints/N/     the whole state after update N (the latest only)
    all_results.json   results on the dev split, written at the end of the run
    machine.json       processor, versions, time and memory of each session (runs of a study)

Each file or folder is complete or absent: it is written under a temporary name and moved into
place. With several processes, only the first writes.
"""

import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from dntm.files import exclusive_folder, new_folder, remove_stale_files, write_text
from dntm.model.checkpoint import check_weights, load_tensors, save_tensors
from dntm.settings import read_json, shown, to_yaml
from dntm.training.config import PretrainConfig, TrainConfig
from dntm.training.processes import Interrupted, Processes, peak_memory_gb, processor_name
from dntm.training.state import Model, TrainingState

FORMAT_VERSION = 2
CHECKPOINT_SECONDS = 120.0
"""The most work that a kill can lose."""


class RunFolder:
    """The files of a run."""

    def __init__(self, path: Path, *, writes: bool = True) -> None:
        self.path, self.writes = path, writes
        self.metrics = path / "metrics.jsonl"
        self.results = path / "all_results.json"
        self.best = path / "best"
        self._saved = time.monotonic()

    @classmethod
    @contextmanager
    def exclusive(cls, path: Path, group: Processes) -> Iterator["RunFolder"]:
        """Lock the folder for this run; ValueError if another run uses it."""
        if not group.is_first:
            yield cls(path, writes=False)
            return
        with exclusive_folder(path):
            remove_stale_files(path)
            remove_stale_files(path / "checkpoints")
            yield cls(path)

    def begin(self, config: TrainConfig | PretrainConfig, *, resume: bool = False) -> None:
        """Begin a run; with `resume`, continue one with the same settings if there is one."""
        path, settings = self.path / "config.yaml", to_yaml(config)
        if not path.exists():
            write_text(path, settings)
        elif not resume:
            raise ValueError(
                f"{self.path} holds a run already: pass --resume to continue it, "
                "or choose another folder"
            )
        elif (saved := path.read_text(encoding="utf-8")) != settings:
            pairs = zip(saved.splitlines(), settings.splitlines(), strict=False)
            changes = (f"{a.strip()} / {b.strip()}" for a, b in pairs if a != b)
            changed = next(changes, "its length")
            raise ValueError(f"{path} differs from the settings given ({changed}): cannot resume")

    def latest(self) -> Path | None:
        """The newest complete checkpoint."""
        folder = self.path / "checkpoints"
        complete = [p for p in folder.iterdir() if p.name.isdecimal()] if folder.is_dir() else []
        return max(complete, key=lambda p: int(p.name), default=None)

    def save(self, state: TrainingState[Model]) -> None:
        """Save the whole state, then remove the previous one."""
        if not self.writes:
            return
        before = self.latest()
        target = self.path / "checkpoints" / str(state.position.updates)
        with new_folder(target, overwrite=True) as folder:
            save_tensors(state.tensors(), folder / "state.safetensors")
            numbers = {
                "format_version": FORMAT_VERSION,
                "threads": torch.get_num_threads(),
                "metrics": self._lines(),
                "position": asdict(state.position),
            }
            checked = {"checksum": _checksum(numbers), **numbers}
            write_text(folder / "state.json", json.dumps(checked))
        if before and before != target:
            shutil.rmtree(before)
        self._saved = time.monotonic()

    def save_if_due(self, state: TrainingState[Model], *, stop: bool) -> None:
        """Save the state every CHECKPOINT_SECONDS; if `stop`, save it and raise Interrupted."""
        if stop or time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            self.save(state)
        if stop:
            raise Interrupted

    def restore(self, state: TrainingState[Model]) -> None:
        """Reset the state and the metrics to the latest checkpoint, or to the beginning."""
        checkpoint, metrics = self.latest(), ""
        if checkpoint is not None:
            numbers, path = _numbers(checkpoint), checkpoint / "state.safetensors"
            tensors = load_tensors(path)
            check_weights(tensors, path)
            try:
                state.restore(tensors, numbers["position"])
            except ValueError as error:
                raise ValueError(f"{checkpoint}: {error}") from None
            metrics = numbers["metrics"]
        if self.writes and metrics:
            write_text(self.metrics, metrics)
        elif self.writes:
            self.metrics.unlink(missing_ok=True)

    def threads(self) -> int:
        """CPU threads of the latest checkpoint, on which the last bits depend; 0 without one."""
        checkpoint = self.latest()
        return int(_numbers(checkpoint)["threads"]) if checkpoint else 0

    def append(self, line: dict[str, Any]) -> None:
        """Append a line to the metrics."""
        write_text(self.metrics, self._lines() + _to_json(line) + "\n")

    def _lines(self) -> str:
        return self.metrics.read_text(encoding="utf-8") if self.metrics.exists() else ""

    def write_results(self, results: dict[str, Any]) -> None:
        """Write the results; remove records that were made with earlier weights."""
        for kind in ("records", "cloze"):
            for path in self.path.glob(f"{kind}-*.csv"):
                path.unlink()
        write_text(self.results, _to_json(results, indent=2) + "\n")

    def read_results(self) -> dict[str, Any]:
        """Read the results; ValueError if the run has not ended."""
        try:
            results: dict[str, Any] = _nan_for_null(read_json(self.results))
        except FileNotFoundError:
            raise ValueError(
                f"{self.path} has no all_results.json: the run has not ended"
            ) from None
        return results


def _numbers(checkpoint: Path) -> dict[str, Any]:
    """The state.json of a checkpoint; ValueError if it is damaged."""
    try:
        numbers = read_json(checkpoint / "state.json")
    except (OSError, ValueError) as error:
        raise ValueError(f"{checkpoint} is damaged: {error}") from None
    if (found := numbers.get("format_version")) != FORMAT_VERSION:
        raise ValueError(f"{checkpoint}: format version {shown(found)}, expected {FORMAT_VERSION}")
    if numbers.pop("checksum", None) != _checksum(numbers):
        raise ValueError(f"{checkpoint} is damaged: state.json does not match its checksum")
    return numbers


def _checksum(numbers: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()


def _to_json(value: dict[str, Any], indent: int | None = None) -> str:
    """JSON has no NaN, such as the perplexity of an empty group: write null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    return json.dumps(finite, indent=indent)


def _nan_for_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _nan_for_null(item) for name, item in value.items()}
    return math.nan if value is None else value


class Session:
    """One session of a run, as an entry of machine.json; without names of hosts and users."""

    def __init__(self, path: Path, threads: int) -> None:
        try:
            self.earlier = list(read_json(path)["sessions"]) if path.exists() else []
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from None
        self.path, self.began = path, time.monotonic()
        self.entry = {
            "processor": processor_name(),
            "cores": os.cpu_count() or 1,
            "threads": threads,
            "versions": {name: version(name) for name in ("dntm", "torch", "numpy")},
        }

    def note(self) -> None:
        """Write time and memory so far."""
        entry = {
            **self.entry,
            "seconds": round(time.monotonic() - self.began, 1),
            "peak_memory_gb": round(peak_memory_gb(), 3),
        }
        write_text(self.path, json.dumps({"sessions": [*self.earlier, entry]}, indent=2) + "\n")
