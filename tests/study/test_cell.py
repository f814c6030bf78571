"""A cell's numbers are those of its own weights at the end of its training."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import Records
from dntm.experiments.presets import PRESETS
from dntm.experiments.study import StudyConfig, StudyFolder, cells
from dntm.study.cell import run_cell
from dntm.study.plan import agree
from dntm.training.config import merged
from dntm.training.run_folder import RunFolder
from tests.study.small import write_corpus


@pytest.fixture
def config(tmp_path: Path) -> StudyConfig:
    corpus = write_corpus(tmp_path)
    settings = yaml.safe_load((tmp_path / "settings.yaml").read_text())
    return replace(merged(PRESETS["quick"], settings, "settings.yaml"), corpus=str(corpus))


def test_records_made_while_a_cell_was_training_are_made_again(
    config: StudyConfig, tmp_path: Path
) -> None:
    folder, cell = StudyFolder(tmp_path / "study"), cells(config)[0]
    agree(folder, config)
    run = folder.run(cell)

    progress = run_cell(folder, config, cell, lambda _: None)
    next(p for p in progress if p.validation)
    # What `dntm evaluate` and `dntm cloze` leave behind, of weights that are not the last ones.
    (run / "records-test.csv").write_text("stale\n")
    (run / "cloze-test.csv").write_text("stale\n")
    list(progress)

    records = Records.read(run / "records-test.csv")
    expected = RunFolder(run).read_results()["splits"]["test"]["all"]["nats"]
    assert score_groups(records)["all"].nats == pytest.approx(expected)
    assert folder.finished(cell)
