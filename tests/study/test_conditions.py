"""A report says under which conditions its numbers came about, and what to mind."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from dntm.corpus.storyworld.story import StoryworldConfig, build_storyworld
from dntm.files import write_text
from dntm.study.conditions import INNERMOST, PRETRAINING_DECISIONS
from dntm.study.config import PRESETS, StudyConfig, StudyFolder
from dntm.study.recipes import PRETRAINING
from dntm.study.report import as_markdown, content, write_report
from dntm.study.results import read_results
from tests.study.made_up import PAPER_LIKE, in_parts, study

ONE = {"A": PAPER_LIKE["A"]}
SITTING: dict[str, Any] = {
    "began": "2026-01-01T10:00:00Z",
    "ended": "2026-01-01T11:00:00Z",
    "seconds": 3600.0,
    "peak_memory_gb": 1.5,
    "threads": 1,
    "commit": "a" * 40,
    "machine": {"processor": "a chip", "cores": 2, "memory_gb": 8, "system": "Linux"},
    "versions": {"dntm": "1"},
}


def text_of(folder: StudyFolder) -> str:
    return as_markdown(content(read_results(folder))).replace("\\", "")


def change(folder: StudyFolder, **changes: Any) -> StudyConfig:
    config = replace(StudyConfig.from_yaml(folder.settings), **changes)
    write_text(folder.settings, config.to_yaml())
    return config


def test_how_the_dataset_was_made_is_a_departure(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE, texts=in_parts)
    path = folder.dataset / "dataset.json"
    information = json.loads(path.read_text())
    information["settings"] |= {"entities": ["names", "unknown"], "nested": "outermost"}
    information["settings"]["reading"]["limit"] = 40
    path.write_text(json.dumps(information))

    text = text_of(folder)

    assert "documents are cut into parts of at most 5 sentences" in text
    assert "entities are names (runs of capitalised words) and unknown words that come back" in text
    assert "the vocabulary has 12 rows, the paper's 10,000" in text
    assert "dataset.max_entities is 3, the paper's 50" in text
    assert "only the first 40 documents of the corpus are read" in text
    assert (
        "documents or parts to train, validate and test on, the paper's 2,725 / 335 / 336" in text
    )
    assert "the outermost of nested mentions is kept" in text
    assert INNERMOST not in text


def storyworld(target: Path) -> None:
    build_storyworld(target, StoryworldConfig(train=4, dev=2, test=4, sentences=8, entities=3))


def test_a_study_on_made_up_stories_has_a_report(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE, corpus="storyworld", texts=storyworld)

    text = text_of(folder)

    assert "the corpus is storyworld, not OntoNotes" in text
    assert "stories are made up, with at most 3 entities, the paper's entities are" in text
    assert "sentences 8; entities 3; seed 0" in text


def test_a_term_beyond_the_paper_is_a_departure(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE)
    change(folder, model=replace(PRESETS["paper"].model, salience=True))

    text = text_of(folder)

    assert "model.salience is True, the paper's False" in text
    assert INNERMOST in text


def test_a_pretraining_is_told_by_its_own_files(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE)
    (tmp_path / "novels").mkdir()
    change(folder, text=(str(tmp_path / "novels"),))
    sizes, recipe, store = PRETRAINING["small"]
    settings = {"text": [str(tmp_path / "novels")], "model": asdict(sizes)}
    settings |= {"training": asdict(recipe), "store": asdict(store)}
    write_text(folder.pretraining / "config.yaml", yaml.safe_dump(settings))
    counts = {"files": [[0, 9, 9]] * 3, "sentences": 9, "tokens": 1234, "rows": 77}
    write_text(folder.pretraining / "text" / "text.json", json.dumps(counts))
    machine = {"sessions": [SITTING, SITTING]}
    write_text(folder.pretraining / "machine.json", json.dumps(machine))

    text = text_of(folder)

    assert "15,000 updates on text given as novels; 3 files, 9 sentences, 1,234 words" in text
    assert "not Gigaword but what was given as novels" in text
    assert "pretraining.iterations is 15000, the paper's 50000" in text
    assert "pretraining.min_count is 20, the paper's 500" in text
    assert "pretraining.embedding_dim is 256, the paper's 512" in text
    assert all(decision in text for decision in PRETRAINING_DECISIONS)
    assert "**Pretraining:** 2 h 00 min in 2 sittings, 1.50 GB, on machine 1" in text
    assert str(tmp_path) not in text


def test_a_pretraining_on_gigaword_at_the_papers_size_departs_in_nothing(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE)
    change(folder, text=("/data/gigaword.gz",))

    text = text_of(folder)

    assert "not Gigaword" not in text
    assert "the paper's 50000" not in text
    assert "no pretraining" not in text


def test_runs_of_different_commits_or_of_none_are_warned_of(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE)
    for seed, commit in ((1, "a" * 40), (2, "b" * 40 + "+")):
        machine = {"sessions": [SITTING | {"commit": commit}]}
        write_text(folder.path / f"runs/A-{seed}/machine.json", json.dumps(machine))

    report = write_report(folder)

    assert report.notes[1:] == (
        (
            "The runs were made with different commits of the program: aaaaaaaaaa (A-1); "
            "bbbbbbbbbb+ (A-2). Differences between them may be due to that."
        ),
        "Made with changes to the program that no commit holds: A-2.",
    )
    for name in ("report.html", "report.md"):
        assert "different commits of the program" in (folder.report / name).read_text()


def test_unequal_numbers_of_finished_seeds_are_told(tmp_path: Path) -> None:
    two = {name: PAPER_LIKE[name] for name in ("A", "D-gru-relu")}
    folder = study(tmp_path / "study", two, seeds=(1, 2, 3))
    both = text_of(folder)
    for seed in (2, 3):
        (folder.path / f"runs/D-gru-relu-{seed}/cloze-test.csv").unlink()
    unequal = text_of(folder)
    for seed in (2, 3):
        (folder.path / f"runs/A-{seed}/cloze-test.csv").unlink()

    assert "Not all models have equally many" not in both
    assert "finished seeds: 1 of D-gru-relu; 3 of A." in unequal
    assert "There is one seed only" in text_of(folder)
