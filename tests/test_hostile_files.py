"""Files that were edited, damaged or made to do harm: one sentence each, and nothing is written."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dntm.corpus.dataset import content_hash
from dntm.model.checkpoint import save_tensors
from dntm.training.run_folder import RunFolder
from tests.cli.running import Capture, fails, run, stories
from tests.torture.saved import copied

SIZES = [f"--model.{name}-dim=4" for name in ("embedding", "hidden", "encoder", "context")]
DEEP = "[" * 100_000
QUICK = 5.0
"""Seconds of processor time within which a hostile file is refused."""

Command = tuple[str | Path, ...]
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, a run on it that was stopped before its last epoch, and a pretraining run."""
    folder = tmp_path_factory.mktemp("made")
    sentences = [["Ann", "met", "Bo"], ["she", "left"]]
    stories(folder / "text", sentences, [[[0, 0], [3, 3]]]).rename(folder / "dataset")
    (folder / "words.txt").write_text("Ann met Bo. She left. A dog barked at the cat.\n" * 40)
    run("train", "--dataset", folder / "dataset", "--output-dir", folder / "run", *SIZES,
        "--training.epochs=1")  # fmt: skip
    run("pretrain", "--text", folder / "words.txt", "--output-dir", folder / "pretraining",
        *SIZES[:1], *SIZES[2:3], "--training.iterations=3", "--store.min-count=1",
        "--training.batch=4")  # fmt: skip
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """The same to be damaged; the run reads the dataset beside it."""
    return copied(made, tmp_path / "made")


def edit(path: Path, change: Edit) -> None:
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def sentence(capsys: Capture, *arguments: str | Path) -> str:
    """What a command says; it takes not long to say it, and not many words."""
    began = time.process_time()
    said = fails(capsys, *arguments).splitlines()[-1]
    assert time.process_time() - began < QUICK
    assert len(said) < 600
    return said


@pytest.mark.parametrize("name", ["embedding_dim", "context_dim"])
@pytest.mark.parametrize("size", [24.0, 10**9, True])
def test_a_size_that_cannot_be_is_refused_before_anything_is_made(
    copy: Path, capsys: Capture, name: str, size: object
) -> None:
    edit(copy / "run" / "best" / "config.json", lambda c: c.update({name: size}))

    said = sentence(capsys, "evaluate", copy / "run")

    assert "best" in said
    assert name in said or "expected (" in said


@pytest.mark.parametrize("number", [10**18, 3.0, -1, None, "3"])
def test_a_number_of_entities_that_cannot_be_is_refused(
    copy: Path, capsys: Capture, number: object
) -> None:
    edit(copy / "run" / "best" / "config.json", lambda c: c.update(entities=number, vocabulary=9))
    edit(copy / "dataset" / "dataset.json", lambda d: d.update(entities=number))
    edit(copy / "pretraining" / "best" / "config.json", lambda c: c.update(entities=number))

    for command in (
        ("read", "--model", copy / "run", copy / "words.txt"),
        ("data", "show", copy / "dataset"),
        ("evaluate", copy / "pretraining"),
    ):
        assert sentence(capsys, *command)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("run/best/config.json", ("evaluate", "run")),
        ("dataset/dataset.json", ("data", "stats", "dataset")),
        ("dataset/train.jsonl", ("data", "show", "dataset")),
        ("dataset/dataset.json", ("export", "run", "--output-dir", "new")),
        ("run/all_results.json", ("export", "run", "--output-dir", "new")),
        ("run/STATE/state.json", ("train", "--output-dir", "run", "--resume")),
        (
            "pretraining/best/config.json",
            ("train", "--dataset", "dataset", "--pretrained", "pretraining"),
        ),
        ("run/config.yaml", ("train", "--output-dir", "run", "--resume")),
        ("text/train.jsonl", ("data", "build", "text", "--output-dir", "new")),
    ],
)
def test_json_of_any_depth_is_refused(
    copy: Path, capsys: Capture, name: str, command: tuple[str, ...]
) -> None:
    state = RunFolder(copy / "run").latest()
    assert state is not None
    path = copy / name.replace("STATE", f"checkpoints/{state.name}")
    path.write_text(DEEP)

    said = sentence(capsys, *(copy / word if (copy / word).exists() else word for word in command))

    assert path.name in said
    shutil.rmtree("new", ignore_errors=True)


STATES: dict[str, Edit] = {
    "format_version": lambda s: s.update(format_version=[]),
    "no number": lambda s: s["position"].update(epoch=None),
}
MOMENT = "optimizer.0.exp_avg"
TENSORS: dict[str, Callable[[dict[str, torch.Tensor]], object]] = {
    "another shape": lambda t: t.update({MOMENT: torch.zeros(3)}),
    "another type": lambda t: t.update({MOMENT: t[MOMENT].long()}),
    "NaN moments": lambda t: t.update({MOMENT: t[MOMENT] * torch.nan}),
    "a missing moment": lambda t: t.pop(MOMENT),
    "an unknown parameter": lambda t: t.update({"optimizer.99.step": torch.zeros(())}),
}


