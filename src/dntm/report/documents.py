"""Each document's own sums, for tests of significance that a report does not make.

A row for every finished run and test document: the tokens of each group with their nats, and the
gaps of the cloze test with the sum of their quantiles.
"""

from dntm.evaluation.by_document import as_csv, document_rows, sum_columns
from dntm.evaluation.groups import PAPER_GROUPS
from dntm.report.results import StudyResults


def documents_csv(results: StudyResults) -> str:
    """The whole table."""
    header = ["model", "seed", "document", *sum_columns(PAPER_GROUPS), "gaps", "quantiles"]
    rows = (
        [run.cell.model.name, run.cell.seed, *row]
        for run in results.runs
        for row in document_rows([*(run.groups[g] for g in PAPER_GROUPS), run.cloze])
    )
    return as_csv(header, rows)
