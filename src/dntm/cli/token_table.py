"""A table of tokens, one row a predicted token: what `dntm score` and `dntm read` print."""

import csv
import io
from collections.abc import Iterable, Iterator

from dntm.reader.reading import COLUMNS, Reading


def table_lines(readings: Iterable[Reading]) -> Iterator[str]:
    """Lines of tab-separated values, the header first; quoted where a word needs it."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
    yield "\t".join(COLUMNS)
    for reading in readings:
        for *said, surprisal, static in reading.rows():
            writer.writerow([*said, f"{surprisal:.6f}", f"{static:.6f}"])
        yield buffer.getvalue().rstrip("\n")
        buffer.seek(0)
        buffer.truncate()
