"""Each document's own sums, for tests of significance that a report does not make.

A row for every finished run and test document: the tokens of each group with their nats, and the
gaps of the cloze test with the sum of their quantiles.
"""

import csv
import io

from dntm.evaluation.groups import PAPER_GROUPS
from dntm.report.results import Run, StudyResults


def documents_csv(results: StudyResults) -> str:
    """The whole table."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    sums = [f"{group}_{what}" for group in PAPER_GROUPS for what in ("tokens", "nats")]
    writer.writerow(["model", "seed", "document", *sums, "gaps", "quantiles"])
    for run in results.runs:
        writer.writerows(_rows(run))
    return buffer.getvalue()


def _rows(run: Run) -> list[list[object]]:
    columns = {
        number: {
            document: (int(count), f"{total:.6f}")
            for document, count, total in zip(
                sums.documents, sums.counts, sums.sums[0], strict=True
            )
        }
        for number, sums in enumerate([*(run.groups[g] for g in PAPER_GROUPS), run.cloze])
    }
    return [
        [
            run.cell.model.name,
            run.cell.seed,
            document,
            *(value for column in columns.values() for value in column.get(document, (0, "0"))),
        ]
        for document in columns[0]
    ]
