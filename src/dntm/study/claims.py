"""Which of the paper's claims hold here (Section 5.2).

A claim is one or more comparisons: two models on the same tokens or gaps. A comparison is clear if
the 95 % interval of a paired bootstrap over documents excludes zero, and every seed of the better
model beats every seed of the other. A claim holds if all of its comparisons are clear. It does not
hold if one of them points the other way. Otherwise it is unclear. A claim of "at least as good"
holds if at least one comparison is clear, none is clearly worse, and perplexity does not rise on
average.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dntm.evaluation.groups import Group
from dntm.study.config import MERGING_TITLES
from dntm.study.results import CLOZE_TEST, ModelResults, StudyResults
from dntm.study.tables import change_texts, percent

Verdict = Literal["holds", "unclear", "does not hold", "not tested"]
Models = Mapping[str, ModelResults]
A, B, C, D = "A", "B-gru-relu", "C-gru-relu", "D-gru-relu"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and whether it holds here."""

    statement: str
    verdict: Verdict
    finding: str


@dataclass(frozen=True)
class PairedComparison:
    """Whether the model `name` is better than another, as the paper claims."""

    name: str
    ratio: float
    """Its perplexity divided by that of the other model; nan for a mean quantile."""
    verdict: Verdict
    is_clearly_worse: bool
    text: str
    """Both values, their difference and its interval."""


def claims(results: StudyResults) -> list[Claim]:
    """All claims, in the paper's order."""
    return [_judged(results.models, *claim) for claim in _CLAIMS]


Pair = tuple[str, str, str]
"""The model that should be better, the other, and a token group or the cloze test."""
Judge = Callable[[Models, Sequence[PairedComparison]], tuple[Verdict, str]]


def _judged(models: Models, statement: str, pairs: Sequence[Pair], judge: Judge | None) -> Claim:
    names = dict.fromkeys(name for *pair, _ in pairs for name in pair)
    if missing := [name for name in names if name not in models]:
        return Claim(statement, "not tested", f"No finished run of {listed(missing)}.")
    comparisons = [found for pair in pairs if (found := _compare(models, *pair))]
    if len(comparisons) < len(pairs):
        return Claim(statement, "not tested", "The test split has no such tokens.")
    if judge is not None:
        return Claim(statement, *judge(models, comparisons))
    group, texts = pairs[0][-1], "; ".join(comparison.text for comparison in comparisons)
    what = "Mean quantile" if group == CLOZE_TEST else f"Perplexity of {Group(group).label}"
    return Claim(statement, _weakest(comparisons), f"{what}: {texts}.")


def _compare(models: Models, name: str, other: str, group: str) -> PairedComparison | None:
    found = models[name].compared_with(models[other], group)
    if found is None:
        return None
    is_cloze = group == CLOZE_TEST
    sign, digits = (1, 3) if is_cloze else (-1, 1)
    low, high = sorted(sign * end for end in found.difference_interval)
    mine, theirs = (sign * models[model].values(group) for model in (name, other))
    above, below = mine.min() > theirs.max(), mine.max() < theirs.min()
    verdict: Verdict = "holds" if low > 0 and above else "unclear"
    if not sign * found.difference > 0:
        verdict = "does not hold"
    change, ends = (
        change_texts(found.difference, found.difference_interval, ratio=False)
        if is_cloze
        else change_texts(found.ratio, found.ratio_interval, ratio=True)
    )
    overlap = "" if above or below else ", seeds overlap"
    text = (
        f"{found.other:.{digits}f} with {name}, {found.baseline:.{digits}f} with {other} "
        f"({change}, 95 % interval {ends}{overlap})"
    )
    return PairedComparison(name, found.ratio, verdict, bool(high < 0 and below), text)


def _weakest(found: Sequence[PairedComparison]) -> Verdict:
    order: tuple[Verdict, ...] = ("does not hold", "unclear", "holds")
    return min((comparison.verdict for comparison in found), key=order.index)


def _at_least_as_good(_: Models, found: Sequence[PairedComparison]) -> tuple[Verdict, str]:
    ratios = [comparison.ratio for comparison in found]
    mean = float(np.exp(np.mean(np.log(ratios))))
    better = sum(comparison.verdict == "holds" for comparison in found)
    worse = sum(comparison.is_clearly_worse for comparison in found)
    worst = found[int(np.argmax(ratios))].name
    finding = (
        f"Perplexity of reappearing entities and of the tokens that follow entities: the GRUs are "
        f"clearly better in {better} of {len(found)} comparisons and clearly worse in {worse}. "
        f"Geometric mean of the changes {percent(mean)}; worst {worst} ({percent(max(ratios))})."
    )
    if mean > 1:
        return "does not hold", finding
    return "holds" if better and not worse else "unclear", finding


def _latest_is_worst(models: Models, found: Sequence[PairedComparison]) -> tuple[Verdict, str]:
    worst = []
    for letter in "BCD":
        means = {m: models[f"{letter}-{m}"].values("all").mean() for m in MERGING_TITLES}
        merging = max(means, key=lambda m: means[m])
        worst.append(f"{MERGING_TITLES[merging]} for {letter} ({means[merging]:.1f})")
    clear = sum(comparison.verdict == "holds" for comparison in found)
    return _weakest(found), (
        f"Highest perplexity of all tokens: {listed(worst)}. In {clear} of {len(found)} "
        "comparisons another merging function is clearly better than the latest context."
    )


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


_GRU_PAIRS = [
    (f"{letter}-{merging}", f"{letter}-max", group)
    for letter in "BCD"
    for merging in ("gru-relu", "gru")
    for group in ("reappearing", "following")
]
_LATEST_PAIRS = [
    (f"{letter}-{merging}", f"{letter}-latest", "all")
    for letter in "BCD"
    for merging in MERGING_TITLES
    if merging != "latest"
]
_CLAIMS: tuple[tuple[str, Sequence[Pair], Judge | None], ...] = (
    (
        "The dynamic models B, C and D are better than A",
        [(B, A, "all"), (C, A, "all"), (D, A, "all")],
        None,
    ),
    ("Dynamic output helps to predict reappearing entities", [(C, A, "reappearing")], None),
    ("Dynamic input helps to predict the tokens that follow entities", [(B, A, "following")], None),
    ("D is better than B and C", [(D, B, "all"), (D, C, "all")], None),
    ("GRU merging is at least as good as max pooling", _GRU_PAIRS, _at_least_as_good),
    ("Only the latest context is the worst merging function", _LATEST_PAIRS, _latest_is_worst),
    (
        "Dynamic input is what helps in the cloze test",
        [(B, A, CLOZE_TEST), (B, C, CLOZE_TEST), (D, C, CLOZE_TEST)],
        None,
    ),
)
