"""Stimuli: the texts of a table, their regions, and sums over texts and regions.

A table is CSV, TSV or JSON lines, optionally gzipped. The delimiter of CSV and TSV is the most
frequent one in the header line: tab, comma or semicolon.

A region is marked in the text, as in `The key to the cabinets [[is]] rusty.`, or given by its words
in a column of the table. It consists of whole whitespace-separated words: every word with at least
one marked character. Marks are removed before the text is read.
"""

import csv
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, dropwhile
from pathlib import Path
from typing import Any, NamedTuple

from dntm.corpus.document import InputError, numbered_lines
from dntm.corpus.text import sentences_in
from dntm.reader.reading import SURPRISALS, WORD_COLUMNS, Reading
from dntm.settings import parse_json

_MARK = re.compile(r"(\[\[|\]\])")
_SURROGATE = re.compile("[\ud800-\udfff]")  # a byte that is not UTF-8
MEASURES = tuple(name for name in SURPRISALS if name.endswith("surprisal"))
"""Columns that are summed over texts and regions."""


class Stimulus(NamedTuple):
    """One row of a table."""

    number: int
    """Counted from 1."""
    values: Mapping[str, Any]
    """All columns, unchanged."""
    texts: Sequence[str]
    """The texts without marks."""
    regions: Sequence[Mapping[str, range]]
    """The regions of each text: name and indices of whitespace-separated words."""


