"""Document curve: the gain of D over A, by number of training documents.

Reads the per-token records of studies that differ in the number of training documents
(`dntm reproduce`, or `dntm evaluate` on another dataset) and writes a table and a figure. Intervals
come from a paired bootstrap over whole documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import tyro
from matplotlib.figure import Figure

from benchmarks.study_groups import sums_of
from dntm.corpus.dataset import Dataset
from dntm.evaluation.groups import PAPER_GROUPS, Group
from dntm.evaluation.records import as_csv
from dntm.evaluation.uncertainty import Comparison, document_names, paired_bootstrap
from dntm.files import new_file, write_text
from dntm.study.config import StudyFolder

BASELINE, DYNAMIC = "A", "D-gru-relu"
COLUMNS = ("documents", "group", "seeds", BASELINE, DYNAMIC, "ratio", "ratio_low", "ratio_high")


@dataclass(frozen=True, kw_only=True)
class CurveOptions:
    """Options of this benchmark."""

    studies: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Study folders with runs of A and D-gru-relu."""
    dataset: Path | None = None
    """The dataset that was scored; if omitted, the one of each study."""
    records: str = "records-test.csv"
    """Name of the file of records in each run folder."""
    output: Path = Path("curve.csv")
    """The table; the figure has the same name, with .svg."""


class Point(NamedTuple):
    """D compared with A in one study."""

    documents: int
    """Training documents, without division into parts."""
    group: Group
    seeds: int
    found: Comparison


def main(options: CurveOptions) -> None:
    """Write the table and the figure."""
    points = [point for study in options.studies for point in compared(study, options)]
    points.sort(key=lambda point: point.documents)
    rows = [
        (*point[:3], f.baseline, f.other, f.ratio, *f.ratio_interval)
        for point in points
        for f in [point.found]
    ]
    write_text(options.output, as_csv(COLUMNS, rows))
    with new_file(options.output.with_suffix(".svg")) as target:
        drawn(points).savefig(target, format="svg", metadata={"Date": None})
    for documents, group, _, found in points:
        change, low, high = (
            f"{100 * r - 100:+.1f} %" for r in (found.ratio, *found.ratio_interval)
        )
        print(f"{documents:6,} {group.label:25} {change} [{low}, {high}]")


def compared(study: Path, options: CurveOptions) -> list[Point]:
    """D and A of one study, in every token group."""
    own = Dataset.open(StudyFolder(study).dataset)
    whole = document_names(own.information)
    documents = len({whole(document.name) for document in own.documents("train")})
    scored = Dataset.open(options.dataset) if options.dataset else own

    def files(model: str) -> list[Path]:
        return sorted((study / "runs").glob(f"{model}-[0-9]*/{options.records}"))

    points = []
    for group in Group:
        baseline, dynamic = (sums_of(files(m), group, scored) for m in (BASELINE, DYNAMIC))
        found = paired_bootstrap(baseline, dynamic)
        points.append(Point(documents, group, len(dynamic.sums), found))
    return points


def drawn(points: Sequence[Point]) -> Figure:
    """Change of perplexity by number of training documents, one line per token group."""
    figure = Figure(figsize=(7, 3.4), layout="tight")
    axes = figure.add_subplot()
    for group in (Group(name) for name in PAPER_GROUPS):
        own = [point for point in points if point.group == group]
        documents = [point.documents for point in own]
        [line] = axes.plot(
            documents, [100 * p.found.ratio - 100 for p in own], "o-", label=group.label
        )
        low, high = np.array([p.found.ratio_interval for p in own]).T * 100 - 100
        axes.fill_between(documents, low, high, color=line.get_color(), alpha=0.15, lw=0)
    axes.axhline(0, color="gray", lw=0.8)
    axes.set(xscale="log", xlabel="training documents", ylabel="perplexity of D relative to A (%)")
    ticks = sorted({point.documents for point in points})
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


if __name__ == "__main__":
    main(tyro.cli(CurveOptions, description=__doc__))
