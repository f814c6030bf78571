"""Tables 1 to 4: the dataset, perplexity of the token groups, and the cloze test.

Our numbers stand above the paper's where the paper has any. A table has a row for every model of
the study, whichever these are, in the order of `MODELS`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from dntm.corpus.dataset import SplitStatistics
from dntm.evaluation.groups import PAPER_GROUPS, Group
from dntm.evaluation.uncertainty import Comparison, DocumentSums
from dntm.study.document import (
    NONE,
    Entry,
    Row,
    Scalar,
    Table,
    compare,
    interval,
    mean_error,
    paper_value,
    percent,
    percent_interval,
    plus_minus,
    signed,
)
from dntm.study.paper import (
    BASELINE,
    MODELS,
    PAPER_TABLE_1,
    PAPER_TABLE_3,
    PAPER_TABLE_4,
    TABLE_1_ROWS,
    StudyModel,
)
from dntm.study.results import ModelResults, PeerRun, Run, StudyResults, perplexities, stacked

CACHED = "A-salience-cache"
"""What somebody who knows the paper and caches would compare with first."""
_MORE_ROWS = ("Tokens", "Entity tokens", "Unknown words")
_COLUMNS = tuple(
    f"({number}) {Group(group).label.capitalize()}"
    for number, group in enumerate(PAPER_GROUPS, start=1)
)
_OVER_SEEDS = (
    "Lower is better. Mean ± standard error over seeds; below it the paper's value on OntoNotes."
)
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


def table_2(results: StudyResults) -> Table:
    """One model of each kind, the paper's with GRU-ReLU; the best of each column in bold."""
    models = [model for model in results.rows if model.leads]
    best = _best(results, models)
    return Table(
        key="table-2",
        title="Table 2: perplexity by token group on the test split",
        caption=f"Dynamic models merge with GRU-ReLU. {_OVER_SEEDS} The best is bold.",
        header=("Model", *_COLUMNS),
        words=1,
        rows=tuple(Row((Entry(m.title), *_groups(results, m, best))) for m in models),
        data=tuple(_data(results, model) for model in models),
    )


def table_3(results: StudyResults) -> Table:
    """All models with their parameters; the best of each block in bold, the baseline last."""
    rows: list[Row] = []
    models: list[StudyModel] = []
    baseline = [model for model in results.rows if model.kind == BASELINE]
    for block in (*_blocks(results), baseline):
        best = _best(results, block)
        for place, model in enumerate(block):
            size = Entry(_size(results.models.get(model.name)), _paper_size(model))
            words = (Entry(model.title), Entry(model.detail), size)
            rows.append(Row((*words, *_groups(results, model, best)), block=place == 0))
        models += block
    return Table(
        key="table-3",
        title="Table 3: perplexity by merging function",
        caption=f"Parameters in all, and in brackets those that training changed. {_OVER_SEEDS} "
        "The best of each block is bold.",
        header=("Model", "Merging", "Parameters", *_COLUMNS),
        words=2,
        rows=tuple(rows),
        data=tuple(_data(results, model) for model in models),
    )


def against_baseline(results: StudyResults) -> Table:
    """Every other model against the baseline, with intervals over documents."""
    rows: list[Row] = []
    data: list[dict[str, Scalar]] = []
    for block in _blocks(results):
        for place, model in enumerate(block):
            found = {group: _comparison(results, model, group) for group in PAPER_GROUPS}
            changes = (_change(comparison) for comparison in found.values())
            words = (Entry(model.title), Entry(model.detail))
            rows.append(Row((*words, *changes), block=place == 0))
            data.extend(_comparison_data(model.name, group, c) for group, c in found.items() if c)
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


def _blocks(results: StudyResults) -> Iterator[list[StudyModel]]:
    """The models of each kind, but for the baseline."""
    for kind in dict.fromkeys(model.kind for model in results.rows):
        if kind != BASELINE:
            yield [model for model in results.rows if model.kind == kind]


