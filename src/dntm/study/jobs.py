"""Jobs: the parts of a study as processes, several side by side, each under a claim.

A part is a cell or the pretraining. It is a process of its own (`dntm cell STUDY NAME`), which
finds everything else in the study's own study.yaml. A cell writes its messages to its log.txt. A
cell that another process works on, here or on another machine, is left to it and looked at again
later. When the study ends early, its processes are told to save their state, and waited for.

A claim is a lock that ends with its holder (`dntm.files`).
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dntm.experiments.study import Cell, StudyConfig, StudyFolder
from dntm.files import is_claimed, resolved

POLL_SECONDS = 0.2
END_WITH = "DNTM_END_WITH"
"""The environment variable that tells a process which other one started it for a study."""
LAST_WORDS = 1000
"""How many bytes of a failed cell's last line are shown, at most."""


@dataclass(frozen=True)
class Status:
    """How far the cells are; what is in neither list waits."""

    done: dict[str, float]
    """The share that is done of each cell, by name."""
    running: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Cells that another process works on."""
    failed: dict[str, str]
    """The last words of cells that failed."""


def part_command(folder: StudyFolder, name: str) -> list[str]:
    """The command that does one part of a study."""
    return [sys.executable, "-m", "dntm", "cell", str(resolved(folder.path)), name]


def share_done(folder: StudyFolder, config: StudyConfig, cell: Cell) -> float:
    """How much of a cell is done, by its validations."""
    if folder.finished(cell):
        return 1.0
    metrics = folder.run(cell) / "metrics.jsonl"
    lines = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    # The steps after training are short, but they are not nothing.
    return lines / (config.training.epochs * config.training.validations + 1)


def run_jobs(
    folder: StudyFolder, config: StudyConfig, cells: Sequence[Cell], *, jobs: int, threads: int
) -> Iterator[Status]:
    """Run all cells that are not finished, so many at a time; yields the status as it changes."""
    waiting = [cell for cell in cells if not folder.finished(cell)]
    running: dict[Cell, subprocess.Popen[bytes]] = {}
    failed: dict[str, str] = {}
    try:
        while waiting or running:
            for cell, process in list(running.items()):
                if (code := process.poll()) is not None:
                    del running[cell]
                    if code:
                        failed[cell.name] = _last_words(folder.run(cell) / "log.txt", code)
            waiting = [cell for cell in waiting if not folder.finished(cell)]
            elsewhere = [cell for cell in waiting if is_claimed(folder.lock(cell.name))]
            free = [cell for cell in waiting if cell not in elsewhere]
            for cell in free[: jobs - len(running)]:
                running[cell] = _start(folder, cell, threads)
                waiting.remove(cell)
            yield Status(
                {cell.name: share_done(folder, config, cell) for cell in cells},
                tuple(cell.name for cell in running),
                tuple(cell.name for cell in elsewhere),
                failed,
            )
            time.sleep(POLL_SECONDS)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def run_part(folder: StudyFolder, name: str) -> None:
    """Do one part and wait for it, its messages among ours; it ends when this process does."""
    with subprocess.Popen(
        part_command(folder, name), env=_tied_environment(), process_group=0
    ) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
    if code:
        raise ValueError(f"{name} ended with code {code}: see the messages above")


def _start(folder: StudyFolder, cell: Cell, threads: int) -> subprocess.Popen[bytes]:
    log = folder.run(cell) / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            part_command(folder, cell.name),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**_tied_environment(), "OMP_NUM_THREADS": str(threads)},
            process_group=0,  # Ctrl-C reaches the study alone, which then ends them once
        )


def _tied_environment() -> dict[str, str]:
    """The environment of a process that is to end with this one (`end_with_the_study`)."""
    return {**os.environ, END_WITH: str(os.getpid())}


def end_with_the_study() -> None:
    """In a process that a study started: end when it dies without a word (kill -9; Linux only)."""
    study = os.environ.get(END_WITH)
    if study is None or sys.platform != "linux":
        return
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    if os.getppid() != int(study):
        sys.exit(143)


def _last_words(log: Path, code: int) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_WORDS))
        lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else f"ended with code {code}"
