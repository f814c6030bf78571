"""One record per predicted token: the only place that numbers in tables and figures come from.

Any language model is known here through its log-probabilities alone, one for every token after
<bos>, <eos> included, in reading order. What else a record says follows from the text.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.source import InputError
from dntm.files import write_text

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Column = list[str] | Integers | Floats


@dataclass(frozen=True, kw_only=True)
class Records:
    """A table of predicted tokens, a column a field."""

    document: list[str]
    sentence: Integers
    """From 1, in the document."""
    position: Integers
    """From 1, in the sentence."""
    token: list[str]
    entity: Integers
    """The entity's number where the token is one, else 0."""
    occurrence: Integers
    """How often the entity has occurred, this time included; 0 for other tokens."""
    follows: Integers
    """The entity right before this token in its sentence, else 0."""
    follows_occurrence: Integers
    """How often that entity had occurred by then."""
    antecedents: Integers
    """How many different entities the document has mentioned before this token."""
    log_probability: Floats

    def __len__(self) -> int:
        return len(self.document)

    @classmethod
    def of(
        cls, documents: Iterable[AnonymizedDocument], log_probabilities: Iterable[Floats]
    ) -> Self:
        """Set each document's log-probabilities beside what its text says of every token."""
        names: list[str] = []
        tokens: list[str] = []
        columns: list[tuple[int, ...]] = []
        scores: list[Floats] = []
        for document, scored in zip(documents, log_probabilities, strict=True):
            described = list(_describe(document))
            if len(described) != len(scored):
                raise ValueError(
                    f"document {document.name!r}: {len(scored)} log-probabilities, "
                    f"expected {len(described)}, one for each token and end of sentence"
                )
            if not np.isfinite(scored).all():
                raise ValueError(
                    f"document {document.name!r}: the model gives no finite log-probability for "
                    "some token, so there is nothing to score: its training diverged"
                )
            names.extend([document.name] * len(described))
            tokens.extend(token for token, _ in described)
            columns.extend(numbers for _, numbers in described)
            scores.append(np.asarray(scored, dtype=np.float64))
        table = np.array(columns, dtype=np.int64).reshape(-1, 7)
        return cls(
            document=names,
            token=tokens,
            log_probability=np.concatenate(scores) if scores else np.zeros(0),
            **{name: table[:, i] for i, name in enumerate(_INTEGERS)},
        )

    def write(self, path: Path) -> None:
        """Write a CSV file with a header line."""
        write_columns(path, {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        kinds = {"document": str, "token": str, "log_probability": float}
        return cls(**read_columns(path, {f.name: kinds.get(f.name, int) for f in fields(cls)}))


_INTEGERS = (
    "sentence",
    "position",
    "entity",
    "occurrence",
    "follows",
    "follows_occurrence",
    "antecedents",
)


def _describe(document: AnonymizedDocument) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each token of a document with its integer columns, in the order of _INTEGERS."""
    seen: dict[int, int] = {}
    for s, sentence in enumerate(document.sentences, start=1):
        follows = 0
        for p, token in enumerate([*sentence, "<eos>"], start=1):
            antecedents, follows_occurrence = len(seen), seen.get(follows, 0)
            if isinstance(token, int):
                seen[token] = seen.get(token, 0) + 1
                numbers = (s, p, token, seen[token], follows, follows_occurrence, antecedents)
                yield f"[{token}]", numbers
                follows = token
            else:
                yield token, (s, p, 0, 0, follows, follows_occurrence, antecedents)
                follows = 0


def ideal_scores(documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
    """Log-probabilities of texts that carry their exact distribution (storyworld)."""
    for document in documents:
        if document.ideal is None:
            raise ValueError(f"document {document.name!r} has no ideal reader: not storyworld")
        yield np.array([value for sentence in document.ideal for value in sentence])


def ideal_records(dataset: Dataset, split: str) -> Records | None:
    """What the ideal reader says of a split; None where the dataset knows no such reader."""
    first = next(dataset.documents(split), None)
    if first is None or first.ideal is None:
        return None
    return Records.of(dataset.documents(split), ideal_scores(dataset.documents(split)))


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
