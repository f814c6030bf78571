"""The content of a report: claims, Tables 1-4, Figures 4-6, and how they came about."""

from dntm.report.claims import claims
from dntm.report.conditions import corpus_name, departures, runs, settings
from dntm.report.document import Block, Items, Paragraph, Report, Section
from dntm.report.figures import figures
from dntm.report.numbers import listed
from dntm.report.perplexities import against_baseline, table_2, table_3
from dntm.report.results import StudyResults
from dntm.report.text_and_cloze import table_1, table_4

_VERDICTS = {
    "held": "Held here",
    "not clear": "Not clear here",
    "did not hold": "Did not hold here",
    "could not be tested": "Could not be tested here",
}

_ABOUT = (
    "The experiments of Kobayashi, Okazaki and Inui (IJCNLP 2017), repeated: our numbers beside "
    "the paper's. All of them come from one record per predicted token of the test split."
)


def content(results: StudyResults) -> Report:
    """Everything that the finished runs of a study say."""
    sections = [_claims(results)]
    if results.dataset:
        sections.append(Section("dataset", "The dataset", (table_1(results),)))
    tables: tuple[Block, ...] = (table_2(results), table_3(results))
    if any(name != "A" for name in results.config.models):
        tables += (against_baseline(results),)
    sections.append(Section("perplexity", "Perplexity", tables))
    drawn: tuple[Block, ...] = tuple(figures(results))
    none = Paragraph("No finished run of A or D-gru-relu yet, or too few tokens to draw.")
    sections.append(Section("figures", "How far the reading has come", drawn or (none,)))
    sections.append(Section("cloze", "Cloze test", (table_4(results),)))
    sections += [settings(results), departures(results), runs(results)]
    corpus = corpus_name(results.config)
    return Report(
        f"Dynamic Neural Text Model: a study on {corpus}", _lead(results), tuple(sections)
    )


def _lead(results: StudyResults) -> tuple[str, ...]:
    finished, planned = len(results.planned) - len(results.missing), len(results.planned)
    lines = [
        _ABOUT,
        f"Preset {results.config.preset or 'none'}: {finished} of {planned} runs are finished.",
    ]
    if results.missing:
        names = [cell.name for cell in results.missing]
        lines.append(f"This report is partial. Missing: {listed(names)}.")
    return tuple(lines)


def _claims(results: StudyResults) -> Section:
    found = claims(results)
    items = tuple((f"{c.statement}. {_VERDICTS[c.verdict]}.", c.finding) for c in found)
    held = sum(claim.verdict == "held" for claim in found)
    tested = sum(claim.verdict != "could not be tested" for claim in found)
    summary = f"Of the paper's {len(found)} claims, {tested} could be tested and {held} held."
    if len(results.config.seeds) == 1:
        summary += " There is one seed only: how much another one would change is not known."
    return Section("claims", "What held and what did not", (Paragraph(summary), Items(items)))
