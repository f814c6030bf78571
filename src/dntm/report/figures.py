"""Figures 4 to 6: perplexity against how far the reading has come, baseline and model D.

Drawn with matplotlib as SVG in which text stays text. The models differ in colour, mark and dash,
so that they are told apart in print and by the colour-blind. Colours are CSS variables with a
fallback: a page sets them for light and dark, a file on its own has dark ink. The same numbers give
the same bytes. The data beside a drawing is that of every model of the study.
"""

import io
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dntm.evaluation.curves import FEWEST, Band, band
from dntm.report.document import Data, Figure
from dntm.report.results import StudyResults

_INK, _FAINT = "#102030", "#a0b0c0"
_COLOURS = {
    _INK: "var(--ink, #1a1a1a)",
    _FAINT: "var(--line, #c8c8c8)",
    "#0072b2": "var(--model-a, #0072b2)",
    "#d55e00": "var(--model-d, #c04e00)",
}
"""What is drawn with, and what stands in the file."""
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "dntm",
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@dataclass(frozen=True)
class _Kind:
    """One of the three figures."""

    number: int
    curve: str
    title: str
    axis: str


_KINDS = (
    _Kind(4, "position", "all tokens, by their position in the document", "Position of the token"),
    _Kind(
        5,
        "occurrence",
        "tokens that follow an entity, by how often it has occurred",
        "Occurrences of the entity so far",
    ),
    _Kind(
        6,
        "antecedents",
        "reappearing entities, by the number of antecedent entities",
        "Antecedent entities",
    ),
)
_MODELS = {
    "A": ("Baseline (A)", "#0072b2", "o", "--"),
    "D-gru-relu": ("Dynamic input and output (D)", "#d55e00", "s", "-"),
}


def figures(results: StudyResults) -> list[Figure]:
    """Figures 4 to 6, of as many of the two models as have a finished run and tokens to draw."""
    names = [name for name in _MODELS if name in results.models]
    drawn = [_figure(results, kind, names) for kind in _KINDS]
    return [figure for figure in drawn if figure is not None]


def _figure(results: StudyResults, kind: _Kind, names: list[str]) -> Figure | None:
    every = {
        name: band([run.curves[kind.curve] for run in model.runs])
        for name, model in results.models.items()
    }
    bands = {name: every[name] for name in names}
    if all(np.isnan(found.mean).all() for found in bands.values()):
        return None
    seeds = max(len(results.models[name].runs) for name in names)
    spread = "Bands are one standard error over seeds. " if seeds > 1 else ""
    return Figure(
        key=f"figure-{kind.number}",
        title=f"Figure {kind.number}: perplexity of {kind.title}",
        caption=f"{spread}Bins with fewer than {FEWEST} tokens are left out.",
        svg=_draw(kind, bands),
        description=_describe(bands),
        data=_data(every),
    )


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


def _draw(kind: _Kind, bands: dict[str, Band]) -> str:
    with mpl.rc_context(_STYLE):
        drawing = Drawing(figsize=(4.8, 3.2), layout="constrained")
        axes = drawing.subplots()
        for name, found in bands.items():
            _line(axes, name, found)
        shown = next(iter(bands.values()))
        filled = np.flatnonzero(~np.isnan(shown.mean))
        ticks = range(filled[0], filled[-1] + 1)
        labels = [shown.labels[i].replace("-", "–") for i in ticks]
        axes.set_xticks(ticks, labels, rotation=40 if len(ticks) > 6 else 0)
        axes.set_xlabel(kind.axis)
        axes.set_ylabel("Perplexity")
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        drawing.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=8.5)
        target = io.StringIO()
        drawing.savefig(target, format="svg", transparent=True, metadata={"Date": None})
    return _inline(target.getvalue())


def _line(axes: Axes, name: str, found: Band) -> None:
    label, colour, mark, dash = _MODELS[name]
    x = np.arange(len(found.mean))
    axes.plot(x, found.mean, color=colour, marker=mark, markersize=4.5, linestyle=dash, label=label)
    low, high = found.mean - found.standard_error, found.mean + found.standard_error
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def _inline(svg: str) -> str:
    """The drawing without the file's head, which a page must not hold, and with named colours."""
    svg = svg[svg.index("<svg") :]
    for drawn, named in _COLOURS.items():
        svg = svg.replace(drawn, named)
    return svg


def _describe(bands: dict[str, Band]) -> str:
    parts = []
    for name, found in bands.items():
        pairs = zip(found.labels, found.mean, strict=True)
        values = ", ".join(f"{label}: {mean:.1f}" for label, mean in pairs if not np.isnan(mean))
        parts.append(f"{_MODELS[name][0]}: {values or 'too few tokens'}")
    return "; ".join(parts)
