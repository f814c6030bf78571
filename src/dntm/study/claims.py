"""Which of the paper's claims hold here, said in words that the numbers choose (Section 5.2).

A claim is one or more duels: two models on the same tokens or gaps, who is better there and whether
that is sure. It is sure where the interval of the paired bootstrap over documents agrees, and where
every seed of the better model beats every seed of the other (with three seeds each, one of twenty
ways in which six numbers can fall). One seed each says nothing of seeds.

A claim of the form "X is better than Y on these tokens" held where X is better and that is sure; is
not clear where X is better but that is not sure; did not hold where X is not better. Where it
speaks of several models, the weakest of them counts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dntm.evaluation.groups import Group
from dntm.evaluation.records import Floats
from dntm.evaluation.uncertainty import Comparison
from dntm.study.document import (
    Claim,
    Verdict,
    compare,
    interval,
    listed,
    percent,
    percent_interval,
    signed,
)
from dntm.study.paper import MERGING_TITLES
from dntm.study.results import ModelResults, StudyResults

Models = Mapping[str, ModelResults]
GRUS = ("gru-relu", "gru")
A, B, C, D = "A", "B-gru-relu", "C-gru-relu", "D-gru-relu"


@dataclass(frozen=True)
class Duel:
    """A model that is said to be better, and another."""

    name: str
    other: str
    found: Comparison
    """The other is its baseline."""
    perplexity: bool
    """Whether lower is better."""
    seeds: tuple[Floats, Floats]
    """What each seed came to, of the model and of the other."""

    @property
    def verdict(self) -> Verdict:
        """Whether the model is better, and surely so."""
        if not self._gain > 0:
            return "did not hold"
        return "held" if self._clear(1) else "not clear"

    @property
    def is_clearly_worse(self) -> bool:
        """Whether the model is surely not better."""
        return self._clear(-1)

    @property
    def words(self) -> str:
        """Both numbers, their difference and its interval."""
        found = self.found
        if self.perplexity:
            text = (
                f"{found.other:.1f} with {self.name} against {found.baseline:.1f} with "
                f"{self.other} ({percent(found.ratio)}, 95 % interval "
                f"{percent_interval(found.ratio_interval)}"
            )
        else:
            ends = interval(found.difference_interval, 3)
            text = (
                f"{self.name} less {self.other} {signed(found.difference, 3)} (95 % interval {ends}"
            )
        return f"{text}{'' if self._apart(1) or self._apart(-1) else ', seeds overlap'})"

    @property
    def _gain(self) -> float:
        return -self.found.difference if self.perplexity else self.found.difference

    def _clear(self, sign: int) -> bool:
        ends = [end * (-1 if self.perplexity else 1) for end in self.found.difference_interval]
        return min(sign * end for end in ends) > 0 and self._apart(sign)

    def _apart(self, sign: int) -> bool:
        mine, theirs = (s * sign * (-1 if self.perplexity else 1) for s in self.seeds)
        return bool(mine.min() > theirs.max())


def perplexity_duel(models: Models, name: str, other: str, group: str) -> Duel | None:
    """By the perplexity of a token group; None where it has no token."""
    found = compare(models[other].sums(group), models[name].sums(group))
    seeds = models[name].perplexities(group), models[other].perplexities(group)
    return Duel(name, other, found, perplexity=True, seeds=seeds) if found else None


def cloze_duel(models: Models, name: str, other: str) -> Duel | None:
    """By the mean quantile of the cloze test; None where there is no gap."""
    found = compare(models[other].cloze_sums(), models[name].cloze_sums())
    seeds = models[name].cloze("mean_quantile"), models[other].cloze("mean_quantile")
    return Duel(name, other, found, perplexity=False, seeds=seeds) if found else None


def weakest(duels: Sequence[Duel]) -> Verdict:
    """Of duels that must all be won."""
    order: tuple[Verdict, ...] = ("did not hold", "not clear", "held")
    return min((duel.verdict for duel in duels), key=order.index)


def claims(results: StudyResults) -> list[Claim]:
    """All claims, in the paper's order."""
    return [claim(results.models) for claim in _CLAIMS]


def _variants_win(models: Models) -> Claim:
    statement = "The dynamic models B, C and D (with GRU-ReLU) outperform the baseline"
    return _better(models, statement, [(B, A), (C, A), (D, A)], "all")


def _output_helps(models: Models) -> Claim:
    statement = "Dynamic output helps predict reappearing entities"
    return _better(models, statement, [(C, A)], "reappearing")


def _input_helps(models: Models) -> Claim:
    statement = "Dynamic input helps predict the words that follow entities"
    return _better(models, statement, [(B, A)], "following")


