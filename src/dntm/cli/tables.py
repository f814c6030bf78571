"""Tables as the terminal shows them."""

from collections.abc import Mapping, Sequence
from typing import Any

from dntm.evaluation.cloze_summary import ClozeSummary
from dntm.evaluation.groups import TITLES

CLOZE_TITLES = ("mean quantile", "accuracy", "reciprocal rank", "MQ after the gap", "gaps")


def print_groups(title: str, models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Perplexity of every token group, a row a model, and the number of tokens."""
    print(f"{title:<28}" + "".join(f"{title.short:>18}" for title in TITLES.values()))
    for name, groups in models.items():
        cells = [f"{groups[group]['perplexity']:.1f}" for group in TITLES]
        print(f"{_short(name):<28}" + "".join(f"{cell:>18}" for cell in cells))
    counts = [f"{groups[group]['tokens']:,}" for group in TITLES]
    print(f"{'tokens':<28}" + "".join(f"{count:>18}" for count in counts))


def print_cloze(title: str, models: Mapping[str, ClozeSummary]) -> None:
    """Table 4, a row a model, and below them what guessing would give."""
    print(f"{title:<28}" + "".join(f"{name:>17}" for name in CLOZE_TITLES))
    for name, s in models.items():
        measured = (s.mean_quantile, s.accuracy, s.reciprocal_rank, s.rest_mean_quantile)
        _print_cloze_row(_short(name), measured, s.gaps)
    for guessed, gaps in dict.fromkeys(map(_chance, models.values())):
        _print_cloze_row("chance", guessed, gaps)


def _chance(summary: ClozeSummary) -> tuple[tuple[float, ...], int]:
    half = summary.chance_mean_quantile
    return (half, summary.chance_accuracy, summary.chance_reciprocal_rank, half), summary.gaps


def _print_cloze_row(name: str, values: Sequence[float], gaps: int) -> None:
    cells = [*(f"{value:.3f}" for value in values), f"{gaps:,}"]
    print(f"{name:<28}" + "".join(f"{cell:>17}" for cell in cells))


def _short(name: str) -> str:
    return name if len(name) <= 27 else "..." + name[-24:]
