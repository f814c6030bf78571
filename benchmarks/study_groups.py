"""Every model of a study compared with one of them in every token group, first mentions included.

Reads the per-token records of the runs and writes one row per model and group. Perplexities are
means over seeds; intervals come from a paired bootstrap over whole documents. The report of a study
covers the paper's four groups only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dntm.corpus.dataset import Dataset
from dntm.evaluation.groups import Group
from dntm.evaluation.records import Records, as_csv
from dntm.evaluation.uncertainty import (
    DocumentSums,
    document_names,
    group_sums,
    paired_bootstrap,
    stacked,
    whole_documents,
)
from dntm.files import write_text
from dntm.study.config import StudyConfig, StudyFolder

COLUMNS = ("model", "group", "seeds", "baseline", "perplexity", "ratio", "ratio_low", "ratio_high")


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """Options of this benchmark."""

    study: Annotated[Path, tyro.conf.Positional]
    """The study folder."""
    baseline: str = "A"
    """The model that all others are compared with."""
    records: str = "records-test.csv"
    """Name of the file of records in each run folder."""
    output: Path = Path("groups.csv")
    """The table."""


def sums_of(files: Sequence[Path], group: Group, scored: Dataset) -> DocumentSums:
    """The sums of whole documents of runs with different seeds."""
    runs = [group_sums(Records.read(file), group) for file in files]
    return whole_documents(stacked(runs), document_names(scored.information))


def main(options: GroupOptions) -> None:
    """Write the table; models are compared over the seeds that both have."""
    folder = StudyFolder(options.study)
    config, dataset = StudyConfig.from_yaml(folder.settings), Dataset.open(folder.dataset)
    runs, rows = folder.path / "runs", []
    for model in config.models:
        names = (options.baseline, model)
        pairs = [[runs / f"{n}-{seed}" / options.records for n in names] for seed in config.seeds]
        pairs = [pair for pair in pairs if all(file.exists() for file in pair)]
        for group in Group if pairs else ():
            baseline, own = (sums_of(files, group, dataset) for files in zip(*pairs, strict=True))
            found = paired_bootstrap(baseline, own)
            interval = found.ratio_interval
            rows.append(
                (model, group, len(pairs), found.baseline, found.other, found.ratio, *interval)
            )
            change, low, high = (f"{100 * r - 100:+.1f} %" for r in (found.ratio, *interval))
            print(f"{model:12} {len(pairs)} seeds {group.label:25} {change} [{low}, {high}]")
    write_text(options.output, as_csv(COLUMNS, rows))


if __name__ == "__main__":
    main(tyro.cli(GroupOptions, description=__doc__))
