"""Columns: tables of results as CSV files, a column a field, written whole or not at all."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.source import InputError
from dntm.files import write_text

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Column = list[str] | Integers | Floats


def write_columns(path: Path, columns: Mapping[str, Column]) -> None:
    """Write a CSV file with a header line; numbers read back as they were."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_plain(column) for column in columns.values()), strict=True))
    write_text(path, text.getvalue())


def read_columns(path: Path, kinds: Mapping[str, type]) -> dict[str, Any]:
    """Read what `write_columns` wrote; `kinds` gives each column's name and str, int or float."""
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.reader(handle)
        try:
            rows = [(reader.line_num, row) for row in reader]
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(str(path), reader.line_num, f"not a CSV file: {error}") from None
    if not rows or rows[0][1] != list(kinds):
        raise InputError(str(path), 1, f"expected the columns {', '.join(kinds)}")
    for line, row in rows[1:]:
        if len(row) != len(kinds):
            raise InputError(str(path), line, f"{len(row)} values, expected {len(kinds)}")
    return {
        name: _column(path, kind, [(line, row[i]) for line, row in rows[1:]])
        for i, (name, kind) in enumerate(kinds.items())
    }


def _plain(column: Column) -> Iterable[object]:
    return column if isinstance(column, list) else column.tolist()


def _column(path: Path, kind: type, cells: list[tuple[int, str]]) -> Column:
    values = []
    for line, cell in cells:
        try:
            values.append(kind(cell))
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise InputError(str(path), line, f"found {cell!r}, expected {wanted}") from None
    if kind is str:
        return values
    return np.array(values, np.int64) if kind is int else np.array(values, np.float64)
