"""A report as a value, before any file format: claims, tables and figures.

Also numbers as text: means with errors, changes with intervals, durations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dntm.evaluation.records import Floats
from dntm.evaluation.uncertainty import Comparison, DocumentSums, mean_and_error, paired_bootstrap

NONE = "–"
Scalar = str | int | float | None
Data = tuple[dict[str, Scalar], ...]
"""Rows of a CSV file, not rounded; every row has the same columns."""
Verdict = Literal["holds", "unclear", "does not hold", "not tested"]


@dataclass(frozen=True)
class Entry:
    """One cell of a table."""

    text: str
    notes: tuple[str, ...] = ()
    """Smaller lines below: the change, the paper's value."""
    bold: bool = False


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    entries: tuple[Entry, ...]
    starts_block: bool = False
    """Whether a rule separates it from the row above."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table to read, and its numbers for other programs."""

    key: str
    """Name of its CSV file, and anchor on the page."""
    title: str
    caption: str
    header: tuple[str, ...]
    text_columns: int
    """Number of columns on the left that hold text."""
    rows: tuple[Row, ...]
    data: Data = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and whether it holds here."""

    statement: str
    verdict: Verdict
    finding: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing and its numbers."""

    key: str
    title: str
    svg: str
    data: Data


@dataclass(frozen=True, kw_only=True)
class Report:
    """The whole report."""

    title: str
    summary: tuple[str, ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]


def mean_error(values: Floats | None) -> tuple[float | None, float | None]:
    """Mean and standard error over seeds; None for what is undefined."""
    if values is None or not len(values):
        return None, None
    mean, error = (float(number) for number in mean_and_error(values))
    return (None if math.isnan(mean) else mean, None if math.isnan(error) else error)


def plus_minus(mean: float | None, error: float | None, digits: int) -> str:
    """Mean ± standard error. An error that would round to zero has one more digit."""
    if mean is None or math.isnan(mean):
        return NONE
    if error is None:
        return f"{mean:.{digits}f}"
    text, longer = (f"{error:.{n}f}" for n in (digits, digits + 1))
    return f"{mean:.{digits}f} ± {longer if float(longer) and not float(text) else text}"


def compare(baseline: DocumentSums, other: DocumentSums) -> Comparison | None:
    """A paired bootstrap over documents; None if there is no document."""
    return paired_bootstrap(baseline, other) if baseline.documents else None


def signed(value: float, digits: int) -> str:
    """A number with its sign; zero has none."""
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return text
    return ("+" if value > 0 else "−") + text


def interval(ends: tuple[float, float], digits: int) -> str:
    """An interval of differences."""
    return f"[{signed(ends[0], digits)}, {signed(ends[1], digits)}]"


def percent(ratio: float) -> str:
    """A ratio as a change: 0.98 is −2.0 %."""
    return f"{signed(100 * (ratio - 1), 1)} %"


def percent_interval(ends: tuple[float, float]) -> str:
    """An interval of ratios as an interval of changes in percent."""
    return interval((100 * (ends[0] - 1), 100 * (ends[1] - 1)), 1)


def duration(seconds: float) -> str:
    """Seconds as hours, minutes and seconds."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {whole % 60:02d} s" if minutes else f"{whole} s"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))
