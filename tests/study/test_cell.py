"""A cell's numbers are those of its own weights at the end of its training."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import Records
from dntm.model.text_model import TextModel
from dntm.settings import merged
from dntm.study.cell import run_cell
from dntm.study.config import PRESETS, StudyConfig, StudyFolder, cells, with_peers
from dntm.study.plan import agree
from dntm.study.report import write_report
from dntm.study.trial import measure
from tests.study.small import write_corpus


@pytest.fixture
def config(tmp_path: Path) -> StudyConfig:
    corpus = write_corpus(tmp_path)
    settings = yaml.safe_load((tmp_path / "settings.yaml").read_text())
    return replace(merged(PRESETS["quick"], settings, "settings.yaml"), corpus=str(corpus))


def test_the_test_split_is_scored_once(
    config: StudyConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cell = StudyFolder(tmp_path / "study"), cells(config)[0]
    agree(folder, config)
    scored: Counter[str] = Counter()
    score_all = TextModel.score_all

    def counted(
        model: TextModel, documents: Iterable[AnonymizedDocument]
    ) -> Iterator[NDArray[np.float64]]:
        given = list(documents)
        scored.update(document.name for document in given)
        return score_all(model, given)

    monkeypatch.setattr(TextModel, "score_all", counted)

    list(run_cell(folder, config, cell, lambda _: None))

    dataset = Dataset.open(folder.dataset)
    assert {scored[document.name] for document in dataset.documents("test")} == {1}
    assert folder.finished(cell)


def test_records_that_were_deleted_come_back_the_same(config: StudyConfig, tmp_path: Path) -> None:
    folder, cell = StudyFolder(tmp_path / "study"), cells(config)[0]
    agree(folder, config)
    list(run_cell(folder, config, cell, lambda _: None))
    records = folder.run(cell) / "records-test.csv"
    before = records.read_bytes()
    records.unlink()

    list(run_cell(folder, config, cell, lambda _: None))

    assert records.read_bytes() == before


def test_what_a_killed_process_was_writing_is_removed(config: StudyConfig, tmp_path: Path) -> None:
    folder, cell = StudyFolder(tmp_path / "study"), cells(config)[0]
    agree(folder, config)
    run = folder.run(cell)
    (run / "checkpoints" / ".2.abcdefg1").mkdir(parents=True)
    (run / ".best.abcdefg2").mkdir()
    (run / ".cloze-test.csv.abcdefg3").write_text("document")
    (folder.path / ".dataset.abcdefg4").mkdir()
    for path in folder.path.rglob(".*.abcdefg*"):
        os.utime(path, (1e9, 1e9))

    list(run_cell(folder, config, cell, lambda _: None))

    assert not list(folder.path.rglob(".*.abcdefg*"))


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

    assert len(Records.read(run / "records-test.csv").token) > 0
    assert folder.finished(cell)


def test_a_study_may_have_documents_with_more_entities_than_rows(
    config: StudyConfig, tmp_path: Path
) -> None:
    build = replace(config.build, overflow="evict", max_entities=1)
    config = replace(config, build=build, models=("D-gru-relu",))
    folder, cell = StudyFolder(tmp_path / "study"), cells(config)[0]
    agree(folder, config)

    list(run_cell(folder, config, cell, lambda _: None))
    speeds = measure(folder, config, [cell.model], threads=1)

    records = Records.read(folder.run(cell) / "records-test.csv")
    assert records.entity.max() == 2
    assert folder.finished(cell)
    assert speeds["D"].trained > 1


def test_a_study_gets_its_peers_and_a_table_of_them(config: StudyConfig, tmp_path: Path) -> None:
    folder, one = StudyFolder(tmp_path / "study"), replace(config, seeds=(1,))
    one = replace(one, model=replace(one.model, heads=1))
    agree(folder, one)
    more = with_peers(one)
    agree(folder, more)  # more models may come
    found = {cell.name: cell for cell in cells(more)}
    names = ("kneser-ney-1", "transformer-cache-1", "A-dynamic-evaluation-1",
             "A-salience-cache-1", "A-salience-own-cache-1")  # fmt: skip

    for name in names:
        list(run_cell(folder, more, found[name], lambda _: None))
    report = write_report(folder)

    for name in (*names, "transformer-1", "A-1"):
        assert folder.finished(found[name])
    table = next(table for table in report.tables if table.key == "peers")
    shown = {row["model"]: row for row in table.data}
    assert list(shown) == [
        *("A", "A-salience", "transformer", "kneser-ney"),
        *("A-salience-cache", "transformer-cache", "A-salience-own-cache", "A-dynamic-evaluation"),
    ]
    for model, row in shown.items():
        records = Records.read(folder.path / "runs" / f"{model}-1" / "records-test.csv")
        assert row["all"] == pytest.approx(score_groups(records)["all"].perplexity)
        assert (row["all_ratio"] is None) == (model == "A")
    assert shown["transformer"]["parameters"] == shown["transformer-cache"]["parameters"]
    assert (folder.run(found["transformer-1"]) / "best" / "cache.json").is_file()
    cached = next(table for table in report.tables if table.key == "against-cached")
    compared = {row["model"]: row for row in cached.data if row["group"] == "all"}
    assert set(compared) == set(shown) - {"A-salience-cache"}
    for model, row in compared.items():
        assert row["perplexity"] == pytest.approx(shown[model]["all"])
        assert row["baseline"] == pytest.approx(shown["A-salience-cache"]["all"])
    assert "D-salience-1" in report.notes[0]
    main = next(table for table in report.tables if table.key == "table-3")
    assert [row.entries[0].text for row in main.rows] == [
        "Dynamic input and output (D)",
        "Baseline (A)",
    ]
