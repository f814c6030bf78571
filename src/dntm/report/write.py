"""Writing a report: all of its files at once, in place of an older one.

report.html         one self-contained page
report.md           the same as text
documents.csv       the sums of each test document under each run
figures/*.svg, *.csv
tables/*.csv, *.tex
"""

from pathlib import Path

from dntm.experiments.study import StudyFolder
from dntm.files import new_folder, write_text
from dntm.report.content import content
from dntm.report.document import Report
from dntm.report.documents import documents_csv
from dntm.report.html import as_html
from dntm.report.markdown import as_markdown
from dntm.report.results import read_results
from dntm.report.tabular import as_csv, as_latex

_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


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
            write_text(new / "figures" / f"{figure.key}.svg", _HEAD + figure.svg)
            write_text(new / "figures" / f"{figure.key}.csv", as_csv(figure.data))
    return report
