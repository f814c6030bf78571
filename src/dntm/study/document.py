"""A report as a value: sections of paragraphs, lists, tables and figures, before any format.

Below them numbers as words: means with their errors, changes with their intervals, times.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from dntm.evaluation.records import Floats
from dntm.evaluation.uncertainty import Comparison, DocumentSums, mean_and_error, paired_bootstrap
from dntm.study.paper import PaperValue

NONE = "–"
Scalar = str | int | float | None
Data = tuple[dict[str, Scalar], ...]
"""What a CSV file holds, unrounded: the same columns in every row."""
Verdict = Literal["held", "not clear", "did not hold", "could not be tested"]


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table."""

    text: str
    under: str = ""
    """A second, smaller line: the paper's value."""
    bold: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table; the first entries are words, the others numbers."""

    entries: tuple[Entry, ...]
    block: bool = False
    """Whether a line parts it from the row above."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table to read, and its numbers to compute with."""

    kind: ClassVar = "table"
    key: str
    """The name of its files."""
    title: str
    caption: str
    header: tuple[str, ...]
    words: int
    """How many columns on the left hold words."""
    rows: tuple[Row, ...]
    data: Data = field(default=())


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing."""

    kind: ClassVar = "figure"
    key: str
    title: str
    caption: str
    svg: str
    description: str
    """In words, for who cannot see it."""
    data: Data = field(default=())


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    kind: ClassVar = "paragraph"
    text: str


@dataclass(frozen=True)
class Items:
    """A list; of a pair the first half is a heading of its own."""

    kind: ClassVar = "items"
    items: tuple[str | tuple[str, str], ...]

    @property
    def in_pairs(self) -> bool:
        """Whether its items are pairs."""
        return not any(isinstance(item, str) for item in self.items)


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what was found."""

    statement: str
    verdict: Verdict
    finding: str

    @property
    def judged(self) -> str:
        """The verdict as a sentence."""
        return f"{self.verdict.capitalize()} here."


@dataclass(frozen=True)
class Claims:
    """A list of claims."""

    kind: ClassVar = "claims"
    items: tuple[Claim, ...]


Block = Paragraph | Items | Claims | Table | Figure
"""Templates tell them apart by their `kind`."""


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """All of it."""

    title: str
    lead: tuple[str, ...]
    """A few lines that say what this is."""
    notes: tuple[str, ...]
    """What a reader must know before trusting the numbers."""
    sections: tuple[Section, ...]

    @property
    def claims(self) -> list[Claim]:
        """All claims, in order."""
        blocks = [block for section in self.sections for block in section.blocks]
        return [claim for block in blocks if isinstance(block, Claims) for claim in block.items]

    @property
    def tables(self) -> list[Table]:
        """All tables, in order."""
        return [b for section in self.sections for b in section.blocks if isinstance(b, Table)]

    @property
    def figures(self) -> list[Figure]:
        """All figures, in order."""
        return [b for section in self.sections for b in section.blocks if isinstance(b, Figure)]


def plus_minus(values: Floats | None, digits: int) -> str:
    """Mean ± standard error over seeds; the value alone for one seed."""
    if values is None or not len(values):
        return NONE
    mean, error = (float(number) for number in mean_and_error(values))
    if math.isnan(mean):
        return NONE
    return f"{mean:.{digits}f}" + ("" if math.isnan(error) else f" ± {error:.{digits}f}")


def paper_value(value: PaperValue | None, digits: int) -> str:
    """The paper's mean and error, nothing where it has none; some errors have a digit more."""
    if value is None:
        return ""
    error = f"{value.error:.{digits}f}"
    if value.error and not float(error):
        error = f"{value.error:g}"
    return f"paper {value.mean:.{digits}f} ± {error}"


def mean_error(values: Floats | None) -> tuple[float | None, float | None]:
    """The same as numbers, None where there is none."""
    if values is None or not len(values):
        return None, None
    mean, error = (float(number) for number in mean_and_error(values))
    return (None if math.isnan(mean) else mean, None if math.isnan(error) else error)


def compare(baseline: DocumentSums, other: DocumentSums) -> Comparison | None:
    """A paired bootstrap over documents; None where nothing is counted."""
    return paired_bootstrap(baseline, other) if baseline.documents else None


def signed(value: float, digits: int) -> str:
    """A number with its sign, a true minus; zero has none."""
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return text
    return ("+" if value > 0 else "−") + text


def percent(ratio: float) -> str:
    """A ratio as a change: 0.98 is −2.0 %."""
    return f"{signed(100 * (ratio - 1), 1)} %"


def percent_interval(interval: tuple[float, float]) -> str:
    """An interval of ratios as one of changes."""
    low, high = (signed(100 * (end - 1), 1) for end in interval)
    return f"[{low}, {high}]"


def interval(ends: tuple[float, float], digits: int) -> str:
    """An interval of differences."""
    low, high = (signed(end, digits) for end in ends)
    return f"[{low}, {high}]"


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
