"""Figures 4 to 6: perplexity against how far the reading has come.

The paper's are of the baseline and of model D; here every model that is `drawn` has its line. They
are drawn with matplotlib as SVG in which text stays text. Lines differ in colour, mark and dash, so
that they are told apart in print and by the colour-blind. Colours are CSS variables with a
fallback: a page sets them for light and dark, a file on its own has dark ink. The same numbers give
the same bytes. The data beside a drawing is that of every model of the study.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dntm.evaluation.curves import FEWEST, Band, band
from dntm.study.document import Data, Figure
from dntm.study.paper import MODELS, StudyModel
from dntm.study.results import StudyResults

_Dash = str | tuple[int, tuple[int, int]]
_INK, _FAINT = "#102030", "#a0b0c0"
_COLOURS = {
    _INK: "var(--ink, #1a1a1a)",
    _FAINT: "var(--line, #c8c8c8)",
    "#0072b2": "var(--model-a, #0072b2)",
    "#d55e00": "var(--model-d, #c04e00)",
    "#009e73": "var(--model-3, #00805d)",
    "#cc79a7": "var(--model-4, #a8477e)",
    "#e69f00": "var(--model-5, #946600)",
    "#56b4e9": "var(--model-6, #2277aa)",
}
"""What is drawn with, and what stands in the file."""
_DASHES: tuple[_Dash, ...] = ("--", "-", "-.", ":", (0, (5, 1)), (0, (1, 1)))
_LOOKS = tuple(zip(list(_COLOURS)[2:], "osD^vP", _DASHES, strict=True))
"""Colour, mark and dash of each model, in turns."""
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


@dataclass(frozen=True)
class _Line:
    """How a model is drawn."""

    label: str
    colour: str
    mark: str
    dash: _Dash


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


def figures(results: StudyResults) -> list[Figure]:
    """Figures 4 to 6, of the models that are to be drawn and have a finished run."""
    drawn = [model for model in MODELS.values() if model.drawn]
    lines = {
        model.name: _Line(_label(model, drawn), *_LOOKS[number % len(_LOOKS)])
        for number, model in enumerate(drawn)
        if model.name in results.models
    }
    found = [_figure(results, kind, lines) for kind in _KINDS]
    return [figure for figure in found if figure is not None]


def _label(model: StudyModel, drawn: Sequence[StudyModel]) -> str:
    alone = sum(other.title == model.title for other in drawn) == 1
    return model.title if alone else f"{model.title}, {model.detail}"


def _figure(results: StudyResults, kind: _Kind, lines: dict[str, _Line]) -> Figure | None:
    every = {
        name: band([run.curves[kind.curve] for run in model.runs])
        for name, model in results.models.items()
    }
    bands = {line: every[name] for name, line in lines.items()}
    if all(np.isnan(found.mean).all() for found in bands.values()):
        return None
    seeds = max(len(results.models[name].runs) for name in lines)
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


def _draw(kind: _Kind, bands: dict[_Line, Band]) -> str:
    with mpl.rc_context(_STYLE):
        drawing = Drawing(figsize=(4.8, 3.2), layout="constrained")
        axes = drawing.subplots()
        for line, found in bands.items():
            _plot(axes, line, found)
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


def _plot(axes: Axes, line: _Line, found: Band) -> None:
    x, colour = np.arange(len(found.mean)), line.colour
    look: dict[str, Any] = {"color": colour, "marker": line.mark, "linestyle": line.dash}
    axes.plot(x, found.mean, markersize=4.5, label=line.label, **look)
    low, high = found.mean - found.standard_error, found.mean + found.standard_error
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)


def _inline(svg: str) -> str:
    """The drawing without the file's head, which a page must not hold, and with named colours."""
    svg = svg[svg.index("<svg") :]
    for drawn, named in _COLOURS.items():
        svg = svg.replace(drawn, named)
    return svg


def _describe(bands: dict[_Line, Band]) -> str:
    parts = []
    for line, found in bands.items():
        pairs = zip(found.labels, found.mean, strict=True)
        values = ", ".join(f"{label}: {mean:.1f}" for label, mean in pairs if not np.isnan(mean))
        parts.append(f"{line.label}: {values or 'too few tokens'}")
    return "; ".join(parts)
