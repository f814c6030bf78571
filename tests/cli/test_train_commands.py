import csv
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import dntm
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import Records
from dntm.training import run_folder
from dntm.training.run_folder import RunFolder
from tests.cli.running import SMALL, Capture, fails, run, stories


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sentences = [["Ann", "met", "Bo"], ["she", "left"]]
    return stories(tmp_path_factory.mktemp("corpus"), sentences, [[[0, 0], [3, 3]]])


@pytest.fixture
def trained(dataset: Path, tmp_path: Path) -> Path:
    run("train", "--dataset", dataset, "--output-dir", tmp_path / "run", *SMALL)
    return tmp_path / "run"


def edit_state(path: Path, before: str, after: str) -> None:
    """Replace text in state.json and give it a valid checksum."""
    numbers = json.loads(path.read_text().replace(before, after))
    del numbers["checksum"]
    path.write_text(json.dumps({"checksum": run_folder._checksum(numbers), **numbers}))


def test_train_prints_the_token_groups_of_dev_and_leaves_a_run_folder(
    dataset: Path, tmp_path: Path, capsys: Capture
) -> None:
    run("train", "--dataset", dataset, "--output-dir", tmp_path / "run", *SMALL)

    printed = capsys.readouterr().out
    assert "perplexity on dev" in printed
    assert "test" not in printed.replace(str(tmp_path), "")
    assert "(2) reappearing" in printed
    names = {path.name for path in (tmp_path / "run").glob("[!.]*")}
    assert names == {"all_results.json", "best", "checkpoints", "config.yaml", "metrics.jsonl"}


def test_evaluate_writes_a_record_for_every_token(trained: Path, capsys: Capture) -> None:
    run("evaluate", trained, trained, "--split", "test")

    records = Records.read(trained / "records-test.csv")
    assert records.token[:8] == ["[1]", "met", "Bo", "<eos>", "[1]", "left", "<eos>", "[1]"]
    assert "perplexity on test" in capsys.readouterr().out


