"""Writing a report: all of its files at once, in place of an older one.

report.html         one self-contained page
report.md           the same as text
documents.csv       the sums of each test document under each run
figures/*.svg, *.csv
tables/*.csv, *.tex

The page, the text and the LaTeX tables are Jinja templates; a CSV file has unrounded numbers.
"""

import csv
import io
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dntm.files import new_folder, write_text
from dntm.study.claims import claims
from dntm.study.conditions import corpus_name, departures, notes, runs, settings
from dntm.study.config import StudyFolder
from dntm.study.document import (
    Block,
    Claims,
    Data,
    Figure,
    Paragraph,
    Report,
    Section,
    Table,
    Verdict,
    listed,
)
from dntm.study.figures import figures
from dntm.study.results import StudyResults, documents_csv, read_results
from dntm.study.tables import (
    against_baseline,
    against_cached,
    peers_table,
    table_1,
    table_2,
    table_3,
    table_4,
)

_ABOUT = (
    "The experiments of Kobayashi, Okazaki and Inui (IJCNLP 2017), repeated: our numbers beside "
    "the paper's. All of them come from one record per predicted token of the test split."
)
_XML = '<?xml version="1.0" encoding="utf-8"?>\n'
_VERDICTS: dict[Verdict, str] = {
    "held": "held",
    "did not hold": "failed",
    "not clear": "unclear",
    "could not be tested": "untested",
}
_TEX_MARKS = {
    "block_start_string": "<%", "block_end_string": "%>", "variable_start_string": "<<",
    "variable_end_string": ">>", "comment_start_string": "<#", "comment_end_string": "#>",
}  # fmt: skip
"""Of templates in which braces are LaTeX's own."""
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "−": "$-$", "–": "--",
}  # fmt: skip


def write_report(folder: StudyFolder, target: Path | None = None) -> Report:
    """Make the report of a study from its files, and return it.

    It goes into the study's `report` folder, or into `target`: a folder that is new, empty or
    holds a report.
    """
    target = target or folder.report
    if target.exists() and any(target.iterdir()) and not (target / "report.html").exists():
        raise ValueError(f"{target} holds something else than a report: choose another folder")
    results = read_results(folder)
    report = content(results)
    with new_folder(target, overwrite=True) as new:
        write_text(new / "report.html", as_html(report))
        write_text(new / "report.md", as_markdown(report))
        write_text(new / "documents.csv", documents_csv(results))
        for table in report.tables:
            write_text(new / "tables" / f"{table.key}.csv", as_csv(table.data))
            write_text(new / "tables" / f"{table.key}.tex", as_latex(table))
        for figure in report.figures:
            write_text(new / "figures" / f"{figure.key}.svg", _XML + figure.svg)
            write_text(new / "figures" / f"{figure.key}.csv", as_csv(figure.data))
    return report


def content(results: StudyResults) -> Report:
    """Everything that the finished runs of a study say."""
    sections = [_claims(results)]
    if results.dataset:
        sections.append(Section("dataset", "The dataset", (table_1(results),)))
    tables: tuple[Block, ...] = (table_2(results), table_3(results))
    if any(name != "A" for name in results.config.models):
        tables += (against_baseline(results),)
    sections.append(Section("perplexity", "Perplexity", tables))
    if results.peers:
        cached = against_cached(results)
        found = (peers_table(results), *((cached,) if cached else ()))
        sections.append(Section("peers", "Peers", found))
    drawn: tuple[Block, ...] = tuple(figures(results))
    none = Paragraph("No finished run of A or D-gru-relu yet, or too few tokens to draw.")
    sections.append(Section("figures", "How far the reading has come", drawn or (none,)))
    sections.append(Section("cloze", "Cloze test", (table_4(results),)))
    sections += [settings(results), departures(results), runs(results)]
    corpus = corpus_name(results.config)
    finished, planned = len(results.planned) - len(results.missing), len(results.planned)
    preset = results.config.preset or "none"
    return Report(
        title=f"Dynamic Neural Text Model: a study on {corpus}",
        lead=(_ABOUT, f"Preset {preset}: {finished} of {planned} runs are finished."),
        notes=(*_partial(results), *notes(results)),
        sections=tuple(sections),
    )


def _partial(results: StudyResults) -> list[str]:
    if not results.missing:
        return []
    names = [cell.name for cell in results.missing]
    return [f"This report is partial. Missing: {listed(names)}."]


def _claims(results: StudyResults) -> Section:
    found = claims(results)
    held = sum(claim.verdict == "held" for claim in found)
    tested = sum(claim.verdict != "could not be tested" for claim in found)
    summary = f"Of the paper's {len(found)} claims, {tested} could be tested and {held} held."
    blocks = (Paragraph(f"{summary}{_seeds(results)}"), Claims(tuple(found)))
    return Section("claims", "What held and what did not", blocks)


def _seeds(results: StudyResults) -> str:
    """What the number of finished seeds leaves open."""
    models: dict[int, list[str]] = {}
    for name, found in results.models.items():
        models.setdefault(len(found.runs), []).append(name)
    if list(models) == [1]:
        return " There is one seed only: how much another one would change is not known."
    if len(models) < 2:
        return ""
    each = [f"{count} of {listed(names)}" for count, names in sorted(models.items())]
    return f" Not all models have equally many finished seeds: {'; '.join(each)}."


def as_html(report: Report) -> str:
    """The whole page."""
    style = files("dntm.study").joinpath("templates/page.css").read_text(encoding="utf-8")
    page = _templates({"drawing": _drawing}, autoescape=True).get_template("report.html")
    return page.render(report=report, verdicts=_VERDICTS, style=Markup(style))


def as_markdown(report: Report) -> str:
    """The whole text."""
    return _templates({"plain": _plain}).get_template("report.md").render(report=report)


def as_latex(table: Table) -> str:
    """A `table` with `booktabs` rules."""
    return _templates({"latex": _latex}, **_TEX_MARKS).get_template("table.tex").render(table=table)


def as_csv(data: Data) -> str:
    """The numbers of a table or a figure; an empty line where it has none."""
    text = io.StringIO()
    names = list(data[0]) if data else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(data)
    return text.getvalue()


def as_text(table: Table) -> str:
    """The table in columns, second lines below the first."""
    lines: list[tuple[str, ...]] = [table.header]
    for row in table.rows:
        lines.append(tuple(e.text for e in row.entries))
        if any(e.under for e in row.entries):
            lines.append(tuple(e.under for e in row.entries))
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.header))]
    shown = [
        "  ".join(
            word.ljust(width) if i < table.words else word.rjust(width)
            for i, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([table.title, *shown])


def _templates(filters: dict[str, Callable[..., str]], **options: Any) -> Environment:
    found = Environment(
        loader=PackageLoader("dntm.study"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    found.filters |= filters
    return found


def _plain(text: str) -> str:
    """Text in which nothing is Markdown."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _drawing(figure: Figure) -> Markup:
    named = Markup('<svg role="img" aria-label="{}. {}" ').format(figure.title, figure.description)
    return Markup(_unique_names(figure.svg, figure.key).replace("<svg ", named, 1))


def _unique_names(svg: str, key: str) -> str:
    """Names inside a drawing, made its own: several drawings stand on one page."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
