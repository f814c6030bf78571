"""Runs on several processes under torchrun: the same losses, and what happens when one dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from dntm.model.config import ModelConfig
from dntm.model.fast.window import windows
from dntm.model.language_model import DynamicTextModel
from dntm.training.batches import tokens_of_windows
from dntm.training.run_folder import RunFolder
from tests.training.test_training import dataset  # noqa: F401 (a fixture)

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
SIZES = [f"--model.{name}-dim=8" for name in ("embedding", "hidden", "encoder", "context")]
NO_DROPOUT = [f"--model.dropout-{name}=0" for name in ("embedding", "hidden", "context")]


def command(dataset: Path, run: Path, processes: int, *more: str) -> list[str]:  # noqa: F811
    launch = [*TORCHRUN, str(processes), "-m", "dntm"] if processes > 1 else [sys.executable, "-m"]
    name = [] if processes > 1 else ["dntm"]
    where = ["--dataset", str(dataset), "--output-dir", str(run)]
    return [*launch, *name, "train", *where, *SIZES, *NO_DROPOUT, "--training.batch=5", *more]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def metrics(run: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{"train": line["train"], **line["dev"]} for line in lines]


def test_two_processes_train_as_one_does(dataset: Path, tmp_path: Path) -> None:  # noqa: F811
    for name, processes in (("one", 1), ("two", 2)):
        done = subprocess.run(
            command(dataset, tmp_path / name, processes, "--training.epochs=2"),
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        assert done.returncode == 0, done.stderr

    one, two = (metrics(tmp_path / name) for name in ("one", "two"))
    assert len(one) == len(two) == 4
    for alone, together in zip(one, two, strict=True):
        assert together == pytest.approx(alone, rel=1e-3)


GRADIENTS = """
import sys
import torch
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.training.hidden_words import HiddenDocument
from dntm.training.language_modelling import WindowLoss, train_batch
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
    train_batch(state, [HiddenDocument.of(d) for d in DOCUMENTS], recipe, step, group)
    if group.is_first:
        torch.save({n: p.grad for n, p in model.named_parameters()}, sys.argv[1])
"""


def test_processes_add_up_to_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    (tmp_path / "gradients.py").write_text(GRADIENTS)
    for processes in ("1", "2"):
        launch = [*TORCHRUN, processes] if processes > "1" else [sys.executable]
        done = subprocess.run(
            [*launch, str(tmp_path / "gradients.py"), str(tmp_path / processes)],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        assert done.returncode == 0, done.stderr

    one, two = (torch.load(tmp_path / processes) for processes in ("1", "2"))
    assert any(gradient.abs().max() > 0.01 for gradient in one.values())
    for name, gradient in one.items():
        torch.testing.assert_close(two[name], gradient, rtol=1e-4, atol=1e-6)


def test_the_tokens_of_a_window_are_those_it_predicts() -> None:
    model = DynamicTextModel(ModelConfig(vocabulary=10, entities=2, embedding_dim=4, hidden_dim=4))
    documents = [[[1, 3, 7, 2], [1, 2], [1, 5, 2]], [[1, 9, 2]]]

    counts = tokens_of_windows(documents, 2)

    pieces = [model.plan(text.sentences, text.continues) for text in windows(documents, 2)]
    assert counts == [len(piece.layout.targets) for piece in pieces]


def goes_beyond(run: Path, before: str) -> bool:
    path = run / "metrics.jsonl"
    lines = path.read_text() if path.exists() else ""
    return len(lines) > len(before) and lines[: len(before)] == before


def test_a_killed_process_ends_the_run_and_resume_carries_on(
    dataset: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    started = subprocess.Popen(
        command(dataset, run, 2, "--training.epochs=400"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    while not (run / "metrics.jsonl").exists() and started.poll() is None:
        time.sleep(0.2)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)

    told, _ = started.communicate(timeout=120)
    before = (run / "metrics.jsonl").read_text()
    again = subprocess.Popen(
        command(dataset, run, 2, "--training.epochs=400", "--resume"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    # It goes back to its latest checkpoint, or to the beginning, and beyond where it was killed.
    while not goes_beyond(run, before) and again.poll() is None:
        time.sleep(0.2)
    again.send_signal(signal.SIGTERM)
    said, _ = again.communicate(timeout=120)

    assert started.returncode != 0
    assert "another process of this run has ended" in told
    assert goes_beyond(run, before), said
    assert RunFolder(run).latest() is not None


ALONE = """
import os, signal, socket, sys, time
import torch.distributed as dist
from dntm.training import processes

def run(rank, how):
    processes._BEAT, processes._GRACE = 0.05, 0.5
    if rank and how == "joining":
        dist.init_process_group = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with processes.processes("cpu") as group:
        if rank:
            os.kill(os.getpid(), signal.SIGSTOP if how == "silent" else signal.SIGKILL)
        # Anything but the connection: torch alone does not hear of it in here
        time.sleep(1000)

def start(rank, count, port, how):
    names = {"RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port, "MASTER_ADDR": "127.0.0.1"}
    if child := os.fork():
        return child
    os.environ.update({name: str(value) for name, value in names.items()})
    try:
        run(rank, how)
    except SystemExit as exit_:
        os._exit(exit_.code)
    except ConnectionError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)

for how in ("joining", "working", "silent", "missing"):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = [start(rank, 2, port, how) for rank in range(1 if how == "missing" else 2)]
    began, code = time.monotonic(), None
    while code is None and time.monotonic() - began < 60:
        time.sleep(0.05)
        if how == "missing" and time.monotonic() - began > 3:
            os.kill(children[0], signal.SIGTERM)
        ended, status = os.waitpid(children[0], os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if ended else None
    print(how, code, flush=True)
    for child in children[code is not None:]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
"""


def test_a_process_ends_within_the_minute_when_another_dies_without_torchruns_agent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, check=False,
        env=environment(),
    )  # fmt: skip

    ends = dict(line.split() for line in done.stdout.splitlines())
    assert ends == {"joining": "1", "working": "1", "silent": "1", "missing": "-15"}, done.stderr
    assert done.stderr.count("another process of this run has ended") == 3
