import json
from pathlib import Path

import pytest
import torch

import dntm
from dntm.model.checkpoint import from_pretrained
from tests.cli.running import SMALL, Capture, fails, run, stories


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stories, in each of which two people do one thing."""
    sentences = [[who, "sang", "."] for who in ("Ann", "Bo", "Ann", "Bo")]
    clusters = [[[0, 0], [6, 6]], [[3, 3], [9, 9]]]
    return stories(tmp_path_factory.mktemp("stories"), sentences, clusters)


@pytest.fixture(scope="module")
def runs(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline and a dynamic model."""
    folder = tmp_path_factory.mktemp("runs")
    for name in "ad":
        where = ("--dataset", dataset, "--output-dir", folder / name)
        run("train", *where, *SMALL, "--model.variant", name.upper())
    return folder


def test_an_exported_model_reads_as_the_run_does_to_half_precision(
    runs: Path, dataset: Path, tmp_path: Path
) -> None:
    run("export", runs / "d", "--static", runs / "a", "--output-dir", tmp_path / "m")

    document = next(dntm.Dataset.open(dataset).documents("test"))
    for name, exported in (("d", tmp_path / "m"), ("a", tmp_path / "m" / "static")):
        ours, theirs = (next(dntm.load(path).score([document])) for path in (exported, runs / name))
        assert ours == pytest.approx(theirs, abs=0.02)
    weights, _ = from_pretrained(tmp_path / "m")
    trained, _ = from_pretrained(runs / "d" / "best")
    for half, whole in zip(weights.parameters(), trained.parameters(), strict=True):
        torch.testing.assert_close(half, whole, rtol=1e-3, atol=1e-6)


def test_the_card_tells_data_settings_and_perplexities(
    runs: Path, dataset: Path, tmp_path: Path
) -> None:
    run("export", runs / "d", "--output-dir", tmp_path / "m")

    card = (tmp_path / "m" / "README.md").read_text()
    results = json.loads((runs / "d" / "all_results.json").read_text())
    assert dataset.parent.name in card
    assert "learning_rate: 0.002" in card
    assert f"| {results['splits']['dev']['all']['perplexity']:.1f} |" in card


def test_a_baseline_that_is_only_a_checkpoint_is_scored_for_the_card(
    runs: Path, tmp_path: Path
) -> None:
    run("export", runs / "d", "--static", runs / "a", "--output-dir", tmp_path / "runs")
    run("export", runs / "d", "--static", runs / "a" / "best", "--output-dir", tmp_path / "best")

    cards = [(tmp_path / name / "README.md").read_text() for name in ("runs", "best")]
    results = json.loads((runs / "a" / "all_results.json").read_text())
    assert cards[0] == cards[1]
    assert f"| {results['splits']['dev']['all']['perplexity']:.1f} |" in cards[0]


def test_the_card_tells_which_weights_a_run_began_with(
    runs: Path, dataset: Path, tmp_path: Path
) -> None:
    where = ("--dataset", dataset, "--output-dir", tmp_path / "again")
    run("train", *where, *SMALL, "--start-from", runs / "a")

    for trained in (tmp_path / "again", runs / "d"):
        run("export", trained, "--output-dir", tmp_path / f"{trained.name}-model")

    began = "Initialized from the weights of the run `a`."
    assert began in (tmp_path / "again-model" / "README.md").read_text()
    assert "Initialized" not in (tmp_path / "d-model" / "README.md").read_text()


def test_what_cannot_be_exported_leaves_nothing(
    runs: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "unfinished").mkdir()
    target = ("--output-dir", tmp_path / "m")

    unfinished = fails(capsys, "export", tmp_path / "unfinished", *target)
    dynamic = fails(capsys, "export", runs / "d", "--static", runs / "d", *target)

    assert "expected a folder with a checkpoint" in unfinished
    assert "is the variant 'both', expected a baseline" in dynamic
    assert list(tmp_path.iterdir()) == [tmp_path / "unfinished"]
