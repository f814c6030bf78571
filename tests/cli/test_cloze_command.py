import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dntm.cli.main import main
from dntm.evaluation.cloze import ClozeRecords

SMALL = (
    *("--model.embedding-dim", "8", "--model.hidden-dim", "8", "--model.encoder-dim", "8"),
    *("--model.context-dim", "8", "--training.epochs", "1"),
)


def run(*arguments: str | Path) -> None:
    main([str(argument) for argument in arguments])


def build(folder: Path, clusters: list[list[list[int]]]) -> Path:
    """A dataset of stories in which Ann and Bo come back, as far as they have a chain."""
    folder.mkdir()
    sentences = [["Ann", "met", "Bo"], ["she", "left"], ["he", "saw", "her"]]
    for split, count in (("train", 4), ("dev", 2), ("test", 2)):
        lines = [
            json.dumps({"doc_key": f"{split}{i}", "sentences": sentences, "clusters": clusters})
            for i in range(count)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    run("data", "build", folder, "--output-dir", folder / "dataset", "--max-entities", "3")
    return folder / "dataset"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cloze")
    dataset = build(folder / "corpus", [[[0, 0], [3, 3], [7, 7]], [[2, 2], [5, 5]]])
    run("train", "--dataset", dataset, "--output-dir", folder / "run", *SMALL)
    return folder / "run"


def test_cloze_prints_the_table_and_writes_a_record_for_every_gap(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("cloze", trained, trained / "best", "--dataset", trained.parent / "corpus" / "dataset")

    lines = capsys.readouterr().out.splitlines()
    records = ClozeRecords.read(trained / "cloze-test.csv")
    assert records.document == ["test0"] * 3 + ["test1"] * 3
    assert records.entity.tolist() == [1, 2, 1] * 2
    assert lines[0].startswith("cloze test on test")
    assert [line.split()[-1] for line in lines[1:4]] == ["6", "6", "6"]
    assert lines[3].split() == ["chance", "0.500", "0.500", "0.750", "0.500", "6"]
    assert (trained / "best" / "cloze-test.csv").is_file()


def test_json_is_all_that_is_printed_where_asked(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("cloze", trained, "--split", "dev", "--json", "--no-records")

    printed = json.loads(capsys.readouterr().out)
    assert printed["split"] == "dev"
    assert printed["runs"][str(trained)]["gaps"] == 6
    assert printed["records"] == []
    assert not (trained / "cloze-dev.csv").exists()


def test_another_kind_of_gap_or_dataset_never_replaces_the_runs_own_records(
    trained: Path, tmp_path: Path
) -> None:
    run("cloze", trained)
    run("evaluate", trained)
    own = {n: (trained / n).read_bytes() for n in ("cloze-test.csv", "records-test.csv")}
    copy = shutil.copytree(trained.parent / "corpus" / "dataset", tmp_path / "copy")

    run("cloze", trained, "--same-sentence")
    run("cloze", trained, "--dataset", copy)
    run("evaluate", trained, "--dataset", copy)

    assert {name: (trained / name).read_bytes() for name in own} == own
    written = {path.name for path in trained.glob("*.csv")}
    assert {"cloze-test-same-sentence.csv", "cloze-test-copy.csv"} < written
    assert "records-test-copy.csv" in written


def test_what_cannot_be_done_is_said_and_nothing_written(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = build(tmp_path / "alone", [[[0, 0], [3, 3], [7, 7]]])
    other = build(tmp_path / "other", [[[0, 0], [7, 7]], [[2, 2], [5, 5]]])
    lone_run = tmp_path / "run"
    run("train", "--dataset", alone, "--output-dir", lone_run, *SMALL)

    def fails(*arguments: str | Path) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            run("cloze", *arguments)
        assert exit_.value.code == 1
        return capsys.readouterr().err

    assert f"{alone} has no gap in its test split" in fails(lone_run)
    assert "trained with another vocabulary" in fails(trained, "--dataset", other)
    assert "no run given" in fails()
    assert "pass --dataset" in fails(tmp_path / "nowhere")
    assert not (lone_run / "cloze-test.csv").exists()


def test_help_needs_no_torch() -> None:
    code = (
        "import sys; from dntm.cli.main import main\n"
        "try: main([*sys.argv[1:], '--help'])\n"
        "except SystemExit: sys.exit('torch' in sys.modules)"
    )

    for command in (["cloze"], ["benchmark", "cloze"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "--split" in done.stdout


def test_the_benchmark_says_how_long_the_split_takes(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = trained.parent / "corpus" / "dataset"
    sizes = [option for option in SMALL if not option.startswith("--training")][:-1]

    run("benchmark", "cloze", "--dataset", dataset, "--json", tmp_path / "speed.json", *sizes)

    numbers = json.loads((tmp_path / "speed.json").read_text())
    assert "6 gaps, 12 candidates" in capsys.readouterr().out
    assert (numbers["gaps"], numbers["candidates"]) == (6, 12)
    assert numbers["seconds"] > 0
    assert numbers["naive_seconds"] > 0
