"""How sure a number is: standard errors over seeds, paired tests over documents.

Table 2 gives the mean and the standard error over three seeds. Whether two models differ on this
kind of text is another question: both read the same documents, so documents are resampled, in
pairs.

    paired bootstrap     draw as many documents with replacement, compare both models on the same
                         draw; the interval holds the middle `level` of the differences
    paired permutation   swap the two models in each document or not; the p-value is the share of
                         swaps under which they differ at least as much

All that is needed are each document's sums of nats (or quantiles) and counts. A statistic is the
mean over seeds of exp(nats / tokens), or of sum / count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dntm.evaluation.cloze import ClozeRecords
from dntm.evaluation.columns import Floats, Integers
from dntm.evaluation.groups import GROUPS, token_groups
from dntm.evaluation.records import Records

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class DocumentSums:
    """Per document, a row a seed: what a mean over documents is made of.

    Documents in which nothing is counted are left out.
    """

    documents: tuple[str, ...]
    sums: Floats
    """Seeds by documents."""
    counts: Integers
    """By documents: the text is the same for all seeds."""
    perplexity: bool
    """Whether the statistic is the exponential of the mean."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A model against a baseline on the same documents."""

    baseline: float
    """The mean over seeds of the baseline's perplexity (or mean quantile)."""
    other: float
    difference: float
    """The other's less the baseline's."""
    difference_interval: tuple[float, float]
    ratio: float
    """The other's over the baseline's."""
    ratio_interval: tuple[float, float]
    documents: int


def mean_and_error(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard error along the first axis, the seeds; one seed has no error (nan)."""
    seeds = len(values)
    if not seeds:
        raise ValueError("no values given, expected one a seed")
    if seeds == 1:
        return values[0], np.full(values.shape[1:], np.nan)
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(seeds)


def group_sums(runs: Sequence[Records], group: str) -> DocumentSums:
    """The nats and tokens of a token group, by document, of one run a seed."""
    if group not in GROUPS:
        raise ValueError(f"group {group!r}, expected one of {', '.join(GROUPS)}")
    masks = [token_groups(run)[group] for run in runs]
    values = [-run.log_probability[mask] for run, mask in zip(runs, masks, strict=True)]
    names = [list(np.array(run.document)[mask]) for run, mask in zip(runs, masks, strict=True)]
    return _sums(names, values, perplexity=True)


def cloze_sums(runs: Sequence[ClozeRecords], column: str = "quantile") -> DocumentSums:
    """The quantiles (or another column) and gaps, by document, of one run a seed."""
    values = [np.asarray(getattr(run, column), dtype=np.float64) for run in runs]
    return _sums([run.document for run in runs], values, perplexity=False)


def paired_bootstrap(
    baseline: DocumentSums,
    other: DocumentSums,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Difference and ratio of two models, with intervals from resampled documents."""
    _check_pair(baseline, other)
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, expected a share between 0 and 1")
    documents = len(baseline.documents)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(documents, np.full(documents, 1 / documents), size=resamples)
    a, b = (_statistic(sums, drawn.astype(np.float64)) for sums in (baseline, other))
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(b - a, ends)
    low_ratio, high_ratio = np.quantile(b / a, ends)
    once = np.ones((1, documents))
    whole_a, whole_b = (float(_statistic(sums, once)[0]) for sums in (baseline, other))
    return Comparison(
        baseline=whole_a,
        other=whole_b,
        difference=whole_b - whole_a,
        difference_interval=(float(low), float(high)),
        ratio=whole_b / whole_a,
        ratio_interval=(float(low_ratio), float(high_ratio)),
        documents=documents,
    )


def paired_permutation(
    baseline: DocumentSums, other: DocumentSums, *, resamples: int = RESAMPLES, seed: int = 0
) -> float:
    """The two-sided p-value of no difference in the mean, seeds averaged in each document.

    For perplexities that is the logarithm of their ratio. With so few documents that all swaps
    are fewer than `resamples`, every one of them is made, once.
    """
    _check_pair(baseline, other)
    differences = other.sums.mean(0) - baseline.sums.mean(0)
    documents = len(differences)
    if 2**documents <= resamples:
        swaps = np.arange(2**documents)[:, None] >> np.arange(documents) & 1
    else:
        swaps = np.random.default_rng(seed).integers(0, 2, size=(resamples, documents))
    found = np.abs((1 - 2 * swaps) @ differences)
    # Sums of the same numbers in another order differ in their last bits.
    as_large = int(np.count_nonzero(found >= abs(differences.sum()) * (1 - 1e-9)))
    exact = len(swaps) != resamples or 2**documents == resamples
    return as_large / len(swaps) if exact else (as_large + 1) / (resamples + 1)


def _sums(
    names: Sequence[Sequence[str]], values: Sequence[Floats], *, perplexity: bool
) -> DocumentSums:
    if not names:
        raise ValueError("no runs given, expected at least one")
    if any(list(found) != list(names[0]) for found in names):
        raise ValueError("runs over different texts, expected the same documents in all")
    documents, which = np.unique(np.asarray(names[0], dtype=np.str_), return_inverse=True)
    sums = [np.bincount(which, run, minlength=len(documents)) for run in values]
    counts = np.bincount(which, minlength=len(documents))
    return DocumentSums(tuple(map(str, documents)), np.array(sums), counts, perplexity)


def _check_pair(baseline: DocumentSums, other: DocumentSums) -> None:
    same_text = baseline.documents == other.documents and np.array_equal(
        baseline.counts, other.counts
    )
    if not same_text or baseline.perplexity != other.perplexity:
        raise ValueError("sums over different texts or of different kinds, expected a pair")
    if not baseline.documents:
        raise ValueError("sums over no documents, expected at least one")


def _statistic(sums: DocumentSums, drawn: Floats) -> Floats:
    """The mean over seeds, for every draw: how often each document was drawn."""
    means = (drawn @ sums.sums.T) / (drawn @ sums.counts.astype(np.float64))[:, None]
    statistic: Floats = (np.exp(means) if sums.perplexity else means).mean(1)
    return statistic
