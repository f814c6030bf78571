"""Each document's own sums as rows of a table, for tests of significance that are not made here."""

import csv
import io
from collections.abc import Iterable, Sequence

from dntm.evaluation.uncertainty import DocumentSums


def sum_columns(groups: Iterable[str]) -> list[str]:
    """The names of the columns that some token groups fill."""
    return [f"{group}_{what}" for group in groups for what in ("tokens", "nats")]


def document_rows(columns: Sequence[DocumentSums]) -> list[list[object]]:
    """A row for each document of the first: its name, then count and sum (first seed) in each."""
    found = [
        {
            document: (int(count), f"{total:.6f}")
            for document, count, total in zip(
                sums.documents, sums.counts, sums.sums[0], strict=True
            )
        }
        for sums in columns
    ]
    return [
        [document, *(value for column in found for value in column.get(document, (0, "0")))]
        for document in columns[0].documents
    ]


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The whole table."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()
