"""`dntm score --text-column`: tables of stimuli in, tables of surprisals out."""

import csv
import io
import json
from pathlib import Path

import pytest

from dntm.reader.reader import Reader
from dntm.reader.reading import WORD_COLUMNS
from tests.cli.running import Capture, fails, run

STIMULI = [
    ("1", "old, known", "The old man met Ann. Ann [[sat down]]."),
    ("1", "new", "The old man met Ann. Bo [[sat down]]."),
    ("2", "new", 'She left "home".'),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "stimuli.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([("item", "condition", "sentence"), *STIMULI])
    return path


def read(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def test_one_row_per_word_has_the_columns_of_its_stimulus(
    model: Path, table: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.csv"

    run("score", table, "--text-column", "sentence", "--output", output, "--model", model)

    rows, reader = read(output.read_text()), Reader.from_pretrained(model)
    assert list(rows[0]) == ["item", "condition", "stimulus", "region", *WORD_COLUMNS[1:]]
    plain = [text.replace("[[", "").replace("]]", "") for *_, text in STIMULI]
    expected = [
        (item, condition, str(number), word, float(str(surprisal)))
        for number, ((item, condition, _), text) in enumerate(zip(STIMULI, plain, strict=True), 1)
        for row in reader.read(text).word_rows()
        for word, surprisal in [[row[WORD_COLUMNS.index(n)] for n in ("word", "surprisal")]]
    ]
    for found, wanted in zip(rows, expected, strict=True):
        names = ("item", "condition", "stimulus", "word")
        assert tuple(found[name] for name in names) == wanted[:4]
        assert float(found["surprisal"]) == pytest.approx(wanted[4], abs=1e-6)
    assert [row["word"] for row in rows if row["region"] == "1"] == ["sat", "down."] * 2


def test_a_summary_has_one_row_per_stimulus_and_empty_cells_for_missing_regions(
    model: Path, table: Path, capsys: Capture
) -> None:
    run("score", table, "--text-column", "sentence", "--model", model)
    words = read(capsys.readouterr().out, "\t")
    command = ("score", table, "--text-column", "sentence", "--summary", "--model", model)
    run(*command, "--format", "csv")
    rows = read(capsys.readouterr().out)
    run(*command, "--format", "jsonl")
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [(r["item"], r["condition"], r["sentence"]) for r in rows] == STIMULI
    region = [float(w["surprisal"]) for w in words if w["stimulus"] == "1" and w["region"] == "1"]
    assert float(rows[0]["region_1_surprisal"]) == pytest.approx(sum(region), abs=1e-5)
    assert rows[2]["region_1_surprisal"] == ""
    assert objects[2]["region_1_surprisal"] is None
    assert float(rows[2]["surprisal"]) == pytest.approx(objects[2]["surprisal"], abs=1e-6)


def test_minimal_pairs_have_differences_and_an_accuracy_for_each_group(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    pairs = [("a", "The man sat.", "Man the sat."), ("b", "She left.", "Left she she."),
             ("a", "He kept Ann.", "He river river Ann, a."),
             ("equal", "The man sat.", "The man sat.")]  # fmt: skip
    objects = [{"term": t, "n": 0.1, "good": g, "bad": b} for t, g, b in pairs]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(o) + "\n" for o in objects))

    # The file after the columns is not a column
    run("score", "--text-column", "good", "bad", path, "--group-by", "term", "--model", model,
        "--format", "csv")  # fmt: skip

    printed = capsys.readouterr()
    rows, reader = read(printed.out), Reader.from_pretrained(model)
    right: dict[str, list[bool]] = {"a": [], "b": [], "equal": [], "all": []}
    for row, (term, good, bad) in zip(rows, pairs, strict=True):
        first, second = reader.read(good).surprisal, reader.read(bad).surprisal
        assert float(row["good_surprisal"]) == pytest.approx(first, abs=1e-6)
        assert float(row["bad_surprisal"]) == pytest.approx(second, abs=1e-6)
        assert float(row["surprisal_difference"]) == pytest.approx(second - first, abs=1e-6)
        assert row["n"] == "0.1"
        right[term].append(second > first)
        right["all"].append(second > first)
    lines = [line.split()[:3] for line in printed.err.splitlines() if line.split()[0] in right]
    assert lines == [[k, str(len(v)), f"{sum(v) / len(v):.3f}"] for k, v in right.items()]
    assert ["equal", "1", *["0.000"] * 6] in [line.split() for line in printed.err.splitlines()]


def test_a_column_of_the_table_keeps_its_name_and_ours_gets_a_prefix(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "t.tsv").write_text(
        "surprisal\tdntm_static_surprisal\tstatic_surprisal\ttext\thigh2\n"
        "mine\t1\t2\tShe left.\tShe\n"
    )

    run("score", "--entities", "none", "--text-column", "text", tmp_path / "t.tsv", "--summary",
        "--model", model, "--region-column", "high2")  # fmt: skip

    [row] = read(capsys.readouterr().out, "\t")
    assert row["surprisal"] == "mine"
    assert row["dntm_static_surprisal"] == "1"
    assert float(row["dntm_dntm_static_surprisal"]) > 0
    assert float(row["dntm_surprisal"]) > float(row["region_high2_surprisal"]) > 0


def test_malformed_rows_stop_before_anything_is_scored_or_are_skipped_and_listed(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "t.csv"
    rows = b"1,She left.\n2,\n3,caf\xe9\n4,a,b\n5,He [[sat\n6,\xe2\x80\x8b\n7,He sat.\n"
    path.write_bytes(b"item,text\n" + rows)
    command = ("score", path, "--text-column", "text", "--summary", "--model", model)

    error = fails(capsys, *command)
    run(*command, "--on-error", "skip")

    assert f"{path}, line 3: column 'text' is '', expected a text" in error
    printed = capsys.readouterr()
    assert [row["stimulus"] for row in read(printed.out, "\t")] == ["1", "7"]
    assert [f"line {n}:" in printed.err for n in range(2, 9)] == [False, *[True] * 5, False]


def test_a_table_is_never_read_as_prose(
    model: Path, table: Path, tmp_path: Path, capsys: Capture
) -> None:
    objects = tmp_path / "t.jsonl"
    objects.write_text('{"item": 1, "text": "She left."}\n')

    for command in ("score", "read", "continue"):
        assert "--text-column" in fails(capsys, command, table, "--model", model)
    assert "--text-column" in fails(capsys, "score", objects, "--model", model)
    assert "--text-column" in fails(capsys, "data", "build", table, "--output-dir", tmp_path / "d")
    assert "are for tables" in fails(capsys, "score", table, "--summary", "--model", model)
    three = ("--text-column", "item", "item", "sentence")
    assert "one or two text columns" in fails(capsys, "score", table, *three, "--model", model)
    one = ("score", table, "--text-column", "sentence", "--model", model)
    assert "--group-by item needs two" in fails(capsys, *one, "--group-by", "item")
    before = table.read_text()
    assert "is an input file" in fails(capsys, *one, "--output", table)
    assert table.read_text() == before
    run("score", table, "--input-format", "text", "--model", model)
    assert "item" in capsys.readouterr().out


def test_the_example_of_the_docs_is_one_command(tmp_path: Path, capsys: Capture) -> None:
    example = Path(__file__).parents[2] / "docs" / "stimuli.csv"

    run("score", example, "--text-column", "sentence", "--region-names", "regions", "--summary",
        "--output", tmp_path / "sums.csv")  # fmt: skip

    rows = read((tmp_path / "sums.csv").read_text())
    conditions: dict[str, set[str]] = {}
    for row in rows:
        conditions.setdefault(row["item"], set()).add(row["condition"])
        assert float(row["region_critical_surprisal"]) > 0
    assert len(conditions) == 20
    assert all(len(found) == 2 for found in conditions.values())


@pytest.mark.parametrize(
    "order", ["{0} {1}", "{1} {0}", "--summary {0} {1}", "--unit bits {0} {1}", "{1} --words {0}"]
)
def test_a_column_may_have_the_name_of_a_file(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad").touch()
    Path("p.csv").write_text("good,bad\nThe man sat.,She sat.\n")
    words = order.format("p.csv", "--text-column good bad").split()

    run("score", *words, "--model", model, "--output", "out.tsv")

    [row] = read(Path("out.tsv").read_text(), "\t")
    assert float(row["bad_surprisal"]) > 0
