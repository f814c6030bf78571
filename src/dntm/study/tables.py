"""Tables 1 to 4 and the table of baselines, with the paper's numbers; formatting of numbers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from dntm.corpus.dataset import SplitStatistics
from dntm.evaluation.groups import PAPER_GROUPS, Group
from dntm.evaluation.records import Floats
from dntm.evaluation.uncertainty import mean_and_error
from dntm.study.config import PAPER_TABLE_1, PAPER_TABLE_3, PAPER_TABLE_4, TABLE_1_ROWS, StudyModel
from dntm.study.results import CLOZE_TEST, Data, Scalar, StudyResults

NONE = "–"
BASELINE = "A"
"""The model that all others are compared with."""
Numbers = dict[str, float | None]
"""The numbers of one row by the columns of its CSV file; None for what is not known."""
_CLOZE = ("mean_quantile", "accuracy", "reciprocal_rank")
_GROUP_COLUMNS = tuple(
    f"({number}) {Group(group).label.capitalize()}"
    for number, group in enumerate(PAPER_GROUPS, start=1)
)
_CAPTION = (
    "Perplexity on the test split, mean ± standard error over seeds; lower is better. Second line: "
    "change relative to A, with the 95 % interval of a paired bootstrap over documents."
)
_PAPER_LINE = "Last line: the paper, on OntoNotes."


@dataclass(frozen=True)
class Entry:
    """One cell of a table."""

    text: str
    notes: tuple[str, ...] = ()
    """Smaller lines below: the change, the paper's value."""
    bold: bool = False


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    entries: tuple[Entry, ...]
    starts_block: bool = False
    """Whether a rule separates it from the row above."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table to read, and its numbers for other programs."""

    key: str
    """Name of its CSV file, and anchor on the page."""
    title: str
    caption: str
    header: tuple[str, ...]
    text_columns: int
    """Number of columns on the left that hold text."""
    rows: tuple[Row, ...]
    data: Data = ()

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """Header, values and notes as lines of text."""
        lines = [self.header]
        for row in self.rows:
            lines.append(tuple(entry.text for entry in row.entries))
            notes = range(max(len(entry.notes) for entry in row.entries))
            lines += [tuple("".join(e.notes[i : i + 1]) for e in row.entries) for i in notes]
        return lines


def table_1(results: StudyResults) -> Table:
    """Statistics of the dataset, one column per split."""
    counts = {s: SplitStatistics(**results.dataset["counts"][s]) for s in PAPER_TABLE_1}
    rows: list[Row] = []
    data: list[dict[str, Scalar]] = []
    for number, label in enumerate(TABLE_1_ROWS):
        ours = {split: found.table_1()[number] for split, found in counts.items()}
        paper = {split: row[number] for split, row in PAPER_TABLE_1.items()}
        digits = 0 if number == 0 else 1
        entries = [Entry(f"{ours[s]:,.{digits}f}", (f"paper {paper[s]:,}",)) for s in ours]
        rows.append(Row((Entry(label), *entries)))
        data.append({"row": label, **ours, **{f"{s}_paper": value for s, value in paper.items()}})
    for label, name in (("Entity tokens", "entity_tokens"), ("Unknown words", "unknown_tokens")):
        shares = [100 * getattr(c, name) / max(c.tokens, 1) for c in counts.values()]
        rows.append(Row((Entry(label), *(Entry(f"{share:.1f} %") for share in shares))))
    tokens = [Entry(f"{found.tokens:,}") for found in counts.values()]
    rows.insert(len(TABLE_1_ROWS), Row((Entry("Tokens"), *tokens), starts_block=True))
    return Table(
        key="table-1",
        title="Table 1: the dataset",
        caption="Second line: the paper's value on OntoNotes.",
        header=("", "Train", "Dev", "Test"),
        text_columns=1,
        rows=tuple(rows),
        data=tuple(data),
    )


def table_2(results: StudyResults) -> Table:
    """A, and B, C and D with GRU-ReLU."""
    numbers = _perplexities(results, [m for m in results.paper_models if m.in_table_2])
    return Table(
        key="table-2",
        title="Table 2: perplexity by token group",
        caption=f"{_CAPTION} {_PAPER_LINE} B, C and D merge with GRU-ReLU. The best is bold.",
        header=("Model", *_GROUP_COLUMNS),
        text_columns=1,
        rows=_group_rows(numbers, lambda model: (Entry(model.title),)),
        data=_data(numbers),
    )


