"""Which of the paper's claims hold here, said in words that the numbers choose (Section 5.2).

A claim of the form "X is better than Y on these tokens" held where X is better and the interval of
the paired bootstrap over documents agrees; is not clear where X is better but the interval includes
no difference; did not hold where X is not better.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dntm.experiments.models import MERGING_TITLES
from dntm.report.numbers import compare, interval, listed, percent, percent_interval, signed
from dntm.report.results import ModelResults, StudyResults

Verdict = Literal["held", "not clear", "did not hold", "could not be tested"]
GRUS = ("gru-relu", "gru")


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what was found."""

    statement: str
    verdict: Verdict
    finding: str


def claims(results: StudyResults) -> list[Claim]:
    """All claims, in the paper's order."""
    return [claim(results.models) for claim in _CLAIMS]


Models = dict[str, ModelResults]


def _variants_win(models: Models) -> Claim:
    statement = "Every dynamic model outperforms the baseline"
    present = [n for n in ("B-gru-relu", "C-gru-relu", "D-gru-relu") if n in models]
    if "A" not in models or not present:
        return _untested(statement, ["A"] if "A" not in models else ["a dynamic model"])
    found = [_better(models, statement, name, ["A"], "all") for name in present]
    finding = " ".join(claim.finding for claim in found)
    return Claim(statement, _weakest([claim.verdict for claim in found]), finding)


def _output_helps(models: Models) -> Claim:
    statement = "Dynamic output helps predict reappearing entities"
    return _better(models, statement, "C-gru-relu", ["A"], "reappearing")


def _input_helps(models: Models) -> Claim:
    statement = "Dynamic input helps predict the words that follow entities"
    return _better(models, statement, "B-gru-relu", ["A"], "following")


def _both_help_more(models: Models) -> Claim:
    statement = "Both together help more than either alone"
    return _better(models, statement, "D-gru-relu", ["B-gru-relu", "C-gru-relu"], "all")


def _better(models: Models, statement: str, name: str, others: list[str], group: str) -> Claim:
    """Whether a model has a lower perplexity than each of the others."""
    if missing := [n for n in (name, *others) if n not in models]:
        return _untested(statement, missing)
    words, verdicts = [], []
    for other in others:
        found = compare(models[other].sums(group), models[name].sums(group))
        if found is None:
            finding = "The test split has no such token."
            return Claim(statement, "could not be tested", finding)
        low, high = found.ratio_interval
        verdicts.append(_verdict(better=found.ratio < 1, clear=high < 1))
        words.append(
            f"{found.other:.1f} with {name} against {found.baseline:.1f} with {other} "
            f"({percent(found.ratio)}, 95 % interval {percent_interval((low, high))})"
        )
    tokens = {"reappearing": "reappearing entities", "following": "words after entities"}
    finding = f"Perplexity of {tokens.get(group, 'all tokens')}: {listed(words)}."
    return Claim(statement, _weakest(verdicts), finding)


def _grus_beat_max(models: Models) -> Claim:
    statement = "GRU merging is at least as good as max pooling for entities"
    needed = [f"{letter}-{m}" for letter in "BCD" for m in (*GRUS, "max")]
    if missing := [name for name in needed if name not in models]:
        return _untested(statement, missing)
    ratios = {
        f"{letter}-{merging}, {group}": _mean(models, f"{letter}-{merging}", group)
        / _mean(models, f"{letter}-max", group)
        for letter in "BCD"
        for merging in GRUS
        for group in ("reappearing", "following")
    }
    if any(np.isnan(ratio) for ratio in ratios.values()):
        return Claim(statement, "could not be tested", "The test split has no such token.")
    together = float(np.exp(np.mean(np.log(list(ratios.values())))))
    ahead = sum(ratio <= 1 for ratio in ratios.values())
    worst = max(ratios, key=lambda name: ratios[name])
    finding = (
        f"On reappearing entities and the words after them, GRU and GRU-ReLU are at least as good "
        f"as max pooling in {ahead} of {len(ratios)} comparisons, and {percent(together)} in the "
        f"(geometric) mean; the worst of them is {worst} ({percent(ratios[worst])})."
    )
    return Claim(statement, "held" if together <= 1 else "did not hold", finding)


def _latest_is_worst(models: Models) -> Claim:
    statement = "The latest context alone is the worst merging function"
    if missing := [f"{x}-{m}" for x in "BCD" for m in MERGING_TITLES if f"{x}-{m}" not in models]:
        return _untested(statement, missing)
    worst = {
        letter: max(MERGING_TITLES, key=lambda m: _mean(models, f"{letter}-{m}", "all"))
        for letter in "BCD"
    }
    found = [
        f"{MERGING_TITLES[merging]} for {letter} "
        f"({_mean(models, f'{letter}-{merging}', 'all'):.1f})"
        for letter, merging in worst.items()
    ]
    held = set(worst.values()) == {"latest"}
    finding = f"The highest perplexity of all tokens has {listed(found)}."
    return Claim(statement, "held" if held else "did not hold", finding)


def _input_carries_the_cloze_test(models: Models) -> Claim:
    statement = "Dynamic input carries the cloze test"
    names = ("A", "B-gru-relu", "C-gru-relu", "D-gru-relu")
    if missing := [name for name in names if name not in models]:
        return _untested(statement, missing)
    quantile = {name: float(models[name].cloze("mean_quantile").mean()) for name in names}
    if any(np.isnan(value) for value in quantile.values()):
        return Claim(statement, "could not be tested", "The test split has no gap.")
    words, verdicts = [], []
    for name, other in (
        ("B-gru-relu", "A"),
        ("B-gru-relu", "C-gru-relu"),
        ("D-gru-relu", "C-gru-relu"),
    ):
        found = compare(models[other].cloze_sums(), models[name].cloze_sums())
        assert found is not None
        ends = found.difference_interval
        verdicts.append(_verdict(better=found.difference > 0, clear=ends[0] > 0))
        words.append(f"{name} less {other} {signed(found.difference, 3)} {interval(ends, 3)}")
    shown = listed([f"{value:.3f} with {name}" for name, value in quantile.items()])
    finding = f"Mean quantile {shown}; {listed(words)}."
    return Claim(statement, _weakest(verdicts), finding)


_CLAIMS: tuple[Callable[[Models], Claim], ...] = (
    _variants_win,
    _output_helps,
    _input_helps,
    _both_help_more,
    _grus_beat_max,
    _latest_is_worst,
    _input_carries_the_cloze_test,
)


def _mean(models: Models, name: str, group: str) -> float:
    return float(models[name].perplexities(group).mean())


def _verdict(*, better: bool, clear: bool) -> Verdict:
    if not better:
        return "did not hold"
    return "held" if clear else "not clear"


def _weakest(verdicts: Sequence[Verdict]) -> Verdict:
    order: tuple[Verdict, ...] = (
        *("could not be tested", "did not hold"),
        *("not clear", "held"),
    )
    return min(verdicts, key=order.index)


def _untested(statement: str, missing: Sequence[str]) -> Claim:
    return Claim(statement, "could not be tested", f"No finished run of {listed(missing)}.")
