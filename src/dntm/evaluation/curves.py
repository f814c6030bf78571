"""Perplexity as a function of the history (Figures 4 to 6).

    Figure 4  all tokens, by their position in the document
    Figure 5  tokens right after an entity, by the number of its occurrences
    Figure 6  reappearing entities, by the number of antecedent entities

Each curve is a group-by over records, as sums of nats and counts.

Departure: the paper's Figure 6 says "entities" and gives no bins. Here it shows reappearing
entities, with bins of our own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dntm.evaluation.groups import token_groups
from dntm.evaluation.records import Floats, Integers, Records
from dntm.evaluation.uncertainty import mean_and_error

POSITION_EDGES = (1, 51, 101, 151, 201, 301, 401, 501, 601, 801, 1001)
OCCURRENCE_EDGES = (1, 2, 3, 4, 5, 7, 9, 12, 16, 21)
ANTECEDENT_EDGES = (1, 3, 5, 7, 9, 12, 15, 18, 21, 26, 31)
"""The first value of each bin; the last bin is open."""
FEWEST = 30
"""Bins with fewer tokens have no perplexity."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Sums over the tokens of each bin for one run."""

    edges: tuple[int, ...]
    """The first value of each bin; the last bin is open."""
    tokens: Integers
    nats: Floats
    """Negative sums of the log-probabilities."""

    @property
    def perplexity(self) -> Floats:
        """One value per bin; nan for bins with fewer than FEWEST tokens."""
        return _perplexity(self.nats, self.tokens)


@dataclass(frozen=True, slots=True)
class Band:
    """Mean and standard error of the curves of several runs."""

    edges: tuple[int, ...]
    tokens: Integers
    """The same for all runs."""
    mean: Floats
    """Perplexity; nan for bins with fewer than FEWEST tokens."""
    standard_error: Floats
    """Over runs; nan for a single run."""

    @property
    def labels(self) -> list[str]:
        """The names of the bins: 1, 2, 3-4, 5+."""
        last = [edge - 1 for edge in self.edges[1:]]
        closed = zip(self.edges, last, strict=False)
        named = [f"{a}" if a == b else f"{a}-{b}" for a, b in closed]
        return [*named, f"{self.edges[-1]}+"]


def by_position(records: Records, edges: Sequence[int] = POSITION_EDGES) -> Curve:
    """Figure 4: all tokens by their position in the document, from 1."""
    return _curve(records, _positions(records), token_groups(records)["all"], edges)


def by_occurrence(records: Records, edges: Sequence[int] = OCCURRENCE_EDGES) -> Curve:
    """Figure 5: tokens following an entity, by the number of its occurrences so far."""
    groups = token_groups(records)
    return _curve(records, records.follows_occurrence, groups["following"], edges)


def by_antecedents(records: Records, edges: Sequence[int] = ANTECEDENT_EDGES) -> Curve:
    """Figure 6: reappearing entities, by the number of entities mentioned before."""
    return _curve(records, records.antecedents, token_groups(records)["reappearing"], edges)


def band(curves: Sequence[Curve]) -> Band:
    """Mean and standard error of one curve over runs on the same text."""
    if not curves:
        raise ValueError("no curves given, expected one per run")
    first = curves[0]
    for curve in curves:
        if curve.edges != first.edges or not np.array_equal(curve.tokens, first.tokens):
            raise ValueError("curves of different bins or texts, expected runs over the same text")
    nats = np.array([curve.nats for curve in curves])
    mean, error = mean_and_error(_perplexity(nats, first.tokens))
    return Band(first.edges, first.tokens, mean, error)


def _curve(records: Records, x: Integers, chosen: NDArray[np.bool_], edges: Sequence[int]) -> Curve:
    if not edges or np.any(np.diff(edges) <= 0):
        raise ValueError(f"edges {list(edges)}, expected ascending numbers")
    bins = np.searchsorted(edges, x, side="right") - 1
    kept = chosen & (bins >= 0)
    tokens = np.bincount(bins[kept], minlength=len(edges))
    nats: Floats = np.bincount(
        bins[kept], weights=-records.log_probability[kept], minlength=len(edges)
    ).astype(np.float64)
    return Curve(tuple(edges), tokens, nats)


def _positions(records: Records) -> Integers:
    """The position of each token in its document, from 1; records are in reading order."""
    if not len(records):
        return np.zeros(0, dtype=np.int64)
    names = np.array(records.document)
    begins = (names[1:] != names[:-1]) | (np.diff(records.sentence) < 0)
    starts = np.flatnonzero(np.concatenate(([True], begins)))
    lengths = np.diff(np.append(starts, len(names)))
    return np.arange(1, len(names) + 1) - np.repeat(starts, lengths)


def _perplexity(nats: Floats, tokens: Integers) -> Floats:
    mean = np.divide(nats, tokens, out=np.full(nats.shape, np.nan), where=tokens >= FEWEST)
    perplexity: Floats = np.exp(mean)
    return perplexity
