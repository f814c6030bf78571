"""Plots of a reading: surprisal with and without memory, and the trail of a meaning."""

import math
from collections.abc import Sequence
from itertools import islice

from matplotlib.figure import Figure

from dntm.reader.reading import EntityReading, Reading, TokenReading

_MEMORY, _STATIC, _MENTION = "#d55e00", "#0072b2", "#d55e00"
_LABELED = 100
"""Words that have a label each; of longer texts, the means of sentences are drawn."""
_TRAILED = 6
"""Predicted words on a trail."""


def plot(reading: Reading, entity: int | str | None) -> Figure:
    """The trail of an entity, by number or name; None: the surprisals of the text."""
    if entity is None:
        return _surprisals(reading)
    if not (trail := reading.trail(entity)):
        names = ", ".join(reading.entities.values()) or "none"
        raise ValueError(f"no predicted words for {entity!r}; entities of the text: {names}")
    return _trail(trail)


def _surprisals(reading: Reading) -> Figure:
    """The surprisal of every word (of every sentence in a long text) under both models."""
    sentences = [[t for t in s.tokens if not t.end] for s in reading.sentences]
    tokens = [token for sentence in sentences for token in sentence]
    labeled = len(tokens) <= _LABELED
    points = [[token] for token in tokens] if labeled else sentences
    figure = Figure(figsize=(max(6, 0.22 * len(points)) if labeled else 9, 3.2), dpi=100)
    axes = figure.add_subplot()
    static = [_mean(point, "static_surprisal") for point in points]
    axes.plot(static, "o--", color=_STATIC, mfc="white", ms=4, lw=1, label="without memory")
    memory = [_mean(point, "surprisal") for point in points]
    axes.plot(memory, "o-", color=_MEMORY, ms=4, lw=1, label="with memory")
    if labeled:
        axes.set_xticks(range(len(tokens)), [t.word for t in tokens], rotation=90, fontsize=8)
        for label, token in zip(axes.get_xticklabels(), tokens, strict=True):
            if token.entity:
                label.set(color=_MENTION, weight="bold")
    else:
        axes.set_xlabel("sentence")
    _finish(figure, f"surprisal ({reading.unit})")
    return figure


def _trail(trail: Sequence[tuple[int, EntityReading]]) -> Figure:
    """The probability of an entity's predicted words after each sentence that mentions it."""
    ranked = (
        near.word for k in range(8) for _, e in trail for near in e.predicted_words[k : k + 1]
    )
    figure = Figure(figsize=(6, 3.2), dpi=100)
    axes = figure.add_subplot()
    for word in islice(dict.fromkeys(ranked), _TRAILED):
        found = [{n.word: n.probability for n in e.predicted_words} for _, e in trail]
        axes.plot([p.get(word, math.nan) for p in found], "o-", ms=4, lw=1, label=word)
    axes.set_xticks(range(len(trail)), [f"sentence {index + 1}" for index, _ in trail])
    _finish(figure, f"p(word | {trail[0][1].name})")
    return figure


def _mean(tokens: Sequence[TokenReading], column: str) -> float:
    return float(sum(getattr(token, column) for token in tokens)) / max(len(tokens), 1)


def _finish(figure: Figure, label: str) -> None:
    [axes] = figure.axes
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.set_layout_engine("tight")
