"""Runs on several processes under torchrun: the same losses, and resuming after one dies."""

import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from dntm.training.processes import Interrupted, stop_signals
from dntm.training.run_folder import RunFolder
from tests.training.small_pretraining import ON_TWO, run_on_two
from tests.training.test_training import dataset  # noqa: F401 (a fixture)

SIZES = [f"--model.{name}-dim=8" for name in ("embedding", "hidden", "encoder", "context")]


def start(dataset: Path, run: Path, *more: str) -> subprocess.Popen[str]:  # noqa: F811
    """Start a long run on two processes."""
    where = ["--dataset", str(dataset), "--output-dir", str(run), "--training.epochs=400"]
    recipe = [*SIZES, "--training.batch=5", *more]
    command = [*ON_TWO, "-m", "dntm", "train", *where, *recipe]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


GRADIENTS = """
import sys
import torch
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.corpus.entity_slots import DocumentRows
from dntm.training.language_modeling import WindowLoss, train_batch
from dntm.training.processes import processes
from dntm.training.config import Recipe
from dntm.training.state import TrainingState

DOCUMENTS = [[[1, 3, 7, 2], [1, 6, 3, 8, 3, 2]], [[1, 9, 2]], [[1, 4, 9, 9, 2], [1, 4, 3, 2]]]
model = DynamicTextModel(
    ModelConfig(vocabulary=10, entities=2, embedding_dim=4, hidden_dim=4, encoder_dim=4,
                context_dim=4),
    torch.Generator().manual_seed(1),
)
recipe = Recipe(clip=1e9)
with processes() as group:
    state = TrainingState.start(model, recipe, seed=1)
    step = group.share_gradients(WindowLoss(model, recipe))
    rows = [DocumentRows(d, [()] * len(d)) for d in DOCUMENTS]
    train_batch(state, rows, recipe, step, group)
    if group.is_first:
        torch.save({n: p.grad for n, p in model.named_parameters()}, sys.argv[1])
"""


def test_processes_add_up_to_the_gradient_of_the_whole_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "gradients.py"
    script.write_text(GRADIENTS)

    done = run_on_two(str(script), str(tmp_path / "2"))
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / "1")])
    runpy.run_path(str(script))

    assert done.returncode == 0, done.stderr
    one, two = (torch.load(tmp_path / processes) for processes in ("1", "2"))
    assert any(gradient.abs().max() > 0.01 for gradient in one.values())
    for name, gradient in one.items():
        torch.testing.assert_close(two[name], gradient, rtol=1e-4, atol=1e-6)


def test_a_signal_after_the_last_batch_is_not_lost() -> None:
    def run() -> None:
        with stop_signals() as stopped:
            signal.raise_signal(signal.SIGINT)
            assert stopped == [signal.SIGINT]

    with pytest.raises(Interrupted):
        run()


def goes_beyond(run: Path, before: str) -> bool:
    path = run / "metrics.jsonl"
    lines = path.read_text() if path.exists() else ""
    return len(lines) > len(before) and lines[: len(before)] == before


def test_a_killed_process_ends_the_run_and_it_resumes(
    dataset: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    started = start(dataset, run)
    while not (run / "metrics.jsonl").exists() and started.poll() is None:
        time.sleep(0.2)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)

    started.communicate(timeout=120)
    before = (run / "metrics.jsonl").read_text()
    again = start(dataset, run, "--resume")
    # It restarts from its latest checkpoint and passes the point where it was killed.
    while not goes_beyond(run, before) and again.poll() is None:
        time.sleep(0.2)
    again.send_signal(signal.SIGTERM)
    said, _ = again.communicate(timeout=120)

    assert started.returncode != 0
    assert goes_beyond(run, before), said
    assert RunFolder(run).latest() is not None
