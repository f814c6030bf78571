"""The content of a report: claims, Tables 1-4, Figures 4-6, and how they came about."""

from dntm.report.claims import claims
from dntm.report.departures import departures
from dntm.report.document import Block, Claims, Paragraph, Report, Section
from dntm.report.figures import figures
from dntm.report.numbers import listed
from dntm.report.perplexities import against_baseline, table_2, table_3
from dntm.report.results import StudyResults
from dntm.report.runs import notes, runs
from dntm.report.settings import corpus_name, settings
from dntm.report.text_and_cloze import table_1, table_4

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
