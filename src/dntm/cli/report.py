"""`dntm report`: the report of a study, made from its files."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from dntm.experiments.study import StudyFolder

SHOWN = ("table-2", "table-4")
"""The tables that the terminal shows; the report has all."""


@dataclass(frozen=True)
class Command:
    """Make the report of a study, finished or not, from the files of its runs.

    The same files give the same report, byte for byte.
    """

    study: tyro.conf.Positional[Path]
    """The study folder (dntm reproduce)."""
    output_dir: Path | None = None
    """The folder to write to; STUDY/report where not given."""

    def run(self) -> None:
        """Write the files and print the main tables."""
        make_report(StudyFolder(self.study), self.output_dir)


def make_report(folder: StudyFolder, target: Path | None = None) -> None:
    """Write a report, print its main tables and what it says of the paper's claims."""
    from dntm.report.tabular import as_text
    from dntm.report.write import write_report

    report = write_report(folder, target)
    for table in report.tables:
        if table.key in SHOWN:
            print(f"\n{as_text(table)}")
    print()
    for claim in report.claims:
        print(f"{claim.statement}. {claim.judged} {claim.finding}")
    for note in report.notes:
        print(f"\n{note}")
    print(f"\nreport: {(target or folder.report) / 'report.html'}")