@dataclass(frozen=True, kw_only=True)
class StimulusConfig:
    """The columns of a table of stimuli."""

    text_column: tuple[str, ...] = ()
    """Read a table (CSV, TSV or JSON lines) with the texts in this column. Every row is an
    independent text, and its other columns are copied to the output. Two columns: minimal pairs,
    one output row per pair."""
    region_column: str | None = None
    """Tables: a column with the words of a region, which must occur exactly once in the text.
    Regions can also be marked in the text: The key [[is]] rusty."""
    region_names: str | None = None
    """Tables: a column with the names of the marked regions, separated by spaces. If omitted,
    regions are numbered 1, 2, ..."""
    group_by: str | None = None
    """Minimal pairs: also print the accuracy for each value of this column. A pair is correct if
    the first text has the lower surprisal."""

    def __post_init__(self) -> None:
        if self.region_column and self.region_names:
            raise ValueError("--region-column and --region-names are given, expected one of them")

    def read(self, path: Path, name: str, skipped: list[str] | None = None) -> list[Stimulus]:
        """Read the stimuli of a file; `name` is its name in error messages.

        A malformed row raises InputError, or is skipped and listed in `skipped` if that is given.
        """
        columns: list[str] = []
        found: list[Stimulus] = []
        for number, (line, row) in enumerate(_rows(path)):
            try:
                if isinstance(row, Exception):
                    raise row
                if not columns:
                    columns = self._columns(row)
                    continue
                values = _values(row, columns)
                texts = [self._text(values, column) for column in self.text_column]
                found.append(Stimulus(number, values, *zip(*texts, strict=True)))
            except ValueError as error:
                problem = InputError(name, line, str(error))
                if skipped is None or not columns:
                    raise problem from None
                skipped.append(str(problem))
        if not found:
            reason = f"; the first problem: {skipped[0]}" if skipped else ""
            raise InputError(name, None, f"no stimulus, expected at least one row{reason}")
        return found

    def _columns(self, header: Any) -> list[str]:
        """The names of the columns; ValueError if a name is missing, empty or duplicate."""
        columns = list(parse_json(header)) if isinstance(header, bytes) else header
        for column, count in Counter(columns).items():
            if _SURROGATE.search(column):
                raise ValueError(f"column {column!r}, expected UTF-8")
            if count > 1 or not column.strip():
                raise ValueError(f"{count} columns named {column!r}, expected unique names")
        for column in (*self.text_column, self.region_column, self.region_names, self.group_by):
            if column is not None and column not in columns:
                raise ValueError(f"no column {column!r}, found {', '.join(columns)}")
        return columns

    def _text(self, values: Mapping[str, Any], column: str) -> tuple[str, Mapping[str, range]]:
        """A text without marks, and its regions."""
        marked = values[column]
        if not isinstance(marked, str) or not any(sentences_in(_MARK.sub("", marked))):
            raise ValueError(f"column {column!r} is {marked!r}, expected a text")
        keys = (self.region_column, self.region_names)
        words, given = (str(values.get(key or "") or "").strip() for key in keys)
        names = given.split()
        if words:
            pattern = rf"(?:(?<!\w)|(?=\W)){re.escape(words)}(?:(?!\w)|(?<=\W))"
            given_text = marked
            marked, count = re.subn(pattern, r"[[\g<0>]]", marked)
            names = [str(self.region_column)]
            if count != 1:
                raise ValueError(f"{words!r} occurs {count} times in {given_text!r}, expected once")
        text, regions = without_marks(marked)
        names = names or [str(n + 1) for n in range(len(regions))]
        if not len(names) == len(set(names)) == len(regions):
            raise ValueError(f"{len(regions)} regions in {marked!r}, expected {names}")
        return text, dict(zip(names, regions, strict=True))


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    """The number of the first line of each row, and its cells, JSON line or error."""
    filled = dropwhile(lambda line: not line[1].strip(), numbered_lines(path))
    first = next(filled, (1, b""))
    lines = chain([first], filled)
    if first[1].lstrip().startswith(b"{"):
        yield first
        yield from ((number, line) for number, line in lines if line.strip())
        return
    # Bytes that are not UTF-8 become surrogates, so that the other rows can be read
    csv.field_size_limit(2**31 - 1)
    decoded = (line.decode(errors="surrogateescape") for _, line in lines)
    delimiter = max("\t,;", key=lambda mark: first[1].count(mark.encode()))
    reader = csv.reader(decoded, delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + first[0]
        try:
            if cells := next(reader):
                yield number, cells
        except StopIteration:
            return
        except csv.Error as error:
            odd = "UTF-16, or line ends without a line feed" if "new-line" in str(error) else error
            yield number, ValueError(f"{odd}, expected CSV in UTF-8")


def _values(row: Any, columns: Sequence[str]) -> dict[str, Any]:
    values = parse_json(row) if isinstance(row, bytes) else row
    if isinstance(row, list) and len(row) == len(columns):
        values = dict(zip(columns, row, strict=True))
    if not isinstance(values, dict) or set(values) != set(columns):
        raise ValueError(f"{values!r:.200}, expected the columns {', '.join(columns)}")
    for column, value in values.items():
        if _SURROGATE.search(str(value)):
            raise ValueError(f"column {column!r} is {value!r:.200}, expected UTF-8")
    return values


def without_marks(marked: str) -> tuple[str, list[range]]:
    """The text without [[ and ]], and the words between them."""
    pieces = re.split(_MARK, marked)
    if pieces[1::2] != ["[[", "]]"] * (len(pieces) // 4):
        raise ValueError(f"marks {' '.join(pieces[1::2])} in {marked!r}, expected [[ ... ]]")
    text = "".join(pieces[::2])
    places = list(accumulate(map(len, pieces[::2])))
    words = [word.span() for word in re.finditer(r"\S+", text)]
    starts, ends = ([span[side] for span in words] for side in (0, 1))
    regions: list[range] = []
    for start, end in zip(places[:-1:2], places[1::2], strict=True):
        region = range(bisect_right(ends, start), bisect_left(starts, end))
        if not region or (regions and region[0] < regions[-1].stop):
            raise ValueError(
                f"region {text[start:end]!r} in {marked!r}, expected words, each in only one region"
            )
        regions.append(region)
    return text, regions


def summary_keys(stimuli: Iterable[Stimulus]) -> list[str]:
    """The keys of `summarize`, with the regions of all stimuli."""
    names = dict.fromkeys(n for stimulus in stimuli for found in stimulus.regions for n in found)
    prefixes = ["", *(f"region_{name}_" for name in names)]
    return [prefix + key for prefix in prefixes for key in ("words", *MEASURES)]


def summarize(reading: Reading, regions: Mapping[str, range]) -> dict[str, float]:
    """The number of words and the sum of each measure, for a text and for its regions.

    Sentence ends are included in the sums of the text, but not in those of regions.
    """
    rows: list[dict[str, Any]] = [
        dict(zip(WORD_COLUMNS, row, strict=True)) for row in reading.word_rows()
    ]
    parts = {f"region_{name}_": rows[words.start : words.stop] for name, words in regions.items()}
    found: dict[str, float] = {}
    for prefix, part in {"": rows, **parts}.items():
        found[f"{prefix}words"] = len(part)
        for name in MEASURES:
            found[prefix + name] = sum(row[name] or 0 for row in part)
    return found | {name: sum(getattr(t, name) for t in reading.tokens) for name in MEASURES}
