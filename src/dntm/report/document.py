"""A report as a value: sections of paragraphs, lists, tables and figures, before any format."""

from dataclasses import dataclass, field
from typing import Literal

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

    text: str


@dataclass(frozen=True)
class Items:
    """A list; of a pair the first half is a heading of its own."""

    items: tuple[str | tuple[str, str], ...]


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

    items: tuple[Claim, ...]


Block = Paragraph | Items | Claims | Table | Figure


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
