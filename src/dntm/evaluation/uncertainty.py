"""Standard errors over seeds, and a paired bootstrap over documents.

Table 2 reports the mean and the standard error over three seeds. Whether two models differ on this
kind of text is another question. Both models read the same documents, so documents are resampled in
pairs: as many as there are, with replacement, with the same draw for both models. The interval
holds the middle `level` of the differences. The parts of a document are not independent, so whole
documents are drawn (`whole_documents`).

The bootstrap needs only each document's sum of nats (or quantiles) and its count. A statistic is
the mean over seeds of exp(nats / tokens), or of sum / count.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dntm.evaluation.cloze import ClozeRecords
from dntm.evaluation.groups import Group, token_groups
from dntm.evaluation.records import Floats, Integers, Records

RESAMPLES = 10_000


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
    """`other` divided by `baseline`."""
    ratio_interval: tuple[float, float]
    documents: int


def mean_and_error(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard error over the first axis, the seeds; the error of one seed is nan."""
    seeds = len(values)
    if not seeds:
        raise ValueError("no values given, expected one per seed")
    if seeds == 1:
        return values[0], np.full(values.shape[1:], np.nan)
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(seeds)


def group_sums(runs: Sequence[Records], group: str) -> DocumentSums:
    """The nats and tokens of a token group by document; one run per seed."""
    masks = [token_groups(run)[Group(group)] for run in runs]
    values = [-run.log_probability[mask] for run, mask in zip(runs, masks, strict=True)]
    names = [list(np.array(run.document)[mask]) for run, mask in zip(runs, masks, strict=True)]
    return _sums(names, values, perplexity=True)


def cloze_sums(runs: Sequence[ClozeRecords], column: str = "quantile") -> DocumentSums:
    """The quantiles (or another column) and gaps by document; one run per seed."""
    values = [np.asarray(getattr(run, column), dtype=np.float64) for run in runs]
    return _sums([run.document for run in runs], values, perplexity=False)


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
    names, which = np.unique(
        np.array([name(part) for part in sums.documents], dtype=np.str_), return_inverse=True
    )
    added = np.array([np.bincount(which, row, minlength=len(names)) for row in sums.sums])
    counts = np.bincount(which, sums.counts, minlength=len(names)).astype(np.int64)
    return DocumentSums(tuple(map(str, names)), added, counts, sums.perplexity)


def paired_bootstrap(
    baseline: DocumentSums,
    other: DocumentSums,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Difference and ratio of two models, with intervals over resampled documents."""
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
    """The mean over seeds for each draw; `drawn` counts how often each document was drawn."""
    means = (drawn @ sums.sums.T) / (drawn @ sums.counts.astype(np.float64))[:, None]
    statistic: Floats = (np.exp(means) if sums.perplexity else means).mean(1)
    return statistic


def sum_columns(groups: Iterable[str]) -> list[str]:
    """The CSV columns of some token groups."""
    return [f"{group}_{what}" for group in groups for what in ("tokens", "nats")]


def document_rows(columns: Sequence[DocumentSums]) -> list[list[object]]:
    """One row per document of the first: name, then count and sum (first seed) in each."""
    found = [
        {
            document: (int(count), f"{total:.6f}")
            for document, count, total in zip(
                sums.documents, sums.counts, sums.sums[0], strict=True
            )
        }
        for sums in columns
    ]
    return [
        [document, *(value for column in found for value in column.get(document, (0, "0")))]
        for document in columns[0].documents
    ]
