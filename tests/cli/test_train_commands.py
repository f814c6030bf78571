import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import Records
from dntm.training.run_folder import RunFolder
from tests.cli.running import fails, run

SMALL = (
    *("--model.embedding-dim", "8", "--model.hidden-dim", "8", "--model.encoder-dim", "8"),
    *("--model.context-dim", "8", "--training.epochs", "1"),
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for split, count in (("train", 6), ("dev", 2), ("test", 2)):
        document = {
            "sentences": [["Ann", "met", "Bo"], ["she", "left"]],
            "clusters": [[[0, 0], [3, 3]]],
        }
        lines = [json.dumps({"doc_key": f"{split}{i}", **document}) for i in range(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    target = folder / "dataset"
    run("data", "build", folder, "--output-dir", target, "--max-entities", "3")
    return target


@pytest.fixture
def trained(dataset: Path, tmp_path: Path) -> Path:
    run("train", "--dataset", dataset, "--output-dir", tmp_path / "run", *SMALL)
    return tmp_path / "run"


def test_train_prints_the_token_groups_and_leaves_a_run_folder(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("train", "--dataset", dataset, "--output-dir", tmp_path / "run", *SMALL)

    printed = capsys.readouterr().out
    assert "perplexity on test" in printed
    assert "(2) reappearing" in printed
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"all_results.json", "best", "checkpoints", "config.yaml", "metrics.jsonl"}


def test_evaluate_writes_a_record_for_every_token(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("evaluate", trained, trained, "--split", "test")

    records = Records.read(trained / "records-test.csv")
    assert records.token[:8] == ["[1]", "met", "Bo", "<eos>", "[1]", "left", "<eos>", "[1]"]
    assert "perplexity on test" in capsys.readouterr().out


def test_the_sums_of_each_document_add_up_to_those_of_the_split(
    trained: Path, tmp_path: Path
) -> None:
    run("evaluate", trained, "--by-document", tmp_path / "sums.csv")

    records = Records.read(trained / "records-test.csv")
    with (tmp_path / "sums.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["document"] for row in rows] == sorted(set(records.document))
    for group, score in score_groups(records).items():
        assert sum(int(row[f"{group}_tokens"]) for row in rows) == score.tokens
        assert sum(float(row[f"{group}_nats"]) for row in rows) == pytest.approx(score.nats)


def test_a_runs_own_settings_train_it_again_and_options_override_them(
    trained: Path, tmp_path: Path
) -> None:
    again = ("train", "--config", trained / "config.yaml", "--output-dir")

    run(*again, tmp_path / "same")
    run(*again, tmp_path / "other", "--seed", "2", "--model.variant", "baseline")

    same, other = (RunFolder(tmp_path / name).read_results() for name in ("same", "other"))
    assert same == RunFolder(trained).read_results()
    assert other["parameters"]["total"] < same["parameters"]["total"]


def test_unknown_options_and_settings_are_named(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("training:\n  epoch: 3\n")
    start = ("train", "--dataset", dataset, "--output-dir", tmp_path / "x")

    assert "--epochen" in fails(capsys, *start, "--epochen", "3")
    assert "unknown setting 'training.epoch'" in fails(capsys, *start, "--config", settings)
    assert "epochs is 0" in fails(capsys, *start, "--training.epochs", "0")
    assert not (tmp_path / "x").exists()


def test_a_dataset_with_an_entity_outside_the_vocabulary_is_refused(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in dataset.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "dev.jsonl").write_text('{"name": "x", "sentences": [[7]], "surfaces": []}\n')

    error = fails(capsys, "train", "--dataset", copy, "--output-dir", tmp_path / "x", *SMALL)

    assert "dev.jsonl, line 1: entity 7 has no row in the vocabulary, expected 1 to 3" in error


def test_a_checkpoint_that_is_truncated_or_of_another_shape_is_named(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, settings = trained / "best" / "model.safetensors", trained / "best" / "config.json"
    whole = weights.read_bytes()

    weights.write_bytes(whole[:-10])
    truncated = fails(capsys, "evaluate", trained)
    weights.write_bytes(whole)
    text = settings.read_text()
    settings.write_text(
        text.replace('"hidden_dim": 8', '"hidden_dim": 16').replace("true", "false")
    )
    other = fails(capsys, "evaluate", trained)

    assert f"{weights} cannot be read" in truncated
    assert str(weights) in other


FULL_DISK = """
import resource, signal, sys
from dntm.cli.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
main(sys.argv[1:])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no file size limits on this system")
def test_a_full_disk_while_saving_is_one_sentence_and_loses_nothing(
    trained: Path, dataset: Path, tmp_path: Path
) -> None:
    command = ["train", "--dataset", str(dataset), "--output-dir", str(tmp_path / "run"), *SMALL]
    for path in (trained / "checkpoints").iterdir():
        (path / "state.json").write_text(
            (path / "state.json").read_text().replace('"epoch": 1', '"epoch": 0')
        )
    before = {p: p.read_bytes() for p in trained.rglob("*") if p.is_file()}

    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, *command, "--resume"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr.splitlines()[-1]
    assert {p: p.read_bytes() for p in trained.rglob("*") if p.is_file()} == before