@pytest.mark.parametrize("what", [*STATES, *TENSORS])
def test_an_edited_training_state_is_refused(copy: Path, capsys: Capture, what: str) -> None:
    state = RunFolder(copy / "run").latest()
    assert state is not None
    if what in STATES:
        edit(state / "state.json", STATES[what])
    else:
        tensors = load_file(state / "state.safetensors")
        TENSORS[what](tensors)
        save_tensors(tensors, state / "state.safetensors")

    said = sentence(capsys, "train", "--output-dir", copy / "run", "--resume")

    assert str(state) in said


def test_a_pretraining_run_is_told_from_a_language_model(copy: Path, capsys: Capture) -> None:
    pretraining = copy / "pretraining"

    commands: tuple[Command, ...] = (
        ("export", pretraining, "--output-dir", copy / "new"),
        ("read", "--model", pretraining, copy / "words.txt"),
        ("fill", "She sat at the [].", "--model", pretraining),
    )
    for command in commands:
        assert "pretrain" in sentence(capsys, *command).replace(str(pretraining), "")
    assert not (copy / "new").exists()


def test_an_output_folder_that_is_a_loop_of_links_is_refused(copy: Path, capsys: Capture) -> None:
    (copy / "one").symlink_to(copy / "two")
    (copy / "two").symlink_to(copy / "one")

    commands: tuple[Command, ...] = (
        ("data", "build", copy / "text", "--output-dir", copy / "one"),
        ("export", copy / "run", "--output-dir", copy / "one"),
        ("train", "--dataset", copy / "dataset", "--output-dir", copy / "one", *SIZES),
        ("evaluate", copy / "run", "--by-document", copy / "one"),
        ("reproduce", "--corpus", copy / "dataset", "--output-dir", copy / "one"),
    )
    for command in commands:
        assert str(copy / "one") in sentence(capsys, *command)


@pytest.mark.parametrize(
    ("split", "sentences", "problem"),
    [
        ("train", "[]", "line 7: not a document: expected at least one sentence"),
        ("dev", "[[7]]", "line 3: entity 7 has no row in the vocabulary, expected 1 to 3"),
    ],
)
def test_a_malformed_document_of_a_dataset_is_named(
    copy: Path, capsys: Capture, split: str, sentences: str, problem: str
) -> None:
    with (copy / "dataset" / f"{split}.jsonl").open("a") as file:
        file.write(f'{{"name": "odd", "sentences": {sentences}, "surfaces": []}}\n')
    information = copy / "dataset" / "dataset.json"
    edit(information, lambda d: d.update(content_hash=content_hash(copy / "dataset")))
    new = ("--output-dir", copy / "new", "--training.batch=1")

    said = sentence(capsys, "train", "--dataset", copy / "dataset", *new, *SIZES)

    assert f"{split}.jsonl, {problem}" in said


def test_half_a_character_in_a_name_is_malformed_and_can_be_skipped(
    copy: Path, capsys: Capture
) -> None:
    with (copy / "text" / "train.jsonl").open("a") as file:
        file.write('{"doc_key": "\\ud800", "sentences": [["a"]], "clusters": []}\n')
    command = ("data", "build", copy / "text", "--output-dir", copy / "new")

    said = sentence(capsys, *command)
    run(*command, "--on-error", "skip")

    assert "train.jsonl, line 7" in said
    error = capsys.readouterr().err
    assert f"skipped: {copy / 'text' / 'train.jsonl'}, line 7: " in error
    assert "1 malformed documents skipped" in error


def test_a_document_is_shown_without_what_would_steer_the_terminal(
    tmp_path: Path, capsys: Capture
) -> None:
    steering = "\x1b]0;owned\x07"
    words = [["Ann", f"x{steering}"], ["Ann", "left"]]
    document = {"doc_key": f"a{steering}", "sentences": words, "clusters": [[[0, 1], [2, 2]]]}
    (tmp_path / "train.jsonl").write_text(json.dumps(document))
    run("data", "build", tmp_path / "train.jsonl", "--output-dir", tmp_path / "new")

    for more in ((), ("--original",)):
        capsys.readouterr()
        run("data", "show", tmp_path / "new", *more)
        shown = capsys.readouterr().out
        assert "Ann" in shown or "[1]" in shown
        assert "\x1b]" not in shown
        assert "\x07" not in shown


@pytest.mark.parametrize("name", ["train.jsonl", "test.jsonl"])
def test_a_dataset_that_was_changed_is_neither_trained_nor_evaluated_on(
    copy: Path, capsys: Capture, name: str
) -> None:
    path = copy / "dataset" / name
    path.write_text(path.read_text().replace("left", "came"))

    train = sentence(
        capsys, "train", "--dataset", copy / "dataset", "--output-dir", copy / "new", *SIZES
    )

    for said in (train, sentence(capsys, "evaluate", copy / "run")):
        assert "was changed since it was built: its hash differs" in said
    assert not (copy / "new").exists()
