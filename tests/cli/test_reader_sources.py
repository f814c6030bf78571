"""The sources of texts of `dntm read`, `score`, `continue` and `fill`."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Capture, fails, run

NAMES = [["She", "met", "Ann"], ["Ann", "left", "Ann"]]
"""Sentences in which a name comes back."""


Rows = Callable[..., list[dict[str, str]]]


@pytest.fixture
def rows(capsys: Capture) -> Rows:
    """The table that `dntm score` prints."""

    def printed(*arguments: str | Path) -> list[dict[str, str]]:
        capsys.readouterr()
        run("score", *arguments)
        return list(csv.DictReader(io.StringIO(capsys.readouterr().out), delimiter="\t"))

    return printed


def standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def entities(rows: list[dict[str, str]]) -> dict[str, set[str]]:
    """The entities of each document."""
    found: dict[str, set[str]] = {row["document"]: set() for row in rows}
    for row in rows:
        found[row["document"]] |= {row["entity"]} - {"0"}
    return found


@pytest.mark.parametrize("name", ["story.v4_gold_conll", "ferry.conllu"])
def test_standard_input_is_recognized_and_read_like_a_file(
    model: Path, fixtures: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from_file = rows(fixtures / name, "--model", model)

    standard_input(monkeypatch, (fixtures / name).read_bytes())

    assert rows("-", "--model", model) == from_file
    assert any(entities(from_file).values())


def test_the_options_hold_for_standard_input_too(
    model: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    standard_input(monkeypatch, b"\xef\xbb\xbf[5] met [2] . [5] left .\n")
    inline = rows("-", "--entities", "inline", "--model", model)
    standard_input(monkeypatch, b"Ann met Ann\n\nShe left\n")
    parted = rows("-", "--documents", "blank-line", "--model", model)

    assert [row["entity"] for row in inline if row["entity"] != "0"] == ["1", "2", "1"]
    assert {row["document"] for row in inline} == {"stdin"}
    assert entities(parted) == {"stdin:1": {"1"}, "stdin:3": set()}
    for text, option, problem in (
        (b"She left .", ("--entities", "chains"), "stdin is plain text and has no chains"),
        (b"She left .", ("--input-format", "conll2012"), "stdin, line 1: a word outside any"),
        (b"\xff", (), "stdin, line 1: byte 0xff at column 1"),
        (b"", (), "stdin: an empty file"),
    ):
        standard_input(monkeypatch, text)
        assert problem in fails(capsys, "read", "-", "--model", model, *option)


def test_a_file_is_one_decision_whether_chains_count_or_names(
    model: Path, tmp_path: Path, rows: Rows
) -> None:
    chained = {"doc_key": "chained", "sentences": NAMES, "clusters": [[[0, 0], [3, 3]]]}
    bare = {"doc_key": "bare", "sentences": NAMES, "clusters": []}
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(d)}\n" for d in (chained, bare)))
    (tmp_path / "b.txt").write_text(". ".join(" ".join(words) for words in NAMES))
    words = "".join(f"{n}\t{w}" + "\t_" * 8 + "\n" for n, w in enumerate(NAMES[1], start=1))
    (tmp_path / "c.conllu").write_text(f"# newdoc id = treebank\n{words}\n")

    found = entities(rows(*(tmp_path / name for name in ("a.jsonl", "b.txt")), "--model", model))
    treebank = entities(rows(tmp_path / "c.conllu", "--model", model))

    assert found == {"chained": {"1"}, "bare": set(), "b": {"1"}}
    assert treebank == {"treebank": {"1"}}


def test_where_the_format_is_not_clear_the_error_names_the_option(
    model: Path, fixtures: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "notes.md").write_text("She left.")

    several = fails(capsys, "score", fixtures, "--model", model)
    none = fails(capsys, "score", tmp_path, "--model", model)

    assert "(conll2012, conllu): pass --input-format" in several
    assert "*.txt: pass --input-format" in none


def test_a_document_has_the_same_name_alone_in_a_list_and_in_a_folder(
    model: Path, tmp_path: Path, rows: Rows
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("She met Ann.", encoding="utf-8")
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]

    sources = (paths[:1], paths, [tmp_path])
    alone, listed, folder = (rows(*source, "--model", model) for source in sources)

    assert alone == listed[: len(alone)]
    assert listed == folder
    assert {row["document"] for row in folder} == {"a", "b"}


def test_empty_files_are_skipped_with_a_warning(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "full.txt").write_text("She met Ann.", encoding="utf-8")
    for name in ("empty.txt", "blank.txt"):
        (tmp_path / name).write_text("" if name == "empty.txt" else " \n\n", encoding="utf-8")

    run("score", tmp_path, "--model", model)

    printed = capsys.readouterr()
    assert "full\t" in printed.out
    assert printed.err.count("skipped: ") == 2
    assert "empty.txt: an empty file" in printed.err
    assert "every file is empty" in fails(capsys, "score", tmp_path / "empty.txt", "--model", model)
    command = ("score", "--model", model, tmp_path / "empty.txt", tmp_path / "no.txt")
    assert "was skipped" in fails(capsys, *command, "--on-error", "skip")
    assert "--entities is given twice" in fails(
        capsys, *command, "--entities", "names", "--entities", "none"
    )
    assert "expected .tsv" in fails(capsys, *command[:-1], "--output", tmp_path / "o.tsv.gz")


def test_files_with_the_same_name_are_told_apart(model: Path, rows: Rows, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text("Ann left.")

    table = rows(*(tmp_path / folder / "a.txt" for folder in ("one", "two")), "--model", model)

    assert {row["document"] for row in table} == {f"{tmp_path}/one/a", f"{tmp_path}/two/a"}


def test_score_has_options_for_words_and_single_precision(
    model: Path, tmp_path: Path, rows: Rows
) -> None:
    text = "Dr. Ann Vask sat. She met Vask's zork!"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    arguments = (tmp_path / "a.txt", "--model", model, "--words")

    double, single = rows(*arguments), rows(*arguments, "--precision", "single")

    assert [row["word"] for row in double] == text.split()
    assert [float(row["surprisal"]) for row in double] == pytest.approx(
        [float(row["surprisal"]) for row in single], abs=1e-3
    )


def test_a_long_text_has_the_rows_of_a_short_one(
    model: Path, tmp_path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("She met Ann.\n\nAnn kept a zork. " * 40, encoding="utf-8")
    whole = rows(path, "--model", model, "--words")

    monkeypatch.setattr("dntm.cli.texts._LONG", 0)

    assert rows(path, "--model", model, "--words") == whole


def test_any_corpus_is_evaluated_with_any_model(
    model: Path, fixtures: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_text("She met Ann . Bo left . Ann met Bo .")
    (tmp_path / "corpus" / "b.txt").write_text("")
    capsys.readouterr()

    run("evaluate", model, tmp_path / "corpus", "--output-dir", tmp_path / "records")
    printed, noted = capsys.readouterr()
    assert "b.txt: an empty file" in noted
    run("evaluate", "default", fixtures / "ferry.conllu")
    run("evaluate", model, tmp_path / "corpus", "--cloze", "--no-records")

    assert "tokens" in printed
    [records] = (tmp_path / "records").iterdir()
    assert len(records.read_text().splitlines()) == 1 + 14
    assert "cloze test on" in capsys.readouterr().out
    assert not list(model.glob("records*"))


def test_a_file_after_the_values_of_an_option_is_a_file(
    model: Path, tmp_path: Path, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("She met Ann and [1] and zork.", encoding="utf-8")

    found = rows("--entities", "names", "inline", path, "--model", model)

    assert entities(found) == {"a": {"1", "2"}}
    standard_input(monkeypatch, b"She met Ann.")
    assert entities(rows("--model", model, "--entities", "none", "-")) == {"stdin": set()}


def test_static_default_is_the_baseline_of_the_bundled_model(tmp_path: Path, rows: Rows) -> None:
    path = tmp_path / "a.txt"
    path.write_text("She met Ann. Ann left.", encoding="utf-8")

    assert rows(path, "--static", "default") == rows(path)


def test_evaluate_skips_malformed_documents_on_request(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    document = {"sentences": NAMES, "clusters": [[[2, 2], [3, 3]]]}
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(document)}\n{{}}\n")

    assert "a.jsonl, line 2" in fails(capsys, "evaluate", model, path, "--no-records")
    run("evaluate", model, path, "--no-records", "--on-error", "skip")

    printed = capsys.readouterr()
    assert f"warning: {path}, line 2: " in printed.err
    assert f"perplexity on {path}" in printed.out
