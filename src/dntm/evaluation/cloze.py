"""The cloze test (Section 5.2.3, Table 4): predicting the entity in a gap.

Every mention of an entity that occurs in an earlier sentence is a gap. The candidates E are all
entities of earlier sentences. The model puts each candidate into the gap, with its memory as it was
before the sentence, and the likelihoods of the sentence are compared:

    MQ = |{e- in E- : p(e-) < p(e+)}| / |E-|,   E- = E without the true entity e+       Eq. 11

Other mentions in the sentence are unchanged. A tie counts against the model. Gaps with a single
candidate are left out, and so are entities that first occur in the sentence itself (the paper:
"multiple preceding entities followed by a cloze sentence").

Departure: log-likelihoods closer than TIE are ties.

The likelihood of a sentence is that of the entity times that of the words after it. A second rank
uses the words after the gap alone.

The expected values of a random choice among n candidates:

    mean quantile           1 / 2
    accuracy                mean of 1 / n
    mean reciprocal rank    mean of (1 + 1/2 + ... + 1/n) / n
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from dntm.corpus.document import AnonymizedDocument, Gap
from dntm.evaluation.records import Floats, Integers, Table, check_scores

if TYPE_CHECKING:
    from dntm.model.scorer import Completions

TIE = 1e-4
"""In nats. Smaller differences may be rounding errors."""


class ClozeText(NamedTuple):
    """A document and its gaps in reading order."""

    document: AnonymizedDocument
    gaps: tuple[Gap, ...]

    @classmethod
    def of(cls, document: AnonymizedDocument) -> Self:
        """Find the gaps."""
        seen: dict[int, int] = {}
        gaps: list[Gap] = []
        for s, sentence in enumerate(document.sentences):
            candidates = tuple(sorted(seen))
            for p, token in enumerate(sentence):
                if isinstance(token, int):
                    seen[token] = seen.get(token, 0) + 1
                    if token in candidates and len(candidates) > 1:
                        gaps.append(Gap(s, p, token, seen[token], candidates))
        return cls(document, tuple(gaps))


@dataclass(frozen=True, kw_only=True)
class ClozeRecords(Table):
    """One row per gap."""

    entity: Integers
    occurrence: Integers
    """Number of the entity's occurrences so far, this one included."""
    candidates: Integers
    """Number of candidates, the true entity included."""
    rank: Integers
    """Rank of the true entity by the likelihood of the sentence; 1 is the best."""
    quantile: Floats
    """Eq. 11."""
    correct: Integers
    """1 if the true entity is ranked first, else 0."""
    margin: Floats
    """Its log-likelihood minus that of the best other candidate, in nats."""
    rest_rank: Integers
    """Its rank by the likelihood of the words after the gap alone."""
    rest_quantile: Floats

    @classmethod
    def of(cls, texts: Iterable[ClozeText], filled: "Iterable[Completions]") -> Self:
        """Rank the candidates of every gap."""
        pairs = zip(texts, filled, strict=True)
        return cls.of_rows(row for text, scores in pairs for row in _rank(text, scores))


def _rank(text: ClozeText, scores: "Completions") -> Iterator[tuple[str | float, ...]]:
    """The record of each gap, in the order of the fields of ClozeRecords."""
    sizes = [len(gap.candidates) for gap in text.gaps]
    for column in scores:
        check_scores(text.document.name, column, sum(sizes), "log-likelihoods")
    ends = np.cumsum(sizes)[:-1]
    whole, rest = np.split(scores.gap + scores.rest, ends), np.split(scores.rest, ends)
    for gap, by_sentence, by_rest in zip(text.gaps, whole, rest, strict=False):
        true = gap.candidates.index(gap.entity)
        others, size = np.delete(by_sentence, true), len(gap.candidates)
        rank, rest_rank = (  # 1 + the number of e- without p(e-) < p(e+); see Eq. 11
            1 + int(np.count_nonzero(np.delete(values, true) > values[true] - TIE))
            for values in (by_sentence, by_rest)
        )
        yield (
            text.document.name,
            *(gap.sentence + 1, gap.position + 1, gap.entity, gap.occurrence, size),
            *(rank, (size - rank) / (size - 1), rank == 1, by_sentence[true] - others.max()),
            *(rest_rank, (size - rest_rank) / (size - 1)),
        )


def summarize_cloze(records: ClozeRecords) -> dict[str, float]:
    """Means over gaps, with the values of a random choice; nan without any gap.

    `mean_quantile` is Eq. 11 by the likelihood of the sentence (Table 4), `rest_mean_quantile` by
    that of the words after the gap alone.
    """
    n = records.candidates
    harmonic = np.cumsum(1 / np.arange(1, n.max(initial=1) + 1))

    def mean(values: np.ndarray) -> float:
        return float(values.mean()) if len(values) else float("nan")

    return {
        "gaps": len(records),
        "mean_quantile": mean(records.quantile),
        "accuracy": mean(records.correct),
        "reciprocal_rank": mean(1 / records.rank),
        "rest_mean_quantile": mean(records.rest_quantile),
        "chance_mean_quantile": mean(np.full(len(records), 0.5)),
        "chance_accuracy": mean(1 / n),
        "chance_reciprocal_rank": mean(harmonic[n - 1] / n),
    }
