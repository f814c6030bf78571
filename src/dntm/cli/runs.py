"""Shared by commands: threads and device, documents of a split, tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.groups import Group

Without = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]
"""Parts of a model that are left out; the option can be repeated."""


@dataclass(frozen=True, kw_only=True)
class Threads:
    """Options of a command that computes."""

    threads: int = 0
    """CPU threads; 0: PyTorch's default."""

    def set_threads(self) -> None:
        """Set the threads."""
        from dntm.training.processes import set_threads

        set_threads(self.threads)


@dataclass(frozen=True, kw_only=True)
class Computing(Threads):
    """Options of a command that can use a GPU."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Device to compute on; auto: CUDA if available, else the CPU."""


def documents_of(dataset: Dataset, split: str) -> list[AnonymizedDocument]:
    """The documents of a split; ValueError if there are none."""
    documents = list(dataset.documents(split))
    if not documents:
        raise ValueError(f"{dataset.folder} has no document in its {split} split")
    return documents


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
