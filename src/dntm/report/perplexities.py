"""Tables 2 and 3: perplexity of the token groups, beside the paper's, and against the baseline."""

from collections.abc import Sequence

from dntm.evaluation.groups import PAPER_GROUPS as GROUPS
from dntm.evaluation.groups import TITLES
from dntm.evaluation.uncertainty import Comparison
from dntm.experiments.models import MERGING_TITLES, MODELS, VARIANT_TITLES
from dntm.experiments.paper import PAPER_TABLE_3
from dntm.report.document import Entry, Row, Scalar, Table
from dntm.report.numbers import (
    NONE,
    compare,
    mean_error,
    paper_value,
    percent,
    percent_interval,
    plus_minus,
)
from dntm.report.results import ModelResults, StudyResults

_COLUMNS = tuple(
    f"({number}) {TITLES[group].full.capitalize()}" for number, group in enumerate(GROUPS, start=1)
)
_OVER_SEEDS = (
    "Lower is better. Mean ± standard error over seeds; below it the paper's value on OntoNotes."
)


def table_2(results: StudyResults) -> Table:
    """A, B, C and D with GRU-ReLU merging; the best of each column in bold."""
    names = [name for name in ("A", "B-gru-relu", "C-gru-relu", "D-gru-relu") if _in(results, name)]
    best = _best(results, names)
    rows = [
        Row((Entry(f"{VARIANT_TITLES[name[0]]} ({name[0]})"), *_groups(results, name, best)))
        for name in names
    ]
    return Table(
        key="table-2",
        title="Table 2: perplexity by token group on the test split",
        caption=f"Dynamic models merge with GRU-ReLU. {_OVER_SEEDS} The best is bold.",
        header=("Model", *_COLUMNS),
        words=1,
        rows=tuple(rows),
        data=tuple(_data(results, name) for name in names),
    )


def table_3(results: StudyResults) -> Table:
    """All models with their parameters; the best of each block in bold, the baseline last."""
    rows: list[Row] = []
    names = [name for letter in "BCDA" for name in _block(results, letter)]
    for letter in "BCDA":
        block = _block(results, letter)
        best = _best(results, block) if letter != "A" else {}
        for place, name in enumerate(block):
            merging = "" if letter == "A" else MERGING_TITLES[MODELS[name].merging]
            size = Entry(_size(results.models.get(name)), _paper_size(name))
            words = (Entry(f"{VARIANT_TITLES[letter]} ({letter})"), Entry(merging), size)
            rows.append(Row((*words, *_groups(results, name, best)), block=place == 0))
    return Table(
        key="table-3",
        title="Table 3: perplexity by merging function",
        caption=f"Parameters in all, and in brackets those that training changed. {_OVER_SEEDS} "
        "The best of each block is bold.",
        header=("Model", "Merging", "Parameters", *_COLUMNS),
        words=2,
        rows=tuple(rows),
        data=tuple(_data(results, name) for name in names),
    )


def against_baseline(results: StudyResults) -> Table:
    """Every dynamic model against the baseline, with intervals over documents."""
    rows: list[Row] = []
    data: list[dict[str, Scalar]] = []
    baseline = results.models.get("A")
    for letter in "BCD":
        for place, name in enumerate(_block(results, letter)):
            entries = [Entry(f"{VARIANT_TITLES[letter]} ({letter})")]
            entries.append(Entry(MERGING_TITLES[MODELS[name].merging]))
            found = {
                group: _comparison(baseline, results.models.get(name), group) for group in GROUPS
            }
            entries.extend(_change(comparison) for comparison in found.values())
            rows.append(Row(tuple(entries), block=place == 0))
            data.extend(_comparison_data(name, group, c) for group, c in found.items() if c)
    return Table(
        key="against-baseline",
        title="Each model against the baseline",
        caption="Change of the perplexity, seeds averaged, and the 95 % interval of a paired "
        "bootstrap over the whole documents of the test split (parts of one are drawn together). "
        "An interval without zero says that the change is not due to the choice of documents.",
        header=("Model", "Merging", *_COLUMNS),
        words=2,
        rows=tuple(rows),
        data=tuple(data),
    )


def _in(results: StudyResults, name: str) -> bool:
    return name in results.config.models


def _block(results: StudyResults, letter: str) -> list[str]:
    return [m.name for m in MODELS.values() if m.letter == letter and _in(results, m.name)]


def _best(results: StudyResults, names: Sequence[str]) -> dict[str, str]:
    """Of each group the lowest mean, as it is printed: what looks equal is equally bold."""
    best = {}
    for group in GROUPS:
        found = [results.models[n].perplexities(group) for n in names if n in results.models]
        means = [float(values.mean()) for values in found]
        if len(means) > 1:
            best[group] = f"{min(means):.1f}"
    return best


def _groups(results: StudyResults, name: str, best: dict[str, str]) -> list[Entry]:
    found = results.models.get(name)
    entries = []
    for group in GROUPS:
        values = None if found is None else found.perplexities(group)
        bold = values is not None and f"{values.mean():.1f}" == best.get(group)
        paper = paper_value(getattr(PAPER_TABLE_3[name], group), 1)
        entries.append(Entry(plus_minus(values, 1), f"paper {paper}", bold))
    return entries


def _size(found: ModelResults | None) -> str:
    if found is None:
        return NONE
    run = found.runs[0]
    return f"{run.parameters / 1e6:.2f}M ({run.finetuned / 1e6:.2f}M)"


def _paper_size(name: str) -> str:
    paper = PAPER_TABLE_3[name]
    return f"paper {paper.parameters}M ({paper.finetuned}M)"


def _data(results: StudyResults, name: str) -> dict[str, Scalar]:
    found, paper = results.models.get(name), PAPER_TABLE_3[name]
    row: dict[str, Scalar] = {
        "model": name,
        "seeds": len(found.runs) if found else 0,
        "parameters": found.runs[0].parameters if found else None,
        "finetuned": found.runs[0].finetuned if found else None,
    }
    for group in GROUPS:
        row[group], row[f"{group}_error"] = mean_error(found.perplexities(group) if found else None)
        value = getattr(paper, group)
        row[f"{group}_paper"], row[f"{group}_paper_error"] = value.mean, value.error
    return row


def _comparison(
    baseline: ModelResults | None, other: ModelResults | None, group: str
) -> Comparison | None:
    if baseline is None or other is None:
        return None
    return compare(baseline.sums(group), other.sums(group))


def _change(found: Comparison | None) -> Entry:
    if found is None:
        return Entry(NONE)
    return Entry(percent(found.ratio), percent_interval(found.ratio_interval))


def _comparison_data(name: str, group: str, found: Comparison) -> dict[str, Scalar]:
    return {
        "model": name,
        "group": group,
        "baseline": found.baseline,
        "perplexity": found.other,
        "ratio": found.ratio,
        "ratio_low": found.ratio_interval[0],
        "ratio_high": found.ratio_interval[1],
        "documents": found.documents,
    }
