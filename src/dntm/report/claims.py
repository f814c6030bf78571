"""Which of the paper's claims hold here, said in words that the numbers choose (Section 5.2).

A claim of the form "X is better than Y on these tokens" held where X is better and that is sure
(`report.duel`: the interval over documents, and all seeds, agree); is not clear where X is better
but that is not sure; did not hold where X is not better. Where it speaks of several models, the
weakest of them counts.
"""

from collections.abc import Callable, Sequence

import numpy as np

from dntm.evaluation.groups import TITLES
from dntm.experiments.models import MERGING_TITLES
from dntm.report.document import Claim
from dntm.report.duel import Duel, Models, cloze_duel, perplexity_duel, weakest
from dntm.report.numbers import listed, percent
from dntm.report.results import StudyResults

GRUS = ("gru-relu", "gru")
A, B, C, D = "A", "B-gru-relu", "C-gru-relu", "D-gru-relu"


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
    finding = f"Perplexity of {TITLES[group].full}: {listed([duel.words for duel in found])}."
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
