"""The report as Markdown; figures are the SVG files beside it."""

from dntm.report.document import Block, Claims, Entry, Figure, Items, Paragraph, Report, Table


def as_markdown(report: Report) -> str:
    """The whole text."""
    parts = [f"# {_plain(report.title)}", *map(_plain, report.lead)]
    parts += [f"**{_plain(note)}**" for note in report.notes]
    for section in report.sections:
        parts.append(f"## {_plain(section.title)}")
        parts.extend(_block(block) for block in section.blocks)
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return _plain(block.text)
        case Items():
            return "\n".join(_item(item) for item in block.items)
        case Claims():
            return "\n".join(
                _item((f"{claim.statement}. {claim.judged}", claim.finding))
                for claim in block.items
            )
        case Table():
            return _table(block)
        case Figure():
            return f"![{_plain(block.title)}](figures/{block.key}.svg)\n\n{_plain(block.caption)}"


def _item(item: str | tuple[str, str]) -> str:
    if isinstance(item, str):
        return f"- {_plain(item)}"
    heading = item[0] if item[0].endswith(".") else f"{item[0]}:"
    return f"- **{_plain(heading)}** {_plain(item[1])}"


def _table(table: Table) -> str:
    lines = [
        f"| {' | '.join(_plain(title) for title in table.header)} |",
        f"| {' | '.join('---' if i < table.words else '--:' for i in range(len(table.header)))} |",
    ]
    lines += [f"| {' | '.join(map(_entry, row.entries))} |" for row in table.rows]
    body = "\n".join(lines)
    return f"**{_plain(table.title)}**\n\n{body}\n\n{_plain(table.caption)}"


def _entry(entry: Entry) -> str:
    text = f"**{_plain(entry.text)}**" if entry.bold else _plain(entry.text)
    return f"{text}<br>{_plain(entry.under)}" if entry.under else text


def _plain(text: str) -> str:
    """Text in which nothing is markup."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text
