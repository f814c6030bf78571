"""Runs on several processes under torchrun: the same losses, and what happens when one dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
    again = subprocess.Popen(
        command(dataset, run, 2, "--training.epochs=400", "--resume"),
        stderr=subprocess.DEVNULL,
        env=environment(),
    )

    assert started.returncode != 0
    assert "another process of this run has ended" in told or "SIGKILL" in told
    time.sleep(15)
    assert again.poll() is None
    again.send_signal(signal.SIGTERM)
    assert again.wait(timeout=60) != 0
