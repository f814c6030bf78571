"""Tables as the terminal shows them."""

from collections.abc import Mapping
from typing import Any

GROUP_TITLES = {
    "all": "(1) all",
    "reappearing": "(2) reappearing",
    "following": "(3) following",
    "non_entities": "(4) non-entities",
    "first_mentions": "first mentions",
}


def print_groups(title: str, models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Perplexity of every token group, a row a model, and the number of tokens."""
    print(f"{title:<28}" + "".join(f"{name:>18}" for name in GROUP_TITLES.values()))
    for name, groups in models.items():
        cells = [f"{groups[group]['perplexity']:.1f}" for group in GROUP_TITLES]
        print(f"{_short(name):<28}" + "".join(f"{cell:>18}" for cell in cells))
    counts = [f"{groups[group]['tokens']:,}" for group in GROUP_TITLES]
    print(f"{'tokens':<28}" + "".join(f"{count:>18}" for count in counts))


def _short(name: str) -> str:
    return name if len(name) <= 27 else "..." + name[-24:]
