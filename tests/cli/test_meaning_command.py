"""`dntm evaluate-meaning` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.cli.running import Capture, fails, run
from tests.reader.small import checkpoint

TEXT = (
    "The old man met Ann at the river. Ann kept a table. The old man left the river. "
    "He rowed home. She sat down at the table.\n\n"
    "The man kept a zork at home. The zork left the table, and the man left home.\n\n"
) * 3


@pytest.fixture(autouse=True)
def few_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dntm.model.extensions.naming.FREQUENT", 4)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "text": TEXT,
        "trials": "1\tthe ___ sat down @@ the old ___\tman,river,zork\t5,2,1\n",
        "definitions": "river\tthe man rowed home on the ___\nzork\tthe ___\n",
        "pairs": "# who said what\nfirst,second,similarity\nman,river,2\nold,man,7\nman,zork,1\n",
    }
    paths = {}
    for name, text in texts.items():
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_text(text)
    return paths


WAYS = ["model", "context encoder", "bag of words", "a la carte"]


def test_all_kinds_of_tests_are_told_and_written(
    model: Path,
    files: dict[str, Path],
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dntm.cli.evaluate_meaning.FIT_WORDS", 40)
    given = [argument for name, path in files.items() for argument in (f"--{name}", path)]
    target = tmp_path / "numbers.json"

    run("evaluate-meaning", model, *given, "--fit", files["text"], "--json", target)

    printed = capsys.readouterr().out
    numbers = json.loads(target.read_text())
    hidden = numbers["hidden_words"]
    assert list(hidden["ranks"]) == ["1-1000", "1-1000, never hidden in training"]
    assert list(hidden["ranks"]["1-1000"]) == list(numbers["definitions"]["ranks"]) == WAYS
    assert list(hidden["ranks"]["1-1000"]["model"]) == ["1", "2", "4", "6"]
    assert list(numbers["trials"]["correlations"]) == WAYS
    assert numbers["trials"]["unknown_probes"] == pytest.approx(1 / 3)
    assert numbers["definitions"]["unknown"] == 1
    assert (numbers["pairs"]["pairs"], numbers["pairs"]["left_out"]) == (2, 1)
    assert "words 1-1000" in printed
    assert "33.3% of the probes are not in the vocabulary" in printed
    assert "left out: 1 not among them" in printed
    assert "2 word pairs, 1 left out" in printed


def test_each_kind_stands_alone_and_without_training_text_there_is_no_map(
    model: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    for name, path in files.items():
        run("evaluate-meaning", model, f"--{name}", path, "--json", tmp_path / "numbers.json")

        numbers = json.loads((tmp_path / "numbers.json").read_text())
        found = numbers["hidden_words" if name == "text" else name]
        told = found.get("ranks") or found.get("correlations") or {}
        assert len(numbers) == 3
        assert name == "pairs" or list(told.get("1-1000", told)) == WAYS[:3]


def test_the_same_seed_gives_the_same_numbers_and_calibration_is_printed(
    tmp_path: Path, files: dict[str, Path], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dntm.evaluation.meaning.BANDS", ((1, 2), (3, 99)))
    named = checkpoint(tmp_path / "named", extensions=("naming",))

    def numbers(*options: str) -> str:
        path = tmp_path / "numbers.json"
        run("evaluate-meaning", named, "--text", files["text"], "--json", path, *options)
        return path.read_text()

    assert numbers("--types", "2") == numbers("--types", "2")
    assert "calibration after 6 mentions" in capsys.readouterr().out
    assert numbers("--types", "2") != numbers("--types", "2", "--seed", "2")


def test_a_malformed_file_is_named_before_a_model_is_loaded(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "t.txt").write_text("1\tthe ___\tdog,cat\t1\n")

    error = fails(capsys, "evaluate-meaning", tmp_path, "--trials", tmp_path / "t.txt")

    assert "t.txt, line 1: 2 probes and 1 ratings, expected pairs" in error


def test_a_text_without_a_word_to_hide_is_an_error(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "a.txt").write_text("He sat down.\n")

    error = fails(capsys, "evaluate-meaning", model, "--text", tmp_path / "a.txt")

    assert "no word of the text can be hidden" in error