def test_the_sums_of_each_document_add_up_to_those_of_the_split(
    trained: Path, tmp_path: Path
) -> None:
    run("evaluate", trained, "--by-document", tmp_path / "sums.csv")

    records = Records.read(trained / "records-dev.csv")
    with (tmp_path / "sums.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["document"] for row in rows] == sorted(set(records.document))
    for group, score in score_groups(records).items():
        assert sum(int(row[f"{group}_tokens"]) for row in rows) == score["tokens"]
        assert sum(float(row[f"{group}_nats"]) for row in rows) == pytest.approx(score["nats"])


def test_rows_are_compared_with_one_of_them_seeds_together(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    again = ("train", "--config", trained / "config.yaml", "--training.learning-rate", ".05")
    for seed in (2, 3):
        run(*again, "--output-dir", tmp_path / f"a-{seed}", "--seed", str(seed))
    models = (trained, tmp_path / "a-2", tmp_path / "a-3")
    capsys.readouterr()

    run("evaluate", *models, "--against", tmp_path / "a")

    nats = {m: -Records.read(m / "records-dev.csv").log_probability for m in models}
    d, *a = (float(np.exp(values.mean())) for values in nats.values())
    _, _, changes = capsys.readouterr().out.partition("against ")
    change = 100 * (d / np.mean(a) - 1)
    assert abs(change) > 1
    assert f"{change:+.1f} % [" in changes.splitlines()[1]
    with pytest.raises(SystemExit):
        run("evaluate", trained, "--against", "runs/other")
    assert 'against "runs/other", expected one of' in capsys.readouterr().err


def test_a_runs_own_settings_train_it_again_and_options_override_them(
    trained: Path, tmp_path: Path
) -> None:
    again = ("train", "--config", trained / "config.yaml", "--output-dir")

    run(*again, tmp_path / "same")
    run(*again, tmp_path / "other", "--seed", "2", "--model.variant", "baseline")

    same, other = (RunFolder(tmp_path / name).read_results() for name in ("same", "other"))
    assert same == RunFolder(trained).read_results()
    assert other["parameters"]["total"] < same["parameters"]["total"]


def test_a_run_resumes_with_nothing_but_its_folder(
    dataset: Path, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "run"
    other = (*SMALL, "--seed", "3", "--model.variant", "C", "--model.merging=max")
    run("train", "--dataset", dataset, "--output-dir", folder, *other)
    results = RunFolder(folder).read_results()
    RunFolder(folder).results.unlink()

    run("train", "--output-dir", folder, "--resume")

    assert RunFolder(folder).read_results() == results
    assert "variant: output" in (folder / "config.yaml").read_text()
    different = fails(capsys, "train", "--output-dir", folder, "--resume", "--seed", "4")
    assert "seed: 3 / seed: 4" in different
    nothing = fails(capsys, "train", "--output-dir", tmp_path / "none", "--resume")
    assert "--dataset" in nothing
    assert not (tmp_path / "none").exists()


def test_python_trains_with_the_defaults_of_the_command(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = dict.fromkeys(("embedding_dim", "hidden_dim", "encoder_dim", "context_dim"), 8)

    run("train", "--dataset", dataset, "--output-dir", "by-command", *SMALL)
    found = dntm.train(
        dataset=str(dataset), model={"variant": "both", **sizes}, training={"epochs": 1}
    )

    assert found["run"] == "runs/dataset-both-1"
    weights = "best/model.safetensors"
    assert Path(found["run"], weights).read_bytes() == Path("by-command", weights).read_bytes()
    with pytest.raises(ValueError, match=r"dntm\.train: model.variant is 'x', expected one of"):
        dntm.train(dataset=dataset, model={"variant": "x"})
    with pytest.raises(ValueError, match="no dataset given"):
        dntm.train(recipe="quick")


def test_a_resumed_run_keeps_its_threads(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    command = ("train", "--dataset", dataset, "--output-dir", tmp_path / "run", *SMALL)

    run(*command, "--threads", "3")
    state = next((tmp_path / "run" / "checkpoints").rglob("state.json"))
    edit_state(state, '"threads": 1', '"threads": 5')
    run("train", "--output-dir", tmp_path / "run", "--resume")

    assert asked == [3, 5]


def test_an_error_about_a_run_without_weights_says_how_to_resume(
    trained: Path, capsys: Capture
) -> None:
    shutil.rmtree(trained / "best")

    error = fails(capsys, "evaluate", trained)

    assert f"dntm train --output-dir {trained} --resume" in error


def test_unknown_options_and_settings_are_named(
    dataset: Path, tmp_path: Path, capsys: Capture
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("training:\n  epoch: 3\n")
    start = ("train", "--dataset", dataset, "--output-dir", tmp_path / "x")

    assert "--epochen" in fails(capsys, *start, "--epochen", "3")
    assert "unknown setting 'training.epoch'" in fails(capsys, *start, "--config", settings)
    assert "epochs is 0" in fails(capsys, *start, "--training.epochs", "0")
    assert not (tmp_path / "x").exists()


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
        edit_state(path / "state.json", '"epoch": 1', '"epoch": 0')
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


@pytest.mark.parametrize("options", ["core transformer", "extensions entity-nlm"])
def test_baselines_are_trained_and_evaluated_like_ours(
    dataset: Path, tmp_path: Path, options: str
) -> None:
    name, value = options.split()
    baseline = ("--model.variant", "A", f"--model.{name}", value, "--model.heads", "1")
    run("train", "--dataset", dataset, "--output-dir", tmp_path / "run", *SMALL, *baseline)
    first = RunFolder(tmp_path / "run").read_results()["splits"]["dev"]["all"]["nats"]

    run("evaluate", tmp_path / "run", "--split", "dev")

    records = Records.read(tmp_path / "run" / "records-dev.csv")
    assert score_groups(records)["all"]["nats"] == pytest.approx(first)
