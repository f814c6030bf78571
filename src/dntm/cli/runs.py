"""Shared by commands: threads and device, runs and their datasets, tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.cloze import ClozeSummary
from dntm.evaluation.groups import Group
from dntm.evaluation.uncertainty import Comparison
from dntm.files import resolved
from dntm.settings import read_yaml, typed

if TYPE_CHECKING:
    from dntm.model.scorer import Scorer
    from dntm.training.processes import Device


@dataclass(frozen=True, kw_only=True)
class Threads:
    """Options of a command that computes."""

    threads: int = 0
    """CPU threads; 0: as OMP_NUM_THREADS says, or as many as there are idle cores."""

    def set_threads(self) -> int:
        """Set the threads and return their number."""
        from dntm.training.processes import set_threads

        return set_threads(self.threads)


@dataclass(frozen=True, kw_only=True)
class Computing(Threads):
    """Options of a command that can use a GPU."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """The device; auto: CUDA if available, else the CPU."""


def own_dataset_of(run: Path, other: Dataset) -> Dataset:
    """The dataset that a run was trained on, or the other one where that is not known."""
    own = _own_dataset(run)
    return other if own is None else Dataset.open(own)


def dataset_of(run: Path, given: Path | None) -> Dataset:
    """The dataset that was given, or else the one the run was trained on."""
    own = given if given is not None else _own_dataset(run)
    if own is None:
        raise ValueError(f"{run} is no run folder that names its dataset: pass --dataset")
    return Dataset.open(own).check_content()


def result_file(run: Path, dataset: Dataset, name: str) -> Path:
    """Where a run's records go: RUN/NAME.csv, of another dataset RUN/NAME-DATASET.csv.

    A report takes RUN/records-test.csv for the run's own dataset.
    """
    own, here = _own_dataset(run), resolved(dataset.folder)
    foreign = own is not None and resolved(own) != here
    return run / (f"{name}-{here.name}.csv" if foreign else f"{name}.csv")


def _own_dataset(run: Path) -> Path | None:
    path = run / "config.yaml"
    if not path.is_file():
        return None
    settings = read_yaml(path)
    if "text" in settings:
        raise ValueError(f"{run} is a pretraining run, expected a language model (dntm train)")
    return typed(Path, settings.get("dataset"), f"{path}: dataset")  # type: ignore[no-any-return]


def documents_of(dataset: Dataset, split: str) -> list[AnonymizedDocument]:
    """The documents of a split; ValueError where there are none."""
    documents = list(dataset.documents(split))
    if not documents:
        raise ValueError(f"{dataset.folder} has no document in its {split} split")
    return documents


def model_of(run: Path, dataset: Dataset, device: "Device" = "cpu") -> "Scorer":
    """The best model of a run; ValueError if it has none, or another vocabulary."""
    from dntm.model.scorer import Scorer
    from dntm.training.processes import device_of

    if (run / "config.yaml").is_file() and not (run / "best").is_dir():
        raise ValueError(
            f"{run} has no weights yet: the run stopped before its first validation; "
            f"resume it with dntm train --output-dir {run} --resume"
        )
    model = Scorer.load(run)
    model.model.to(device_of(device))
    if model.vocabulary != dataset.vocabulary:
        raise ValueError(f"{run} was trained with another vocabulary than {dataset.folder}")
    return model


def printable(text: str) -> str:
    """The text without characters that would steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


CLOZE_TITLES = ("mean quantile", "accuracy", "reciprocal rank", "MQ after the gap", "gaps")


def print_groups(title: str, models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Perplexities, one row per model and one column per token group; then token counts."""
    print(f"{title:<28}" + "".join(f"{group.column:>18}" for group in Group))
    rows = list(models.items())
    for number, (name, groups) in enumerate(rows):
        counts = [groups[group]["tokens"] for group in Group]
        cells = [f"{groups[group]['perplexity']:.1f}" for group in Group]
        print(f"{_short(name):<28}" + "".join(f"{cell:>18}" for cell in cells))
        following = rows[number + 1][1] if number + 1 < len(rows) else None
        if following is None or [following[group]["tokens"] for group in Group] != counts:
            print(f"{'tokens':<28}" + "".join(f"{count:>18,}" for count in counts))


def print_changes(title: str, models: Mapping[str, Mapping[str, Comparison]]) -> None:
    """Changes of perplexity with intervals, one row per model and one column per token group."""
    print(title)
    print(" " * 28 + "".join(f"{group.column:>28}" for group in Group))
    for name, groups in models.items():
        cells = []
        for group in Group:
            cells.append("")
            if c := groups.get(group):
                change, low, high = (100 * (v - 1) for v in (c.ratio, *c.ratio_interval))
                cells[-1] = f"{change:+.1f} % [{low:+.1f}, {high:+.1f}]"
        print(f"{_short(name):<28}" + "".join(f"{cell:>28}" for cell in cells))


def print_cloze(title: str, models: Mapping[str, ClozeSummary]) -> None:
    """Table 4, one row per model; then the values of a random choice."""
    print(f"{title:<28}" + "".join(f"{name:>17}" for name in CLOZE_TITLES))
    for name, s in models.items():
        measured = (s.mean_quantile, s.accuracy, s.reciprocal_rank, s.rest_mean_quantile)
        _print_cloze_row(_short(name), measured, s.gaps)
    for guessed, gaps in dict.fromkeys(map(_chance, models.values())):
        _print_cloze_row("chance", guessed, gaps)


def _chance(summary: ClozeSummary) -> tuple[tuple[float, ...], int]:
    half = summary.chance_mean_quantile
    return (half, summary.chance_accuracy, summary.chance_reciprocal_rank, half), summary.gaps


def _print_cloze_row(name: str, values: Sequence[float], gaps: int) -> None:
    cells = [*(f"{value:.3f}" for value in values), f"{gaps:,}"]
    print(f"{name:<28}" + "".join(f"{cell:>17}" for cell in cells))


def _short(name: str) -> str:
    return name if len(name) <= 27 else "..." + name[-24:]