def _best(results: StudyResults, models: Sequence[StudyModel]) -> dict[str, str]:
    """Of each group the lowest mean, as it is printed: what looks equal is equally bold."""
    best = {}
    for group in PAPER_GROUPS:
        found = [results.models[m.name] for m in models if m.name in results.models]
        means = [float(model.perplexities(group).mean()) for model in found]
        if len(means) > 1:
            best[group] = f"{min(means):.1f}"
    return best


def _groups(results: StudyResults, model: StudyModel, best: dict[str, str]) -> list[Entry]:
    found, paper = results.models.get(model.name), PAPER_TABLE_3.get(model.name)
    entries = []
    for group in PAPER_GROUPS:
        values = None if found is None else found.perplexities(group)
        bold = values is not None and f"{values.mean():.1f}" == best.get(group)
        under = paper_value(getattr(paper, group) if paper else None, 1)
        entries.append(Entry(plus_minus(values, 1), under, bold))
    return entries


def _size(found: ModelResults | None) -> str:
    if found is None:
        return NONE
    run = found.runs[0]
    return f"{run.parameters / 1e6:.2f}M ({run.finetuned / 1e6:.2f}M)"


def _paper_size(model: StudyModel) -> str:
    paper = PAPER_TABLE_3.get(model.name)
    return f"paper {paper.parameters}M ({paper.finetuned}M)" if paper else ""


def _data(results: StudyResults, model: StudyModel) -> dict[str, Scalar]:
    found, paper = results.models.get(model.name), PAPER_TABLE_3.get(model.name)
    row: dict[str, Scalar] = {
        "model": model.name,
        "seeds": len(found.runs) if found else 0,
        "parameters": found.runs[0].parameters if found else None,
        "finetuned": found.runs[0].finetuned if found else None,
    }
    for group in PAPER_GROUPS:
        row[group], row[f"{group}_error"] = mean_error(found.perplexities(group) if found else None)
        value = getattr(paper, group) if paper else None
        row[f"{group}_paper"] = value.mean if value else None
        row[f"{group}_paper_error"] = value.error if value else None
    return row


def _comparison(results: StudyResults, model: StudyModel, group: str) -> Comparison | None:
    baseline, other = results.models.get(BASELINE), results.models.get(model.name)
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


def peers_table(results: StudyResults) -> Table:
    """The peers and the paper's models that they stand beside, all against the baseline."""
    runs = _beside_peers(results)
    baseline = runs.get(BASELINE)
    rows: list[Row] = []
    data: list[dict[str, Scalar]] = []
    sums = _group_sums(runs)
    best = {
        group: f"{min(perplexities(own[group]).mean() for own in sums.values()):.1f}"
        for group in PAPER_GROUPS
    }
    for name, found in runs.items():
        size = found[0].parameters
        entries = [Entry(MODELS[name].title), Entry(f"{size / 1e6:.2f}M")]
        row: dict[str, Scalar] = {"model": name, "seeds": len(found), "parameters": size}
        for group in PAPER_GROUPS:
            values = perplexities(sums[name][group])
            row[group], row[f"{group}_error"] = mean_error(values)
            against = None
            if baseline and name != BASELINE:
                against = compare(sums[BASELINE][group], sums[name][group])
            under = f"{_change(against).text} {_change(against).under}" if against else ""
            bold = f"{values.mean():.1f}" == best[group]
            entries.append(Entry(plus_minus(values, 1), under, bold))
            row[f"{group}_ratio"] = against.ratio if against else None
            low, high = against.ratio_interval if against else (None, None)
            row[f"{group}_ratio_low"], row[f"{group}_ratio_high"] = low, high
        rows.append(Row(tuple(entries)))
        data.append(row)
    return Table(
        key="peers",
        title="Peers: perplexity by token group on the test split",
        caption="What people would use instead, on the same tokens and with the same vocabulary, "
        "trained alike and tuned on the dev split. Lower is better, the best is bold. Mean ± "
        "standard error over seeds; below it the change against the baseline (A) with the 95 % "
        "interval of a paired bootstrap over whole documents. The parameters of the 5-gram model "
        "are its n-grams.",
        header=("Model", "Parameters", *_COLUMNS),
        words=1,
        rows=tuple(rows),
        data=tuple(data),
    )


