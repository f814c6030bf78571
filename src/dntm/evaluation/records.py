"""One record per predicted token: the source of every number in tables and figures.

This module sees only a model's log-probabilities: one for every token after <bos>, including <eos>,
in reading order. Everything else in a record follows from the text.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument, InputError
from dntm.files import write_text

if TYPE_CHECKING:
    from dntm.model.scorer import LanguageModel

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
_TYPES: dict[Any, Any] = {list[str]: str, Integers: int, Floats: float}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of the same length, one per field, first the place in the text."""

    document: list[str]
    sentence: Integers
    """From 1, in the document."""
    position: Integers
    """From 1, in the sentence."""

    def __len__(self) -> int:
        return len(self.document)

    def write(self, path: Path) -> None:
        """Write a CSV file with a header; numbers are read back unchanged."""
        columns = [getattr(self, field.name) for field in fields(self)]
        rows = zip(*(c if isinstance(c, list) else c.tolist() for c in columns), strict=True)
        write_text(path, as_csv([field.name for field in fields(self)], rows))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file written by `write`; InputError names the line that is damaged."""
        with path.open(encoding="utf-8", newline="") as handle:
            reader = csv.reader(handle)
            try:
                return cls.of_rows(cls._parsed(reader))
            except (csv.Error, ValueError) as error:
                raise InputError(str(path), reader.line_num, str(error)) from None

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[Any]]) -> Self:
        """Make a table of rows with one value per field."""
        columns = list(zip(*rows, strict=True)) or [()] * len(fields(cls))
        typed: dict[str, Any] = {}
        for field, column in zip(fields(cls), columns, strict=True):
            type_ = _TYPES[field.type]
            typed[field.name] = list(column) if type_ is str else np.array(column, type_)
        return cls(**typed)

    @classmethod
    def _parsed(cls, lines: Iterator[list[str]]) -> Iterator[list[Any]]:
        types = {field.name: _TYPES[field.type] for field in fields(cls)}
        if next(lines, None) != list(types):
            raise ValueError(f"expected the columns {', '.join(types)}")
        for row in lines:
            if len(row) != len(types):
                raise ValueError(f"{len(row)} values, expected {len(types)}")
            yield [type_(cell) for cell, type_ in zip(row, types.values(), strict=True)]


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def check_scores(document: str, scores: Floats, expected: int, what: str) -> None:
    """Refuse a wrong number of scores, or scores that are not finite."""
    if len(scores) != expected:
        raise ValueError(f"document {document!r}: {len(scores)} {what}, expected {expected}")
    if not np.isfinite(scores).all():
        raise ValueError(
            f"document {document!r}: {what} that are not finite; the training diverged"
        )


@dataclass(frozen=True, kw_only=True)
class Records(Table):
    """One row per predicted token."""

    token: list[str]
    entity: Integers
    """The entity's number; 0 for other tokens."""
    occurrence: Integers
    """Number of the entity's occurrences so far, this one included; 0 for other tokens."""
    follows: Integers
    """The entity right before this token in its sentence, else 0."""
    follows_occurrence: Integers
    """Number of that entity's occurrences so far."""
    antecedents: Integers
    """Number of distinct entities that the document mentions before this token."""
    log_probability: Floats

    @classmethod
    def of(
        cls,
        documents: Iterable[AnonymizedDocument],
        log_probabilities: Iterable[Floats],
        *,
        ends: bool = True,
    ) -> Self:
        """Combine documents and log-probabilities; `ends`: whether sentence ends are tokens."""

        def rows() -> Iterator[tuple[Any, ...]]:
            for document, scored in zip(documents, log_probabilities, strict=True):
                described = list(_describe(document, ends=ends))
                check_scores(document.name, scored, len(described), "log-probabilities")
                for row, score in zip(described, scored.tolist(), strict=True):
                    yield document.name, *row, score

        return cls.of_rows(rows())


def _describe(document: AnonymizedDocument, *, ends: bool) -> Iterator[tuple[int | str, ...]]:
    """The columns of each token's record except document and score, in the order of the fields."""
    seen: dict[int, int] = {}
    for s, sentence in enumerate(document.sentences, start=1):
        follows = 0
        for p, token in enumerate([*sentence, *(["<eos>"] if ends else [])], start=1):
            before = (follows, seen.get(follows, 0), len(seen))
            if isinstance(token, int):
                seen[token] = seen.get(token, 0) + 1
                yield s, p, f"[{token}]", token, seen[token], *before
            else:
                yield s, p, token, 0, 0, *before
            follows = token if isinstance(token, int) else 0


def records_of(model: "LanguageModel", documents: Iterable[AnonymizedDocument]) -> Records:
    """Score documents with a model."""
    first, second = tee(documents)
    return Records.of(first, model.score(second), ends=model.vocabulary.ends)


def ideal_records(dataset: Dataset, split: str) -> Records | None:
    """Records of the exact distribution of a storyworld dataset; None for any other dataset."""
    first = next(dataset.documents(split), None)
    if first is None or first.ideal is None:
        return None
    scores = (
        np.array([value for sentence in document.ideal or () for value in sentence])
        for document in dataset.documents(split)
    )
    return Records.of(dataset.documents(split), scores)
