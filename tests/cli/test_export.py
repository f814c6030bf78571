import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import dntm
from dntm.cli.main import main
from dntm.model.checkpoint import from_pretrained
from tests.training.test_training import config, dataset  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def runs(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    folder = tmp_path_factory.mktemp("runs")
    for name, variant in (("a", "baseline"), ("d", "both")):
        settings = config(dataset, folder / name, variant)  # type: ignore[arg-type]
        dntm.train(replace(settings, training=dntm.Recipe(epochs=1)))
    return folder


def test_an_exported_model_reads_as_the_run_does_to_half_precision(
    runs: Path,
    dataset: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    main(["export", str(runs / "d"), "--static", str(runs / "a"), "--output-dir", f"{tmp_path}/m"])

    document = next(dntm.Dataset.open(dataset).documents("test"))
    for run, exported in (("d", tmp_path / "m"), ("a", tmp_path / "m" / "static")):
        ours, theirs = dntm.load(exported).score(document), dntm.load(runs / run).score(document)
        assert ours == pytest.approx(theirs, abs=0.02)
    weights, _ = from_pretrained(tmp_path / "m")
    trained, _ = from_pretrained(runs / "d" / "best")
    for half, whole in zip(weights.parameters(), trained.parameters(), strict=True):
        torch.testing.assert_close(half, whole, rtol=1e-3, atol=1e-6)


def test_the_card_tells_data_settings_and_perplexities(runs: Path, tmp_path: Path) -> None:
    main(["export", str(runs / "d"), "--output-dir", f"{tmp_path}/m"])

    card = (tmp_path / "m" / "README.md").read_text()
    results = json.loads((runs / "d" / "all_results.json").read_text())
    assert "stories.jsonl" in card
    assert "learning_rate: 0.001" in card
    assert f"| {results['splits']['test']['all']['perplexity']:.1f} |" in card


def test_the_card_tells_which_weights_a_run_began_with(
    runs: Path,
    dataset: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    settings = replace(config(dataset, tmp_path / "again", "both"), start_from=runs / "a")
    dntm.train(replace(settings, training=dntm.Recipe(epochs=1)))

    for run in (tmp_path / "again", runs / "d"):
        main(["export", str(run), "--output-dir", f"{tmp_path}/{run.name}-model"])

    began = "Its weights began as those of the run a, where they fit."
    assert began in (tmp_path / "again-model" / "README.md").read_text()
    assert "weights began" not in (tmp_path / "d-model" / "README.md").read_text()


def test_an_unfinished_run_leaves_nothing(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unfinished").mkdir()

    with pytest.raises(SystemExit):
        main(["export", f"{tmp_path}/unfinished", "--output-dir", f"{tmp_path}/m"])

    assert "config.yaml cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
