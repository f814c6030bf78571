"""Tables as files to go on with: CSV with unrounded numbers, LaTeX to be put into a paper, and as
the terminal shows them.
"""

import csv
import io

from dntm.report.document import Data, Entry, Table

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "−": "$-$", "–": "--",
}  # fmt: skip


def as_csv(data: Data) -> str:
    """The numbers of a table or a figure; an empty line where it has none."""
    text = io.StringIO()
    names = list(data[0]) if data else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(data)
    return text.getvalue()


def as_latex(table: Table) -> str:
    """A `table` with `booktabs` rules."""
    columns = "".join("l" if i < table.words else "r" for i in range(len(table.header)))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(rf"\textbf{{{_latex(title)}}}" for title in table.header) + r" \\",
    ]
    for number, row in enumerate(table.rows):
        if row.block or number == 0:
            lines.append(r"\midrule")
        lines.append(" & ".join(map(_entry, row.entries)) + r" \\")
    caption = _latex(f"{table.title}. {table.caption}")
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}"]
    lines += [rf"\label{{tab:{table.key}}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


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


def _entry(entry: Entry) -> str:
    text = rf"\textbf{{{_latex(entry.text)}}}" if entry.bold else _latex(entry.text)
    if not entry.under:
        return text
    return rf"\shortstack{{{text}\\{{\scriptsize {_latex(entry.under)}}}}}"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
