"""Duels: two models on the same tokens or gaps, who is better there and whether that is sure.

It is sure where the interval of the paired bootstrap over documents agrees, and where every seed of
the better model beats every seed of the other (with three seeds each, one of twenty ways in which
six numbers can fall). One seed each says nothing of seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dntm.evaluation.columns import Floats
from dntm.evaluation.uncertainty import Comparison
from dntm.report.document import Verdict
from dntm.report.numbers import compare, interval, percent, percent_interval, signed
from dntm.report.results import ModelResults

Models = Mapping[str, ModelResults]


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
