"""Figures 4 to 6: perplexity of A and D by position, by occurrences and by antecedent entities.

Drawn with matplotlib as SVG. Colors are CSS variables with a fallback, so that a page can set them
for light and dark. The CSV file of a figure has all models of the study.
"""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from dntm.evaluation.uncertainty import Band, band
from dntm.study.models import MODELS
from dntm.study.results import Data, StudyResults

_INK, _FAINT, _BLUE, _ORANGE = "#102030", "#a0b0c0", "#0072b2", "#d55e00"
_CSS = {
    _INK: "var(--ink, #1a1a1a)",
    _FAINT: "var(--line, #c8c8c8)",
    _BLUE: "var(--model-a, #0072b2)",
    _ORANGE: "var(--model-d, #c04e00)",
}
"""Colors as drawn, and as written to the file."""
_LINES: dict[str, dict[str, Any]] = {
    "A": {"color": _BLUE, "marker": "o", "linestyle": "--"},
    "D-gru-relu": {"color": _ORANGE, "marker": "s", "linestyle": "-"},
}
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "dntm",
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color"), _INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), _INK),
    "grid.color": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


_KINDS = {
    "position": ("all tokens, by position in the document", "Position of the token"),
    "occurrence": (
        "tokens that follow an entity, by its occurrences so far",
        "Occurrences of the entity",
    ),
    "antecedents": (
        "reappearing entities, by the number of antecedent entities",
        "Antecedent entities",
    ),
}
"""Curve of each figure, with its title and the label of its axis."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing and its numbers."""

    key: str
    title: str
    svg: str
    data: Data


def figures(results: StudyResults) -> list[Figure]:
    """Figures 4 to 6, without those that have no finished run or too few tokens."""
    found = []
    for number, (curve, (title, axis)) in enumerate(_KINDS.items(), start=4):
        bands = {
            name: band([run.curves[curve] for run in model.runs])
            for name, model in results.models.items()
        }
        drawn = {name: bands[name] for name in _LINES if name in bands}
        if not all(np.isnan(values.mean).all() for values in drawn.values()):
            figure = Figure(
                key=f"figure-{number}",
                title=f"Figure {number}: perplexity of {title}",
                svg=_draw(axis, drawn),
                data=_data(bands),
            )
            found.append(figure)
    return found


def _data(bands: dict[str, Band]) -> Data:
    return tuple(
        {
            "model": name,
            "bin": label,
            "tokens": int(tokens),
            "perplexity": None if np.isnan(mean) else float(mean),
            "standard_error": None if np.isnan(error) else float(error),
        }
        for name, found in bands.items()
        for label, tokens, mean, error in zip(
            found.labels, found.tokens, found.mean, found.standard_error, strict=True
        )
    )


def _draw(axis: str, bands: dict[str, Band]) -> str:
    # Not at the top: on a new machine the first import looks for fonts, which takes seconds.
    import matplotlib as mpl
    from matplotlib.figure import Figure as Drawing

    with mpl.rc_context(_STYLE):
        drawing = Drawing(figsize=(4.8, 3.2), layout="constrained")
        axes = drawing.subplots()
        for name, found in bands.items():
            x, look = np.arange(len(found.mean)), _LINES[name]
            axes.plot(x, found.mean, markersize=4.5, label=MODELS[name].title, **look)
            low, high = found.mean - found.standard_error, found.mean + found.standard_error
            axes.fill_between(x, low, high, color=look["color"], alpha=0.2, linewidth=0)
        first = next(iter(bands.values()))
        filled = np.flatnonzero(~np.isnan(first.mean))
        ticks = range(filled[0], filled[-1] + 1)
        labels = [first.labels[i].replace("-", "–") for i in ticks]
        axes.set_xticks(ticks, labels, rotation=40 if len(ticks) > 6 else 0)
        axes.set_xlabel(axis)
        axes.set_ylabel("Perplexity")
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        drawing.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=8.5)
        target = io.StringIO()
        drawing.savefig(target, format="svg", transparent=True, metadata={"Date": None})
    svg = target.getvalue()
    svg = svg[svg.index("<svg") :]  # a page must not contain the XML declaration
    for color, variable in _CSS.items():
        svg = svg.replace(color, variable)
    return svg
