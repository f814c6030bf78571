"""Curves: perplexity against how far the reading has come (Figures 4 to 6).

    Figure 4  all tokens, by their place in the document
    Figure 5  tokens right after an entity, by how often that entity had occurred
    Figure 6  reappearing entities, by the number of antecedent entities

Each is a group-by over records, as sums of nats and counts.

Departure: the paper's Figure 6 says "entities" and tells no bins; an entity with antecedents is a
reappearing one here, and the bins are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dntm.evaluation.records import Floats, Integers, Records
from dntm.evaluation.uncertainty import mean_and_error

POSITION_EDGES = (1, 51, 101, 151, 201, 301, 401, 501, 601, 801, 1001)
OCCURRENCE_EDGES = (1, 2, 3, 4, 5, 7, 9, 12, 16, 21)
ANTECEDENT_EDGES = (1, 3, 5, 7, 9, 12, 15, 18, 21, 26, 31)
"""Where each bin begins; the last one has no end."""
FEWEST = 30
"""A bin with fewer tokens has no perplexity: a few words would decide it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Sums over the tokens of each bin, of one run."""

    edges: tuple[int, ...]
    """The first value of each bin; the last bin has no end."""
    tokens: Integers
    nats: Floats
    """Minus the sums of the log-probabilities."""

    @property
    def perplexity(self) -> Floats:
        """A value a bin; nan where the bin holds fewer than FEWEST tokens."""
        return _perplexity(self.nats, self.tokens)


@dataclass(frozen=True, slots=True)
class Band:
    """The curves of several runs: their mean and its standard error."""

    edges: tuple[int, ...]
    tokens: Integers
    """Of a run."""
    mean: Floats
    """Perplexity; nan where the bin holds fewer than FEWEST tokens."""
    standard_error: Floats
    """Over runs; nan for a single one."""

    @property
    def labels(self) -> list[str]:
        """The bins in words: 1, 2, 3-4, 5+."""
        last = [edge - 1 for edge in self.edges[1:]]
        closed = zip(self.edges, last, strict=False)
        named = [f"{a}" if a == b else f"{a}-{b}" for a, b in closed]
        return [*named, f"{self.edges[-1]}+"]


def by_position(records: Records, edges: Sequence[int] = POSITION_EDGES) -> Curve:
    """Figure 4: all tokens by their place in the document, counted from 1."""
    everything = np.ones(len(records), dtype=np.bool_)
    return _curve(records, _places(records), everything, edges)


def by_occurrence(records: Records, edges: Sequence[int] = OCCURRENCE_EDGES) -> Curve:
    """Figure 5: tokens following an entity, by how often it had occurred by then."""
    return _curve(records, records.follows_occurrence, records.follows > 0, edges)


def by_antecedents(records: Records, edges: Sequence[int] = ANTECEDENT_EDGES) -> Curve:
    """Figure 6: reappearing entities, by how many entities the document had mentioned."""
    return _curve(records, records.antecedents, records.occurrence > 1, edges)


def band(curves: Sequence[Curve]) -> Band:
    """The same curve of several runs over the same text, as mean and standard error."""
    if not curves:
        raise ValueError("no curves given, expected one a run")
    first = curves[0]
    for curve in curves:
        if curve.edges != first.edges or not np.array_equal(curve.tokens, first.tokens):
            raise ValueError("curves of different bins or texts, expected runs over the same text")
    nats = np.array([curve.nats for curve in curves])
    mean, error = mean_and_error(_perplexity(nats, first.tokens))
    return Band(first.edges, first.tokens, mean, error)


def _curve(records: Records, x: Integers, chosen: NDArray[np.bool_], edges: Sequence[int]) -> Curve:
    if not edges or np.any(np.diff(edges) <= 0):
        raise ValueError(f"edges {list(edges)}, expected rising numbers")
    bins = np.searchsorted(edges, x, side="right") - 1
    kept = chosen & (bins >= 0)
    tokens = np.bincount(bins[kept], minlength=len(edges))
    nats: Floats = np.bincount(
        bins[kept], weights=-records.log_probability[kept], minlength=len(edges)
    ).astype(np.float64)
    return Curve(tuple(edges), tokens, nats)


def _places(records: Records) -> Integers:
    """Each token's place in its document, from 1; records come in reading order."""
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
