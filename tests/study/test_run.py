"""One run of a study: its results are those of its best weights on the test split."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from dntm.corpus.dataset import Dataset
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import Records, records_of
from dntm.model.scorer import Scorer
from dntm.settings import merged
from dntm.study.config import PRESETS, StudyConfig, StudyFolder
from dntm.study.report import write_report
from dntm.study.run import run_one
from tests.model.tiny_base import write_base
from tests.study.small_study import write_corpus


def quiet(line: str) -> None:
    pass


@pytest.fixture
def config(tmp_path: Path) -> StudyConfig:
    corpus = write_corpus(tmp_path)
    settings = yaml.safe_load((tmp_path / "settings.yaml").read_text())
    return replace(merged(PRESETS["quick"], settings, "settings.yaml"), corpus=str(corpus))


def test_the_records_are_the_scores_of_the_best_weights(
    config: StudyConfig, tmp_path: Path
) -> None:
    folder, run = StudyFolder(tmp_path / "study"), config.runs[1]

    run_one(folder, config, run, quiet)

    documents = list(Dataset.open(folder.dataset).documents("test"))
    model = Scorer.load(folder.run(run))
    expected = np.concatenate(list(model.score(documents)))
    records = Records.read(folder.run(run) / "records-test.csv")
    np.testing.assert_allclose(records.log_probability, expected, atol=1e-5)
    assert folder.finished(run)


def test_deleted_results_are_written_again_without_training(
    config: StudyConfig, tmp_path: Path
) -> None:
    folder, run = StudyFolder(tmp_path / "study"), config.runs[0]
    run_one(folder, config, run, quiet)
    files = [folder.run(run) / name for name in ("records-test.csv", "cloze-test.csv")]
    before = [path.read_bytes() for path in files]
    for path in files:
        path.unlink()
    log: list[str] = []

    run_one(folder, config, run, log.append)

    assert [path.read_bytes() for path in files] == before
    assert log == ["A-1: finished"]


def test_records_of_earlier_weights_are_replaced(config: StudyConfig, tmp_path: Path) -> None:
    folder, run = StudyFolder(tmp_path / "study"), config.runs[0]
    folder.run(run).mkdir(parents=True)
    for name in ("records-test.csv", "cloze-test.csv"):
        (folder.run(run) / name).write_text("stale\n")

    run_one(folder, config, run, quiet)

    assert len(Records.read(folder.run(run) / "records-test.csv"))
    assert folder.finished(run)


def test_documents_may_have_more_entities_than_slots(config: StudyConfig, tmp_path: Path) -> None:
    build = replace(config.build, overflow="evict", max_entities=1)
    config = replace(config, build=build, models=("D-gru-relu",))
    folder, run = StudyFolder(tmp_path / "study"), config.runs[0]

    run_one(folder, config, run, quiet)

    records = Records.read(folder.run(run) / "records-test.csv")
    assert records.entity.max() == 2
    assert folder.finished(run)


def test_baselines_are_added_to_a_study_and_have_a_table(
    config: StudyConfig, tmp_path: Path
) -> None:
    folder, one = StudyFolder(tmp_path / "study"), replace(config, seeds=(1,))
    one = replace(one, model=replace(one.model, heads=1)).with_baselines()
    folder.save_settings(one)
    runs = {run.name: run for run in one.runs}
    names = ("n-gram-1", "A-cache-1", "D-transformer-1", "D-exchanged-1", "D-pointer-1")

    for name in names:
        run_one(folder, one, runs[name], quiet)
    report = write_report(folder)

    assert all(folder.finished(runs[name]) for name in (*names, "A-1"))  # a cache needs its model
    table = next(table for table in report.tables if table.key == "baselines")
    shown = {row["model"]: row for row in table.data}
    assert list(shown) == ["A", "n-gram", "A-cache", "D-transformer", "D-exchanged", "D-pointer"]
    for model, row in shown.items():
        records = Records.read(folder.path / "runs" / f"{model}-1" / "records-test.csv")
        assert row["all"] == pytest.approx(score_groups(records)["all"]["perplexity"])
        assert (row["all_ratio"] is None) == (model == "A")
    scorer = Scorer.load(folder.path / "runs" / "D-exchanged-1")
    plain = score_groups(records_of(scorer, Dataset.open(folder.dataset).documents("test")))
    assert shown["D-exchanged"]["reappearing"] != pytest.approx(plain["reappearing"]["perplexity"])
    assert shown["A"]["parameters"] == shown["A-cache"]["parameters"]
    assert any("Missing: D-gru-relu-1" in line for line in report.summary)
    main = next(table for table in report.tables if table.key == "table-3")
    assert [row["model"] for row in main.data] == ["D-gru-relu", "A"]


def test_a_study_can_have_a_pretrained_core(config: StudyConfig, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    core, models = write_base(tmp_path / "base"), ("A", "D-gru-relu")
    own = {"model": {"core": str(core), "context_dim": 5}, "seeds": [1]}
    adapter = merged(PRESETS["adapter"], own, "test")
    study = replace(adapter, corpus=config.corpus, models=models, reading=config.reading)
    folder = StudyFolder(tmp_path / "study")
    folder.save_settings(study)

    for run in study.runs:
        run_one(folder, study, run, quiet)
    report = write_report(folder)

    table = next(table for table in report.tables if table.key == "table-2")
    assert {row["model"]: row["seeds"] for row in table.data} == {"A": 1, "D-gru-relu": 1}
    assert all(folder.finished(run) for run in study.runs)
