"""A trial tells how long a study will take."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dntm.settings import merged
from dntm.study.config import PRESETS, StudyConfig, StudyFolder, cells
from dntm.study.paper import MODELS
from dntm.study.plan import ensure_dataset
from dntm.study.trial import (
    Speed,
    Work,
    estimate,
    forecast,
    measure,
    pretraining_seconds,
    work,
)
from tests.study.small import write_corpus


@pytest.fixture
def config(tmp_path: Path) -> StudyConfig:
    corpus = write_corpus(tmp_path)
    (tmp_path / "study").mkdir()
    settings = yaml.safe_load((tmp_path / "settings.yaml").read_text())
    return replace(merged(PRESETS["quick"], settings, "settings.yaml"), corpus=str(corpus))


def test_the_estimate_adds_up_what_a_run_reads() -> None:
    speed = Speed(trained=100.0, scored=50.0, gaps=10.0)

    seconds = estimate(speed, Work(trained=1000, scored=100, gaps=30))

    assert seconds == pytest.approx(6 + 10 + 2 + 3)


def test_a_trial_times_each_kind_of_model_on_the_studys_own_data(
    config: StudyConfig, tmp_path: Path
) -> None:
    folder = StudyFolder(tmp_path / "study")
    dataset = ensure_dataset(folder, config, lambda _: None)

    speeds = measure(folder, config, [MODELS["A"], MODELS["D-gru-relu"]], threads=1)

    needed = work(dataset, config)
    assert set(speeds) == {"A", "D"}
    assert all(min(s.trained, s.scored, s.gaps) > 10 for s in speeds.values())
    counts = dataset.information["counts"]["train"]
    assert needed.trained == counts["tokens"] + counts["sentences"]
    assert needed.gaps > 0


def test_a_study_of_a_single_batch_is_timed_all_the_same(
    config: StudyConfig, tmp_path: Path
) -> None:
    folder = StudyFolder(tmp_path / "study")
    config = replace(config, training=replace(config.training, batch=64))
    ensure_dataset(folder, config, lambda _: None)

    speed = measure(folder, config, [MODELS["A"]], threads=1)["A"]

    assert 10 < speed.trained < 1e7


def test_the_time_of_pretraining_is_that_of_the_updates_it_still_makes(
    config: StudyConfig, tmp_path: Path
) -> None:
    (tmp_path / "news.txt").write_text("the dog barked at the cat .\n" * 40)
    config = replace(
        config,
        text=(str(tmp_path / "news.txt"),),
        pretraining=replace(config.pretraining, iterations=100_000, batch=8),
        store=replace(config.store, vocabulary_size=100),
    )
    folder = StudyFolder(tmp_path / "study")

    whole = pretraining_seconds(folder, config, threads=1)
    (folder.pretraining / "checkpoints" / "100000").mkdir(parents=True)

    assert 1 < whole < 1e6
    assert pretraining_seconds(folder, config, threads=1) == 0


def test_the_forecast_begins_with_the_pretraining(config: StudyConfig, tmp_path: Path) -> None:
    folder, estimates = StudyFolder(tmp_path / "study"), {"A": 60.0, "D": 120.0}

    found = forecast(folder, config, cells(config), estimates, jobs=2, first=240.0)

    assert found == (
        "estimate: about 7 min for 4 runs, 2 side by side (pretraining: 4 min; a run: A 60 s, "
        "D 2 min)"
    )