def table_3(results: StudyResults) -> Table:
    """All models with their parameters: B, C, D and finally A."""
    numbers = _perplexities(
        results, sorted(results.paper_models, key=lambda model: model.letter == BASELINE)
    )

    def head(model: StudyModel) -> tuple[Entry, ...]:
        paper, found = PAPER_TABLE_3[model.name], numbers[model]
        size, trained = (_millions(found[name]) for name in ("parameters", "finetuned"))
        notes = (f"paper {paper['parameters']}M ({paper['finetuned']}M)",)
        parameters = Entry(NONE if size == NONE else f"{size} ({trained})", notes)
        return Entry(model.title), Entry(model.detail), parameters

    rows: list[Row] = []
    for _, same_letter in groupby(numbers, key=lambda model: model.letter):
        block = {model: numbers[model] for model in same_letter}
        rows += _group_rows(block, head, starts_block=next(iter(block)))
    return Table(
        key="table-3",
        title="Table 3: perplexity by merging function",
        caption=f"{_CAPTION} {_PAPER_LINE} Parameters: all (trained). The best of each block is "
        "bold.",
        header=("Model", "Merging", "Parameters", *_GROUP_COLUMNS),
        text_columns=2,
        rows=tuple(rows),
        data=_data(numbers),
    )


def baselines_table(results: StudyResults) -> Table:
    """The baselines beyond the paper, next to the paper's models."""
    paper = [m for m in results.paper_models if m.in_table_2 and m.name in results.models]
    numbers = _perplexities(results, [*paper, *results.baselines])
    rows = _group_rows(
        numbers,
        lambda model: (Entry(model.title), Entry(_millions(numbers[model]["parameters"]))),
        starts_block=results.baselines[0],
        with_paper=False,
    )
    return Table(
        key="baselines",
        title="Baselines: perplexity by token group",
        caption=f"{_CAPTION} All models have the same vocabulary and read the same documents. A "
        "cache is tuned on the dev split. The parameters of the 5-gram model are its n-grams. The "
        "best is bold.",
        header=("Model", "Parameters", *_GROUP_COLUMNS),
        text_columns=1,
        rows=rows,
        data=_data(numbers),
    )


def table_4(results: StudyResults) -> Table:
    """The cloze test: mean quantile, accuracy and mean reciprocal rank."""
    numbers = {model: _cloze_numbers(results, model) for model in results.paper_models}
    quantiles = [n["mean_quantile"] for n in numbers.values() if n["mean_quantile"] is not None]
    best = f"{max(quantiles):.3f}" if len(quantiles) > 1 else ""
    summary = results.runs[0].cloze_summary if results.runs else {}
    chance = [summary.get(f"chance_{name}") for name in _CLOZE]
    rows = [Row((Entry("Chance"), Entry(""), *(Entry(plus_minus(v, None, 3)) for v in chance)))]
    letter = ""
    for model, found in numbers.items():
        others = [plus_minus(found[name], found[f"{name}_error"], 3) for name in _CLOZE[1:]]
        entries = (_entry(found, "mean_quantile", 3, best, "difference"), *map(Entry, others))
        head = (Entry(model.title), Entry(model.detail))
        rows.append(Row((*head, *entries), starts_block=model.letter != letter))
        letter = model.letter
    return Table(
        key="table-4",
        title="Table 4: the cloze test",
        caption=f"Mean quantile of the true entity among the entities of earlier sentences, over "
        f"{summary.get('gaps', 0):,} gaps of the test split; higher is better, and ties "
        "count against the model. Second line: difference from A, with the 95 % interval of a "
        f"paired bootstrap over documents. {_PAPER_LINE}",
        header=("Model", "Merging", "Mean quantile", "Accuracy", "Mean reciprocal rank"),
        text_columns=2,
        rows=tuple(rows),
        data=_data(numbers),
    )


def _data(numbers: dict[StudyModel, Numbers]) -> Data:
    return tuple({"model": model.name, **found} for model, found in numbers.items())


def _perplexities(results: StudyResults, models: Sequence[StudyModel]) -> dict[StudyModel, Numbers]:
    """Parameters of each model, and for each token group its perplexity and the change from A."""
    rows = {}
    for model in models:
        found, paper = results.models.get(model.name), PAPER_TABLE_3.get(model.name, {})
        sizes = found.runs[0].parameters if found else {}
        row: Numbers = {
            "seeds": len(found.runs) if found else 0,
            "parameters": sizes.get("total"),
            "finetuned": sizes.get("finetuned"),
        }
        for group in PAPER_GROUPS:
            row |= _measured(group, found.values(group) if found else None)
            row |= _changed(f"{group}_ratio", results, model.name, group)
            row |= {f"{group}_paper": paper.get(group)}
            row |= {f"{group}_paper_error": paper.get(f"{group}_error")}
        rows[model] = row
    return rows


