"""One record per predicted token: the only place that numbers in tables and figures come from.

Any language model is known here through its log-probabilities alone, one for every token after
<bos>, <eos> included, in reading order. What else a record says follows from the text.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.source import InputError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Scorer(Protocol):
    """A language model as evaluation knows it."""

    def score_all(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """For each document the log-probability (nats) of every predicted token, in order."""


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
        with path.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle, lineterminator="\n")
            names = [field.name for field in fields(self)]
            writer.writerow(names)
            writer.writerows(zip(*(_plain(getattr(self, name)) for name in names), strict=True))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        with path.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.reader(handle))
        names = [field.name for field in fields(cls)]
        if not rows or rows[0] != names:
            raise InputError(str(path), 1, f"expected the columns {', '.join(names)}")
        columns = dict(zip(names, zip(*rows[1:], strict=True), strict=True))
        return cls(
            document=list(columns["document"]),
            token=list(columns["token"]),
            log_probability=np.array(columns["log_probability"], dtype=np.float64),
            **{name: np.array(columns[name], dtype=np.int64) for name in _INTEGERS},
        )


_INTEGERS = (
    "sentence",
    "position",
    "entity",
    "occurrence",
    "follows",
    "follows_occurrence",
    "antecedents",
)


def _plain(column: list[str] | Integers | Floats) -> Iterable[object]:
    return column if isinstance(column, list) else column.tolist()


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
