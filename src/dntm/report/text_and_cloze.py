"""Tables 1 and 4: what the dataset looks like, and the cloze test."""

import math

from dntm.corpus.statistics import SplitStatistics
from dntm.experiments.models import MERGING_TITLES, MODELS, VARIANT_TITLES
from dntm.experiments.paper import PAPER_TABLE_1, PAPER_TABLE_4, TABLE_1_ROWS
from dntm.report.document import Entry, Row, Scalar, Table
from dntm.report.numbers import (
    NONE,
    compare,
    interval,
    mean_error,
    paper_value,
    plus_minus,
    signed,
)
from dntm.report.results import StudyResults

_MORE_ROWS = ("Tokens", "Entity tokens", "Unknown words")
_CLOZE = {"mean_quantile": 3, "accuracy": 3, "reciprocal_rank": 3}


def table_1(results: StudyResults) -> Table:
    """Statistics of the dataset, a column a split."""
    counts = {s: SplitStatistics(**results.dataset["counts"][s]) for s in PAPER_TABLE_1}
    rows: list[Row] = []
    data: list[dict[str, Scalar]] = []
    for number, label in enumerate(TABLE_1_ROWS):
        values = {split: c.table_1()[number] for split, c in counts.items()}
        digits = 0 if number == 0 else 1
        entries = [
            Entry(f"{value:,.{digits}f}", f"paper {PAPER_TABLE_1[split][number]:,}")
            for split, value in values.items()
        ]
        rows.append(Row((Entry(label), *entries)))
        paper = {f"{split}_paper": PAPER_TABLE_1[split][number] for split in counts}
        data.append({"row": label, **values, **paper})
    for label, shown in zip(
        _MORE_ROWS, zip(*map(_more, counts.values()), strict=True), strict=True
    ):
        rows.append(Row((Entry(label), *map(Entry, shown)), block=label == _MORE_ROWS[0]))
    return Table(
        key="table-1",
        title="Table 1: the dataset",
        caption="Below our numbers the paper's, of OntoNotes.",
        header=("Split", "Train", "Valid", "Test"),
        words=1,
        rows=tuple(rows),
        data=tuple(data),
    )


def _more(counts: SplitStatistics) -> tuple[str, ...]:
    tokens = max(counts.tokens, 1)
    shares = (counts.entity_tokens / tokens, counts.unknown_tokens / tokens)
    return (f"{counts.tokens:,}", *(f"{100 * share:.1f} %" for share in shares))


def table_4(results: StudyResults) -> Table:
    """Mean quantile of every model, beside the paper's, chance, accuracy and reciprocal rank."""
    names = [name for name in MODELS if name in results.config.models]
    means = [m.cloze("mean_quantile").mean() for m in results.models.values()]
    best = f"{max(means):.3f}" if len(means) > 1 else ""
    rows, data = [_chance(results)], []
    for name in names:
        model, found = MODELS[name], results.models.get(name)
        merging = "" if name == "A" else MERGING_TITLES[model.merging]
        entries = [Entry(f"{VARIANT_TITLES[model.letter]} ({model.letter})"), Entry(merging)]
        row: dict[str, Scalar] = {"model": name, "seeds": len(found.runs) if found else 0}
        for column, digits in _CLOZE.items():
            values = found.cloze(column) if found else None
            text = plus_minus(values, digits)
            row[column], row[f"{column}_error"] = mean_error(values)
            if column == "mean_quantile":
                bold = bool(best) and text.split(" ")[0] == best
                entries.append(Entry(text, f"paper {paper_value(PAPER_TABLE_4[name], 3)}", bold))
            else:
                entries.append(Entry(text))
        entries.insert(3, _against(results, name, row))
        row["paper"], row["paper_error"] = PAPER_TABLE_4[name].mean, PAPER_TABLE_4[name].error
        rows.append(Row(tuple(entries), block=name == "A" or model.merging == "gru-relu"))
        data.append(row)
    gaps = next((str(run.cloze_summary.gaps) for run in results.runs), "no")
    return Table(
        key="table-4",
        title="Table 4: the cloze test",
        caption=f"Which entity stood in the gap? Mean quantile of the true one among the entities "
        f"that earlier sentences mention, over {gaps} gaps of the test split (ties count against "
        "the model); higher is better, the best is bold. Beside it the difference to the baseline "
        "with the 95 % interval of a paired bootstrap over whole documents.",
        header=(
            *("Model", "Merging", "Mean quantile", "Against the baseline"),
            *("Accuracy", "Mean reciprocal rank"),
        ),
        words=2,
        rows=tuple(rows),
        data=tuple(data),
    )


def _chance(results: StudyResults) -> Row:
    summary = next((run.cloze_summary for run in results.runs), None)
    names = ("chance_mean_quantile", "chance_accuracy", "chance_reciprocal_rank")
    values = [getattr(summary, name) if summary else math.nan for name in names]
    quantile, *others = (Entry(NONE if math.isnan(v) else f"{v:.3f}") for v in values)
    return Row((Entry("Chance"), Entry(""), quantile, Entry(""), *others))


def _against(results: StudyResults, name: str, row: dict[str, Scalar]) -> Entry:
    baseline, found = results.models.get("A"), results.models.get(name)
    comparison = None
    if baseline and found and name != "A":
        comparison = compare(baseline.cloze_sums(), found.cloze_sums())
    row["difference"] = comparison.difference if comparison else None
    row["difference_low"], row["difference_high"] = (
        comparison.difference_interval if comparison else (None, None)
    )
    if comparison is None:
        return Entry("" if name == "A" else NONE)
    return Entry(signed(comparison.difference, 3), interval(comparison.difference_interval, 3))