def _cloze_numbers(results: StudyResults, model: StudyModel) -> Numbers:
    found = results.models.get(model.name)
    row: Numbers = {"seeds": len(found.runs) if found else 0}
    for name in _CLOZE:
        row |= _measured(name, found.cloze(name) if found else None)
    row |= _changed("difference", results, model.name, CLOZE_TEST)
    mean, error = PAPER_TABLE_4[model.name]
    return row | {"mean_quantile_paper": mean, "mean_quantile_paper_error": error}


def _measured(name: str, values: Floats | None) -> Numbers:
    """Mean and standard error over seeds; None for what is undefined."""
    found = (math.nan, math.nan) if values is None else mean_and_error(values)
    mean, error = (None if np.isnan(number) else float(number) for number in found)
    return {name: mean, f"{name}_error": error}


def _changed(name: str, results: StudyResults, model: str, group: str) -> Numbers:
    """A model relative to A: the ratio for a token group, the difference for the cloze test."""
    baseline, other = results.models.get(BASELINE), results.models.get(model)
    values: tuple[float | None, ...] = (None, None, None)
    if baseline and other and model != BASELINE and (found := other.compared_with(baseline, group)):
        values = (found.ratio, *found.ratio_interval)
        if group == CLOZE_TEST:
            values = (found.difference, *found.difference_interval)
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _group_rows(
    numbers: dict[StudyModel, Numbers],
    head: Callable[[StudyModel], tuple[Entry, ...]],
    *,
    starts_block: StudyModel | None = None,
    with_paper: bool = True,
) -> tuple[Row, ...]:
    """The perplexity of each token group; the lowest as printed is bold, perhaps several times."""
    best = {}
    for group in PAPER_GROUPS:
        found = [value for row in numbers.values() if (value := row[group]) is not None]
        best[group] = f"{min(found):.1f}" if len(found) > 1 else ""
    rows = []
    for model, row in numbers.items():
        entries = (
            _entry(row, group, 1, best[group], f"{group}_ratio", with_paper=with_paper)
            for group in PAPER_GROUPS
        )
        rows.append(Row((*head(model), *entries), starts_block=model == starts_block))
    return tuple(rows)


def _entry(
    numbers: Numbers, name: str, digits: int, best: str, change: str, *, with_paper: bool = True
) -> Entry:
    paper = plus_minus(numbers[f"{name}_paper"], numbers[f"{name}_paper_error"], digits)
    value, low, high = (numbers[f"{change}{end}"] for end in ("", "_low", "_high"))
    notes = []
    if value is not None and low is not None and high is not None:
        notes.append(" ".join(change_texts(value, (low, high), ratio=change.endswith("ratio"))))
    if with_paper and paper != NONE:
        notes.append(f"paper {paper}")
    text = plus_minus(numbers[name], numbers[f"{name}_error"], digits)
    return Entry(text, tuple(notes), bold=best != "" and text.split(" ")[0] == best)


def _millions(count: float | None) -> str:
    return NONE if count is None else f"{count / 1e6:.2f}M"


def plus_minus(mean: float | None, error: float | None, digits: int) -> str:
    """Mean ± standard error. An error that would round to zero has one more digit."""
    if mean is None or math.isnan(mean):
        return NONE
    if error is None:
        return f"{mean:.{digits}f}"
    text, longer = (f"{error:.{n}f}" for n in (digits, digits + 1))
    return f"{mean:.{digits}f} ± {longer if float(longer) and not float(text) else text}"


def signed(value: float, digits: int) -> str:
    """A number with its sign; zero has none."""
    text = f"{abs(value):.{digits}f}"
    if not float(text):
        return text
    return ("+" if value > 0 else "−") + text


def percent(ratio: float) -> str:
    """A ratio as a change: 0.98 is −2.0 %."""
    return f"{signed(100 * (ratio - 1), 1)} %"


def change_texts(value: float, ends: tuple[float, float], *, ratio: bool) -> tuple[str, str]:
    """A difference and its interval; ratios as changes in percent."""
    if not ratio:
        return signed(value, 3), f"[{signed(ends[0], 3)}, {signed(ends[1], 3)}]"
    low, high = (signed(100 * (end - 1), 1) for end in ends)
    return percent(value), f"[{low}, {high}]"