def _both_help_more(models: Models) -> Claim:
    statement = "Both together help more than either alone"
    return _better(models, statement, [(D, B), (D, C)], "all")


def _better(models: Models, statement: str, pairs: Sequence[tuple[str, str]], group: str) -> Claim:
    """Whether of each pair the first has the lower perplexity."""
    found = _perplexity_duels(models, [(*pair, group) for pair in pairs])
    if isinstance(found, str):
        return _untested(statement, found)
    finding = f"Perplexity of {Group(group).label}: {listed([duel.words for duel in found])}."
    return Claim(statement, weakest(found), finding)


def _grus_beat_max(models: Models) -> Claim:
    statement = "GRU merging is at least as good as max pooling for entities"
    places = [(x, m, group) for x in "BCD" for m in GRUS for group in ("reappearing", "following")]
    found = _perplexity_duels(models, [(f"{x}-{m}", f"{x}-max", group) for x, m, group in places])
    if isinstance(found, str):
        return _untested(statement, found)
    ratios = [duel.found.ratio for duel in found]
    together = float(np.exp(np.mean(np.log(ratios))))
    ahead, behind = (
        sum(duel.verdict == "held" for duel in found),
        sum(duel.is_clearly_worse for duel in found),
    )
    x, merging, group = places[int(np.argmax(ratios))]
    finding = (
        f"On reappearing entities and the words after them, GRU and GRU-ReLU are clearly better "
        f"than max pooling in {ahead} of {len(found)} comparisons and clearly worse in {behind}, "
        f"{percent(together)} in the (geometric) mean; the worst of them is {x}-{merging}, {group} "
        f"({percent(max(ratios))})."
    )
    if together > 1:
        return Claim(statement, "did not hold", finding)
    return Claim(statement, "held" if ahead and not behind else "not clear", finding)


def _latest_is_worst(models: Models) -> Claim:
    statement = "The latest context alone is the worst merging function"
    others = [merging for merging in MERGING_TITLES if merging != "latest"]
    found = _perplexity_duels(
        models, [(f"{x}-{merging}", f"{x}-latest", "all") for x in "BCD" for merging in others]
    )
    if isinstance(found, str):
        return _untested(statement, found)
    shown = []
    for letter in "BCD":
        mean = {m: models[f"{letter}-{m}"].perplexities("all").mean() for m in MERGING_TITLES}
        worst = max(mean, key=lambda merging: mean[merging])
        shown.append(f"{MERGING_TITLES[worst]} for {letter} ({mean[worst]:.1f})")
    clear = sum(duel.verdict == "held" for duel in found)
    finding = (
        f"The highest perplexity of all tokens has {listed(shown)}; in {clear} of {len(found)} "
        "comparisons another merging function is clearly better than the latest context."
    )
    return Claim(statement, weakest(found), finding)


def _input_carries_the_cloze_test(models: Models) -> Claim:
    statement = "Dynamic input carries the cloze test"
    if missing := [name for name in (A, B, C, D) if name not in models]:
        return _untested(statement, _no_run(missing))
    found = [cloze_duel(models, *pair) for pair in ((B, A), (B, C), (D, C))]
    duels = [duel for duel in found if duel]
    if len(duels) < len(found):
        return _untested(statement, "The test split has no gap.")
    quantiles = {n: float(models[n].cloze("mean_quantile").mean()) for n in (A, B, C, D)}
    shown = listed([f"{value:.3f} with {name}" for name, value in quantiles.items()])
    finding = f"Mean quantile {shown}; {listed([duel.words for duel in duels])}."
    return Claim(statement, weakest(duels), finding)


_CLAIMS: tuple[Callable[[Models], Claim], ...] = (
    _variants_win,
    _output_helps,
    _input_helps,
    _both_help_more,
    _grus_beat_max,
    _latest_is_worst,
    _input_carries_the_cloze_test,
)


def _perplexity_duels(models: Models, wanted: Sequence[tuple[str, str, str]]) -> list[Duel] | str:
    """The duels of name, other and token group; or why they cannot be held."""
    names = dict.fromkeys(name for *pair, _ in wanted for name in pair)
    if missing := [name for name in names if name not in models]:
        return _no_run(missing)
    found = [perplexity_duel(models, *duel) for duel in wanted]
    duels = [duel for duel in found if duel]
    return duels if len(duels) == len(found) else "The test split has no such token."


def _no_run(missing: Sequence[str]) -> str:
    return f"No finished run of {listed(missing)}."


def _untested(statement: str, why: str) -> Claim:
    return Claim(statement, "could not be tested", why)
