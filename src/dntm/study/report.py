"""The report of a study, and its files.

report.html              one self-contained page
report.md                the same as text
documents.csv            sums per test document and run
figures/*.svg, *.csv
tables/*.csv             unrounded numbers

Page and text are Jinja templates. Figures 4 to 6 (perplexity of A and D by position, by occurrences
and by antecedent entities) are drawn with matplotlib as SVG. Their colors are CSS variables with a
fallback, so that a page can set them for light and dark mode; their CSV files have all models.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dntm.evaluation.records import as_csv
from dntm.evaluation.uncertainty import FEWEST, Band, band
from dntm.files import new_folder, write_text
from dntm.study import tables
from dntm.study.claims import Claim, claims, listed
from dntm.study.config import MODELS, PRESETS, StudyFolder, by_dotted_name
from dntm.study.results import Data, StudyResults, documents_csv, read_results
from dntm.study.tables import Entry, Row, Table

_PAPER = replace(PRESETS["paper"], corpus="ontonotes", text=("gigaword",))
_NOT_COMPARED = ("preset", "given", "seeds", "models", "model.vocabulary", "model.entities")
"""Settings that no number depends on, or that other tables show."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing and its numbers."""

    key: str
    title: str
    svg: str
    data: Data


@dataclass(frozen=True, kw_only=True)
class Report:
    """The whole report."""

    title: str
    summary: tuple[str, ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]


def write_report(folder: StudyFolder, target: Path | None = None) -> Report:
    """Write the report to a folder that is new, empty or an older report, which is replaced."""
    target = target or folder.report
    if target.exists() and any(target.iterdir()) and not (target / "report.html").exists():
        raise ValueError(f"{target} is not a report: choose another folder")
    results = read_results(folder)
    report = make_report(results)
    with new_folder(target, overwrite=True) as new:
        write_text(new / "report.html", as_html(report))
        write_text(new / "report.md", as_markdown(report))
        write_text(new / "documents.csv", documents_csv(results))
        for table in report.tables:
            write_text(new / "tables" / f"{table.key}.csv", data_csv(table.data))
        for figure in report.figures:
            write_text(new / "figures" / f"{figure.key}.svg", figure.svg)
            write_text(new / "figures" / f"{figure.key}.csv", data_csv(figure.data))
    return report


def make_report(results: StudyResults) -> Report:
    """The report of the finished runs."""
    found = claims(results)
    shown = [tables.table_2(results), tables.table_3(results), tables.table_4(results)]
    if results.baselines:
        shown.insert(2, tables.baselines_table(results))
    if results.dataset:
        shown.insert(0, tables.table_1(results))
    return Report(
        title=f"Dynamic Neural Text Model on {_plain(results.config.corpus)}",
        summary=tuple(_summary(results, found)),
        claims=tuple(found),
        tables=(*shown, _settings(results)),
        figures=tuple(figures(results)),
    )


def _summary(results: StudyResults, found: Sequence[Claim]) -> Iterator[str]:
    yield "The experiments of Kobayashi, Okazaki and Inui (IJCNLP 2017)."
    planned, finished = len(results.config.runs), len(results.runs)
    took = _time(session for run in results.runs for session in run.sessions)
    yield f"{finished} of {planned} runs are finished; they took {took} in total."
    if results.missing:
        yield f"Missing: {listed([run.name for run in results.missing])}."
    if results.pretraining:
        yield f"Pretraining took {_time(results.pretraining)}."
    seeds = {len(model.runs) for model in results.models.values()}
    if seeds == {1}:
        yield "Each model has one seed, so the variation between seeds is unknown."
    elif len(seeds) > 1:
        yield f"The models have between {min(seeds)} and {max(seeds)} finished seeds."
    hold = sum(claim.verdict == "holds" for claim in found)
    tested = sum(claim.verdict != "not tested" for claim in found)
    if tested:
        yield f"{hold} of {tested} tested claims hold."


def _time(sessions: Iterable[Mapping[str, Any]]) -> timedelta:
    return timedelta(seconds=round(sum(session["seconds"] for session in sessions)))


def _settings(results: StudyResults) -> Table:
    """Settings that differ from the paper's; study.yaml has all."""
    ours, paper = (
        {name: _plain(value) for name, value in by_dotted_name(config).items()}
        for config in (results.config, _PAPER)
    )
    differ = [name for name in ours if name not in _NOT_COMPARED and ours[name] != paper[name]]
    return Table(
        key="settings",
        title="Settings that differ from the paper",
        caption="study.yaml has all settings.",
        header=("Setting", "Here", "Paper"),
        text_columns=3,
        rows=tuple(Row((Entry(n), Entry(ours[n]), Entry(paper[n]))) for n in differ),
        data=tuple({"setting": n, "here": ours[n], "paper": paper[n]} for n in differ),
    )


def _plain(value: Any) -> str:
    """A setting as text; a path without its folders, which are the machine's own."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return Path(value).name if str(value).startswith("/") else str(value)


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
                data=_band_data(bands),
            )
            found.append(figure)
    return found


def _band_data(bands: dict[str, Band]) -> Data:
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

    with mpl.rc_context(fname=Path(__file__).with_name("templates") / "figure.mplstyle"):
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


def as_html(report: Report) -> str:
    """The whole page."""
    style = files("dntm.study").joinpath("templates/page.css").read_text(encoding="utf-8")
    pages = environment("dntm.study", autoescape=True)
    pages.filters["drawing"] = _drawing
    return pages.get_template("report.html").render(
        report=report, style=Markup(style), fewest=FEWEST
    )


def as_markdown(report: Report) -> str:
    """The whole text."""
    pages = environment("dntm.study", autoescape=False)
    pages.filters["escaped"] = lambda text: re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)
    return pages.get_template("report.md").render(report=report, fewest=FEWEST)


def data_csv(data: Data) -> str:
    """The numbers of a table or a figure."""
    return as_csv(list(data[0]) if data else [], [list(row.values()) for row in data])


def environment(package: str, *, autoescape: bool) -> Environment:
    """The templates of a package; a value that is missing is an error."""
    return Environment(
        loader=PackageLoader(package),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=autoescape,
    )


def _drawing(figure: Figure) -> Markup:
    """The SVG with a label, and with ids that are unique on the page."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{figure.key}-\1"', figure.svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{figure.key}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{figure.key}-\1)", svg)
    label = Markup('<svg role="img" aria-label="{}" ').format(figure.title)
    return Markup(svg.replace("<svg ", label, 1))