def against_cached(results: StudyResults) -> Table | None:
    """Every other model against A with salience and a cache; None where that is not there."""
    runs = _beside_peers(results)
    if CACHED not in runs:
        return None
    sums = _group_sums(runs)
    rows, data = [], []
    for name, own in sums.items():
        if name == CACHED:
            continue
        found = {group: compare(sums[CACHED][group], own[group]) for group in PAPER_GROUPS}
        rows.append(Row((Entry(MODELS[name].title), *(_change(c) for c in found.values()))))
        data += [_comparison_data(name, group, c) for group, c in found.items() if c]
    return Table(
        key="against-cached",
        title="Each model against the baseline (A) with salience and a cache",
        caption="Change of the perplexity, seeds averaged, and the 95 % interval of a paired "
        "bootstrap over whole documents.",
        header=("Model", *_COLUMNS),
        words=1,
        rows=tuple(rows),
        data=tuple(data),
    )


def _beside_peers(results: StudyResults) -> dict[str, Sequence[Run | PeerRun]]:
    """The runs of the peers, and of the paper's models that they stand beside."""
    leading: dict[str, Sequence[Run | PeerRun]] = {
        name: found.runs for name, found in results.models.items() if MODELS[name].leads
    }
    return leading | results.peers


def _group_sums(
    runs: Mapping[str, Sequence[Run | PeerRun]],
) -> dict[str, dict[str, DocumentSums]]:
    """By model, the sums of each token group, a row a seed."""
    return {
        name: {group: stacked([run.groups[group] for run in found]) for group in PAPER_GROUPS}
        for name, found in runs.items()
    }


def table_4(results: StudyResults) -> Table:
    """Mean quantile of every model, beside the paper's, chance, accuracy and reciprocal rank."""
    means = [m.cloze("mean_quantile").mean() for m in results.models.values()]
    best = f"{max(means):.3f}" if len(means) > 1 else ""
    rows, data, kind = [_chance(results)], [], ""
    for model in results.rows:
        found, paper = results.models.get(model.name), PAPER_TABLE_4.get(model.name)
        entries = [Entry(model.title), Entry(model.detail)]
        row: dict[str, Scalar] = {"model": model.name, "seeds": len(found.runs) if found else 0}
        for column, digits in _CLOZE.items():
            values = found.cloze(column) if found else None
            text = plus_minus(values, digits)
            row[column], row[f"{column}_error"] = mean_error(values)
            if column == "mean_quantile":
                bold = bool(best) and text.split(" ")[0] == best
                entries.append(Entry(text, paper_value(paper, 3), bold))
            else:
                entries.append(Entry(text))
        entries.insert(3, _against(results, model.name, row))
        row["paper"] = paper.mean if paper else None
        row["paper_error"] = paper.error if paper else None
        rows.append(Row(tuple(entries), block=model.kind != kind))
        data.append(row)
        kind = model.kind
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
    baseline, found = results.models.get(BASELINE), results.models.get(name)
    comparison = None
    if baseline and found and name != BASELINE:
        comparison = compare(baseline.cloze_sums(), found.cloze_sums())
    row["difference"] = comparison.difference if comparison else None
    row["difference_low"], row["difference_high"] = (
        comparison.difference_interval if comparison else (None, None)
    )
    if comparison is None:
        return Entry("" if name == BASELINE else NONE)
    return Entry(signed(comparison.difference, 3), interval(comparison.difference_interval, 3))
