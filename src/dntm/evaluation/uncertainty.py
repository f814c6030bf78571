"""Standard errors over seeds, and a paired bootstrap over documents.

Table 2 reports the mean and the standard error over three seeds. They do not show whether two
models differ on this kind of text. Both models read the same documents, so the bootstrap is paired:
documents are drawn with replacement, as many as there are, and the same ones for both models. The
interval holds the middle 95 % of the differences. The parts of a document are not independent, so
whole documents are drawn (`whole_documents`).

The bootstrap needs only each document's sum of nats (or quantiles) and its count. A statistic is
the mean over seeds of exp(nats / tokens), or of sum / count.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dntm.evaluation.cloze import ClozeRecords
from dntm.evaluation.groups import Curve, Group, groups_of
from dntm.evaluation.records import Floats, Integers, Records

RESAMPLES = 10_000
FEWEST = 30
"""Bins of a curve with fewer tokens have no perplexity."""


@dataclass(frozen=True, slots=True)
class DocumentSums:
    """Sums and counts per document. Documents with a count of zero are left out."""

    documents: tuple[str, ...]
    sums: Floats
    """One row per seed, one column per document."""
    counts: Integers
    """One per document; the same for all seeds."""
    perplexity: bool
    """Whether the statistic is exp(mean) rather than the mean."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A model against a baseline on the same documents."""

    baseline: float
    """The mean over seeds of the baseline's perplexity (or mean quantile)."""
    other: float
    difference: float
    """`other` minus `baseline`."""
    difference_interval: tuple[float, float]
    ratio: float
    """`other` divided by `baseline`; nan for a mean quantile."""
    ratio_interval: tuple[float, float]


def mean_and_error(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard error over the first axis, the seeds; the error of one seed is nan."""
    if len(values) == 1:
        return values[0], np.full(values.shape[1:], np.nan)
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))


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
        closed = [(first, after - 1) for first, after in pairwise(self.edges)]
        named = [f"{a}" if a == b else f"{a}-{b}" for a, b in closed]
        return [*named, f"{self.edges[-1]}+"]


def band(curves: Sequence[Curve]) -> Band:
    """Mean and standard error of one curve over runs on the same text."""
    edges, tokens = curves[0].edges, curves[0].tokens
    nats = np.array([curve.nats for curve in curves])
    means = np.divide(nats, tokens, out=np.full(nats.shape, np.nan), where=tokens >= FEWEST)
    return Band(edges, tokens, *mean_and_error(np.exp(means)))


def group_sums(records: Records, group: str) -> DocumentSums:
    """The nats and tokens of a token group by document."""
    mask = groups_of(records.occurrence, records.follows)[Group(group)]
    names = np.asarray(records.document, dtype=np.str_)[mask]
    nats = -records.log_probability[mask]
    return _added_up(names, [nats], np.ones(len(nats)), perplexity=True)


def cloze_sums(records: ClozeRecords) -> DocumentSums:
    """The quantiles and gaps by document."""
    counts = np.ones(len(records))
    return _added_up(records.document, [records.quantile], counts, perplexity=False)


def stacked(seeds: Sequence[DocumentSums]) -> DocumentSums:
    """The sums of several seeds; ValueError if they are sums over different texts."""
    first = seeds[0]
    if not all(_same_text(first, other) for other in seeds):
        raise ValueError("the runs of one model have scored different texts")
    return dataclasses.replace(first, sums=np.concatenate([seed.sums for seed in seeds]))


def _same_text(a: DocumentSums, b: DocumentSums) -> bool:
    return a.documents == b.documents and np.array_equal(a.counts, b.counts)


def document_names(dataset: Mapping[str, Any]) -> Callable[[str], str]:
    """A function from the name of a part to the name of its document, given dataset.json.

    Parts are called NAME/1, NAME/2 if long documents were cut, and NAME:0, NAME:1 in CoNLL-2012; a
    joined dataset may have both. Documents of a joined dataset that only look like parts are
    grouped, too, which makes intervals wider, never too narrow.
    """
    settings = dataset["settings"]
    joined = "joined" in settings
    cut = joined or settings.get("max_sentences")
    in_parts = joined or settings.get("reading", {}).get("format") == "conll2012"
    part = re.compile((r"(?::\d+)?" if in_parts else "") + (r"(?:/\d+)?" if cut else "") + "$")
    return lambda name: part.sub("", name, count=1)


def whole_documents(sums: DocumentSums, name: Callable[[str], str]) -> DocumentSums:
    """Add up the parts of each document; `name` maps a part to its document."""
    names = [name(part) for part in sums.documents]
    return _added_up(names, sums.sums, sums.counts, perplexity=sums.perplexity)


def resampled(documents: int, seed: int) -> Integers:
    """How often each document is drawn: one row per resample."""
    shares = np.full(documents, 1 / documents)
    return np.random.default_rng(seed).multinomial(documents, shares, size=RESAMPLES)


def interval(values: Floats) -> tuple[float, float]:
    """The middle 95 % of the values of resamples."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def paired_bootstrap(baseline: DocumentSums, other: DocumentSums, *, seed: int = 0) -> Comparison:
    """Difference and ratio of two models, with 95 % intervals over resampled documents."""
    if not _same_text(baseline, other) or baseline.perplexity != other.perplexity:
        raise ValueError("sums over different texts or of different kinds, expected a pair")
    documents = len(baseline.documents)
    drawn = resampled(documents, seed).astype(np.float64)
    a, b = (_statistic(sums, drawn) for sums in (baseline, other))
    once = np.ones((1, documents))
    whole_a, whole_b = (float(_statistic(sums, once)[0]) for sums in (baseline, other))
    return Comparison(
        baseline=whole_a,
        other=whole_b,
        difference=whole_b - whole_a,
        difference_interval=interval(b - a),
        ratio=whole_b / whole_a if baseline.perplexity else math.nan,
        ratio_interval=interval(b / a) if baseline.perplexity else (math.nan, math.nan),
    )


def _added_up(
    names: ArrayLike, values: Iterable[Floats], counts: Floats | Integers, *, perplexity: bool
) -> DocumentSums:
    """Add up the values and counts of equal names."""
    documents, which = np.unique(np.asarray(names, dtype=np.str_), return_inverse=True)

    def added(weights: Floats | Integers) -> Floats:
        return np.bincount(which, weights, minlength=len(documents)).astype(np.float64)

    sums = np.array([added(run) for run in values])
    return DocumentSums(
        tuple(map(str, documents)), sums, added(counts).astype(np.int64), perplexity
    )


def _statistic(sums: DocumentSums, drawn: Floats) -> Floats:
    """The mean over seeds for each draw; `drawn` counts how often each document was drawn."""
    means = (drawn @ sums.sums.T) / (drawn @ sums.counts.astype(np.float64))[:, None]
    statistic: Floats = (np.exp(means) if sums.perplexity else means).mean(1)
    return statistic


def sum_columns(groups: Iterable[str]) -> list[str]:
    """The CSV columns of some token groups."""
    return [f"{group}_{what}" for group in groups for what in ("tokens", "nats")]


def document_rows(columns: Sequence[DocumentSums]) -> list[list[object]]:
    """One row per document of the first: name, then count and sum (first seed) in each."""
    found = []
    for sums in columns:
        totals = (f"{total:.6f}" for total in sums.sums[0])
        cells = zip(sums.counts.tolist(), totals, strict=True)
        found.append(dict(zip(sums.documents, cells, strict=True)))
    return [
        [document, *(value for column in found for value in column.get(document, (0, "0")))]
        for document in columns[0].documents
    ]
