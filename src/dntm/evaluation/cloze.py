"""The cloze test (Section 5.2.3, Table 4): which entity stood in the gap.

A mention of an entity that earlier sentences mention is a gap; the candidates E are all entities
that earlier sentences mention. A model puts each of them into the gap, with its memory as it stood
before the sentence, and compares the likelihoods of the sentence:

    MQ = |{e- in E- : p(e-) < p(e+)}| / |E-|,   E- = E without the true entity e+       Eq. 11

Other mentions in the sentence stay as they are. A tie counts against the model. The paper's
"multiple preceding entities followed by a cloze sentence" leaves out entities that the sentence
itself brings in (the memory knows nothing of them either), and gaps with a single candidate;
`same_sentence` takes the former in.

Departure: log-likelihoods closer than TIE are ties, since rounding must not decide.

The likelihood of a sentence is that of the entity itself times that of the words after it, and the
two tell different things: who is talked about at all, and what is said of whom. So beside the whole
sentence a second rank goes by the words after the gap alone.

A summary stands beside what a guess among n candidates would give:

chance of the mean quantile  1 / 2
chance of the accuracy       mean of 1 / n
chance of the reciprocal     mean of (1 + 1/2 + ... + 1/n) / n
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.records import Floats, Integers, read_columns, write_columns

TIE = 1e-4
"""Log-likelihoods (nats) closer than this are equal: rounding must not decide."""


class Gap(NamedTuple):
    """A mention to guess; sentence and position count from zero."""

    sentence: int
    position: int
    entity: int
    occurrence: int
    """How often the entity has occurred, this time included."""
    candidates: tuple[int, ...]
    """Entities in rising order, the true one among them; at least two."""


@dataclass(frozen=True, slots=True)
class ClozeText:
    """A document and its gaps, in reading order."""

    document: AnonymizedDocument
    gaps: tuple[Gap, ...]

    @classmethod
    def of(cls, document: AnonymizedDocument, *, same_sentence: bool = False) -> Self:
        """Find the gaps; `same_sentence` lets entities that the sentence brings in take part."""
        return cls(document, tuple(_gaps(document, same_sentence=same_sentence)))


class Filled(NamedTuple):
    """Log-likelihoods (nats) for every candidate of every gap of a document, in order."""

    gap: Floats
    """Of the candidate in the gap, after what the sentence says before it."""
    rest: Floats
    """Of the words after it and the end of the sentence."""


@dataclass(frozen=True, kw_only=True)
class ClozeRecords:
    """A table of gaps, a column a field."""

    document: list[str]
    sentence: Integers
    """From 1, in the document."""
    position: Integers
    """From 1, in the sentence."""
    entity: Integers
    occurrence: Integers
    """How often the entity has occurred, this time included."""
    candidates: Integers
    """How many, the true entity among them."""
    rank: Integers
    """The true entity's place by the likelihood of the sentence; 1 is the best."""
    quantile: Floats
    """Eq. 11."""
    correct: Integers
    """1 where the true entity comes first, else 0."""
    margin: Floats
    """Its log-likelihood less that of the best other candidate, in nats."""
    rest_rank: Integers
    """Its place by the likelihood of the words after the gap alone."""
    rest_quantile: Floats

    def __len__(self) -> int:
        return len(self.document)

    @classmethod
    def of(cls, texts: Iterable[ClozeText], filled: Iterable[Filled]) -> Self:
        """Rank the candidates of every gap."""
        names: list[str] = []
        rows: list[tuple[float, ...]] = []
        for text, scores in zip(texts, filled, strict=True):
            names.extend([text.document.name] * len(text.gaps))
            rows.extend(_rank(text, scores))
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(_KINDS) - 1)
        columns = zip(list(_KINDS.items())[1:], table.T, strict=True)
        return cls(document=names, **{name: c.astype(kind) for (name, kind), c in columns})

    def write(self, path: Path) -> None:
        """Write a CSV file with a header line."""
        write_columns(path, {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        return cls(**read_columns(path, _KINDS))


_NOT_INTEGERS = {"document": str, "quantile": float, "margin": float, "rest_quantile": float}
_KINDS = {field.name: _NOT_INTEGERS.get(field.name, int) for field in fields(ClozeRecords)}


def _gaps(document: AnonymizedDocument, *, same_sentence: bool) -> Iterator[Gap]:
    seen: dict[int, int] = {}
    for s, sentence in enumerate(document.sentences):
        before = tuple(sorted(seen))
        for p, token in enumerate(sentence):
            if not isinstance(token, int):
                continue
            candidates = tuple(sorted(seen)) if same_sentence else before
            seen[token] = seen.get(token, 0) + 1
            if token in candidates and len(candidates) > 1:
                yield Gap(s, p, token, seen[token], candidates)


def _quantile(rank: int, candidates: int) -> float:
    """Eq. 11: which share of the other candidates is less likely than the true one."""
    return (candidates - rank) / (candidates - 1)


def _rank(text: ClozeText, scores: Filled) -> Iterator[tuple[float, ...]]:
    """Each gap's columns, in the order of _KINDS."""
    sizes = [len(gap.candidates) for gap in text.gaps]
    for column in scores:
        if len(column) != sum(sizes):
            raise ValueError(
                f"document {text.document.name!r}: {len(column)} log-likelihoods, "
                f"expected {sum(sizes)}, one for each candidate of each gap"
            )
        if not np.isfinite(column).all():
            raise ValueError(
                f"document {text.document.name!r}: the model gives no finite likelihood for some "
                "candidate, so there is nothing to rank: its training diverged"
            )
    ends = np.cumsum(sizes)[:-1]
    whole, rest = np.split(scores.gap + scores.rest, ends), np.split(scores.rest, ends)
    for gap, by_sentence, by_rest in zip(text.gaps, whole, rest, strict=False):
        true = gap.candidates.index(gap.entity)
        others, size = np.delete(by_sentence, true), len(gap.candidates)
        rank, rest_rank = (  # 1 and those for which p(e-) < p(e+) does not hold
            1 + int(np.count_nonzero(np.delete(values, true) > values[true] - TIE))
            for values in (by_sentence, by_rest)
        )
        yield (
            *(gap.sentence + 1, gap.position + 1, gap.entity, gap.occurrence, size),
            *(rank, _quantile(rank, size), rank == 1, by_sentence[true] - others.max()),
            *(rest_rank, _quantile(rest_rank, size)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ClozeSummary:
    """Means over gaps; nan where there are none."""

    gaps: int
    mean_quantile: float
    """Eq. 11, by the likelihood of the sentence (Table 4)."""
    accuracy: float
    reciprocal_rank: float
    rest_mean_quantile: float
    """Eq. 11, by the likelihood of the words after the gap alone."""
    chance_mean_quantile: float
    chance_accuracy: float
    chance_reciprocal_rank: float

    def as_plain(self) -> dict[str, Any]:
        """The summary as JSON holds it."""
        return asdict(self)


def summarize_cloze(records: ClozeRecords) -> ClozeSummary:
    """Mean quantile, accuracy and mean reciprocal rank, and the chance of each."""
    n = records.candidates
    harmonic = np.cumsum(1 / np.arange(1, n.max(initial=1) + 1))

    def mean(values: np.ndarray) -> float:
        return float(values.mean()) if len(values) else float("nan")

    return ClozeSummary(
        gaps=len(records),
        mean_quantile=mean(records.quantile),
        accuracy=mean(records.correct),
        reciprocal_rank=mean(1 / records.rank),
        rest_mean_quantile=mean(records.rest_quantile),
        chance_mean_quantile=mean(np.full(len(records), 0.5)),
        chance_accuracy=mean(1 / n),
        chance_reciprocal_rank=mean(harmonic[n - 1] / n),
    )
