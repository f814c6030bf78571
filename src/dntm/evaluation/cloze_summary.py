"""What the cloze test comes to (Table 4), beside what a guess among the candidates would give.

chance of the mean quantile  1 / 2
chance of the accuracy       mean of 1 / n
chance of the reciprocal     mean of (1 + 1/2 + ... + 1/n) / n      for n candidates
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dntm.evaluation.cloze import ClozeRecords


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
