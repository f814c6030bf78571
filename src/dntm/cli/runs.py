"""Shared by commands: threads and device, runs and their datasets, tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.groups import Group
from dntm.settings import read_yaml, typed

if TYPE_CHECKING:
    from dntm.model.scorer import Scorer
    from dntm.training.processes import Device


Without = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]
"""Parts of a model that are left out; the option can be repeated."""


@dataclass(frozen=True, kw_only=True)
class Threads:
    """Options of a command that computes."""

    threads: int = 0
    """CPU threads; 0: the value of OMP_NUM_THREADS or, if it is not set, the number of idle
    cores."""

    def set_threads(self) -> int:
        """Set the threads and return their number."""
        from dntm.training.processes import set_threads

        return set_threads(self.threads)


@dataclass(frozen=True, kw_only=True)
class Computing(Threads):
    """Options of a command that can use a GPU."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Device to compute on; auto: CUDA if available, else the CPU."""


def own_dataset(run: Path) -> Path | None:
    """The dataset that a run was trained on; None if that is not known."""
    path = run / "config.yaml"
    if not path.is_file():
        return None
    settings = read_yaml(path)
    if "text" in settings:
        raise ValueError(f"{run} is a pretraining run, expected a language model (dntm train)")
    return typed(Path, settings.get("dataset"), f"{path}: dataset")  # type: ignore[no-any-return]


def documents_of(dataset: Dataset, split: str) -> list[AnonymizedDocument]:
    """The documents of a split; ValueError if there are none."""
    documents = list(dataset.documents(split))
    if not documents:
        raise ValueError(f"{dataset.folder} has no document in its {split} split")
    return documents


def model_of(run: Path, dataset: Dataset, device: "Device" = "cpu") -> "Scorer":
    """The best model of a run; ValueError if it has none, or a different vocabulary."""
    from dntm.model.scorer import Scorer
    from dntm.training.processes import device_of

    if (run / "config.yaml").is_file() and not (run / "best").is_dir():
        raise ValueError(
            f"{run} has no weights: the run stopped before its first validation; "
            f"resume it with dntm train --output-dir {run} --resume"
        )
    model = Scorer.load(run)
    model.model.to(device_of(device))
    if model.vocabulary.ends and model.vocabulary != dataset.vocabulary:
        raise ValueError(f"{run} and {dataset.folder} have different vocabularies")
    return model


def printable(text: str) -> str:
    """The text without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def aligned(rows: Sequence[Sequence[str]], text_columns: int = 1) -> Iterator[str]:
    """The lines of a table; the first `text_columns` are aligned to the left, the rest right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if column < text_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def print_table(rows: Sequence[Sequence[str]], text_columns: int = 1) -> None:
    """Print rows in aligned columns."""
    print("\n".join(aligned(rows, text_columns)))


def print_groups(title: str, models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Perplexities, one row per model and one column per token group; then token counts."""
    rows = [[title, *(group.column for group in Group)]]
    for name, groups in models.items():
        counts = ["tokens", *(f"{groups[group]['tokens']:,}" for group in Group)]
        if rows[-1] == counts:  # models of the same text share one row of counts
            rows.pop()
        rows.append([name, *(f"{groups[group]['perplexity']:.1f}" for group in Group)])
        rows.append(counts)
    print_table(rows)
