"""The run folder: what a training run leaves behind, and what it goes on from.

    config.yaml        every setting, resolved
    metrics.jsonl      one line a validation
    best/              the best weights by validation perplexity
    checkpoints/N/     the whole state after update N (the latest only)
    all_results.json   perplexity of every token group, once the run has ended

Each is complete or absent: files and folders are written aside and moved into place.
"""

import json
import shutil
from pathlib import Path
from typing import Any, Protocol

from dntm.files import new_folder, write_text
from dntm.model.tensors import load_tensors, save_tensors
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
    def begin(cls, config: RunConfig) -> "RunFolder":
        """Make the folder of a new run."""
        folder = cls(config.output_dir)
        if (config.output_dir / "config.yaml").exists():
            raise ValueError(
                f"{config.output_dir} holds a run already: pass --resume to go on with it, "
                "or choose another folder"
            )
        write_text(config.output_dir / "config.yaml", config.to_yaml())
        return folder

    @classmethod
    def resume(cls, config: RunConfig) -> "RunFolder":
        """Go on with the run of this folder; its settings must be the same."""
        path = config.output_dir / "config.yaml"
        if not path.exists():
            raise ValueError(f"{config.output_dir} holds no run to resume: it has no config.yaml")
        saved = path.read_text(encoding="utf-8")
        if saved != config.to_yaml():
            changed = _first_difference(saved, config.to_yaml())
            raise ValueError(f"{path} differs from the settings given ({changed}): cannot resume")
        return cls(config.output_dir)

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
            numbers = {"format_version": FORMAT_VERSION, "metrics": lines, **state.numbers()}
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
            numbers = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
            version = numbers.pop("format_version")
            metrics: str = numbers.pop("metrics")
            tensors = load_tensors(checkpoint / "state.safetensors")
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"{checkpoint} is damaged: {error}") from None
        if version != FORMAT_VERSION:
            raise ValueError(f"{checkpoint}: format version {version}, expected {FORMAT_VERSION}")
        try:
            state.restore(tensors, numbers)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{checkpoint}: {error}") from None
        return metrics

    def write_results(self, results: dict[str, Any]) -> None:
        """Write what the run came to; records of earlier weights go, they would be taken for it."""
        for kind in ("records", "cloze"):
            for path in self.path.glob(f"{kind}-*.csv"):
                path.unlink()
        write_text(self.results, json.dumps(results, indent=2) + "\n")

    def read_results(self) -> dict[str, Any]:
        """What the run came to; ValueError where it has not ended."""
        try:
            results: dict[str, Any] = json.loads(self.results.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(
                f"{self.path} has no all_results.json: the run has not ended"
            ) from None
        return results

    def append(self, line: dict[str, Any]) -> None:
        """Add a line of metrics."""
        lines = self.metrics.read_text(encoding="utf-8") if self.metrics.exists() else ""
        write_text(self.metrics, lines + json.dumps(line) + "\n")


def _first_difference(saved: str, given: str) -> str:
    pairs = zip(saved.splitlines(), given.splitlines(), strict=False)
    return next((f"{a.strip()} / {b.strip()}" for a, b in pairs if a != b), "its length")
