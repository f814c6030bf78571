"""The report as one HTML file: no script, no network, light and dark, from phone to print."""

import re
from html import escape
from importlib.resources import files

from dntm.report.document import (
    Block,
    Claim,
    Claims,
    Entry,
    Figure,
    Items,
    Paragraph,
    Report,
    Section,
    Table,
    Verdict,
)

_CLASSES: dict[Verdict, str] = {
    "held": "held",
    "did not hold": "failed",
    "not clear": "unclear",
    "could not be tested": "untested",
}


def as_html(report: Report) -> str:
    """The whole page."""
    style = files("dntm.report").joinpath("page.css").read_text(encoding="utf-8")
    lead = "".join(f"<p>{escape(line)}</p>\n" for line in report.lead)
    lead += "".join(f"<p><strong>{escape(note)}</strong></p>\n" for note in report.notes)
    links = "".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in report.sections)
    body = "\n".join(_section(section) for section in report.sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(report.title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(report.title)}</h1>
{lead}<nav aria-label="Contents"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
</body>
</html>
"""


def _section(section: Section) -> str:
    blocks = "\n".join(_block(block) for block in section.blocks)
    heading = f'<h2 id="{section.key}-title">{escape(section.title)}</h2>'
    return (
        f'<section id="{section.key}" aria-labelledby="{section.key}-title">\n{heading}\n'
        f"{blocks}\n</section>"
    )


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return f"<p>{escape(block.text)}</p>"
        case Items():
            return _items(block)
        case Claims():
            claims = "\n".join(map(_claim, block.items))
            return f'<dl class="claims">\n{claims}\n</dl>'
        case Table():
            return _table(block)
        case Figure():
            return _figure(block)


def _items(block: Items) -> str:
    if any(isinstance(item, str) for item in block.items):
        return "<ul>" + "".join(f"<li>{escape(str(item))}</li>" for item in block.items) + "</ul>"
    lines = [f"<dt>{escape(item[0])}</dt><dd>{escape(item[1])}</dd>" for item in block.items]
    return "<dl>\n" + "\n".join(lines) + "\n</dl>"


def _claim(claim: Claim) -> str:
    verdict = f'<span class="verdict">{escape(claim.judged)}</span>'
    return (
        f'<dt class="{_CLASSES[claim.verdict]}">{escape(claim.statement)}. {verdict}</dt>'
        f"<dd>{escape(claim.finding)}</dd>"
    )


def _table(table: Table) -> str:
    head = "".join(
        f'<th scope="col"{_word(table, i)}>{escape(title)}</th>'
        for i, title in enumerate(table.header)
    )
    rows = []
    for row in table.rows:
        cells = "".join(_cell(table, i, entry) for i, entry in enumerate(row.entries))
        rows.append(f'<tr class="block">{cells}</tr>' if row.block else f"<tr>{cells}</tr>")
    body = "\n".join(rows)
    # A region that scrolls must be reachable by keyboard, and so needs a name.
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(table.title)}">\n'
        f"<table>\n<caption><span>{escape(table.title)}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
        f'<tbody>\n{body}\n</tbody>\n</table>\n</div>\n<p class="note">{escape(table.caption)}</p>'
    )


def _cell(table: Table, column: int, entry: Entry) -> str:
    text = f"<strong>{escape(entry.text)}</strong>" if entry.bold else escape(entry.text)
    under = f"<small>{escape(entry.under)}</small>" if entry.under else ""
    if column == 0:
        return f'<th scope="row"{_word(table, column)}>{text}{under}</th>'
    return f"<td{_word(table, column)}>{text}{under}</td>"


def _word(table: Table, column: int) -> str:
    return ' class="word"' if column < table.words else ""


def _figure(figure: Figure) -> str:
    named = f'role="img" aria-label="{escape(figure.title)}. {escape(figure.description)}" '
    svg = unique_names(figure.svg, figure.key).replace("<svg ", f"<svg {named}", 1)
    return (
        f'<figure id="{figure.key}">\n<h3>{escape(figure.title)}</h3>\n{svg}\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>"
    )


def unique_names(svg: str, key: str) -> str:
    """Names inside a drawing, made its own: several drawings stand on one page."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
