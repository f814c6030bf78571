"""Runs of a study as processes, several at a time.

Each run is a process of its own, `dntm reproduce --output-dir STUDY --run NAME`, with its messages
in log.txt of its run folder. Runs that another process works on, here or on another machine, are
left to that process. When the study ends early, its processes save their state and end too.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dntm.files import is_locked
from dntm.study.config import StudyFolder, StudyRun
from dntm.study.document import duration
from dntm.study.run import Log

POLL_SECONDS = 0.2
PARENT = "DNTM_STUDY_PROCESS"
"""Environment variable with the process that started a run."""
LONGEST_ERROR = 1000
"""Bytes of a failed run's last message that are shown."""


def run_command(folder: StudyFolder, run: StudyRun) -> list[str]:
    """The command that executes one run."""
    command = [sys.executable, "-m", "dntm", "reproduce", "--output-dir"]
    return [*command, str(folder.path.resolve()), "--run", run.name]


def run_all(
    folder: StudyFolder, runs: Sequence[StudyRun], *, jobs: int, threads: int, log: Log
) -> None:
    """Execute all unfinished runs, `jobs` at a time with `threads` threads each."""
    waiting = [run for run in runs if not folder.finished(run)]
    running: dict[StudyRun, subprocess.Popen[bytes]] = {}
    began: dict[StudyRun, float] = {}
    seconds: list[float] = []
    failed: list[StudyRun] = []
    finished = len(runs) - len(waiting)
    try:
        while waiting or running:
            ended = [run for run, process in running.items() if process.poll() is not None]
            elsewhere = [run for run in waiting if folder.finished(run)]
            waiting = [run for run in waiting if run not in elsewhere]
            for run in (*ended, *elsewhere):
                process = running.pop(run, None)
                if process and process.returncode:
                    failed.append(run)
                    line = last_line(folder.run(run) / "log.txt", process.returncode)
                    log(f"{run.name} failed: {line}")
                    continue
                seconds += [time.monotonic() - began[run]] if process else []
                finished += 1
                elapsed = [time.monotonic() - began[run] for run in running]
                left = _time_left(seconds, len(waiting), elapsed, jobs)
                log(f"run {finished} of {len(runs)} finished: {run.name}{left}")
            free = [run for run in waiting if not is_locked(folder.lock(run.name))]
            for run in free[: jobs - len(running)]:
                running[run], began[run] = _start(folder, run, threads), time.monotonic()
                waiting.remove(run)
            time.sleep(POLL_SECONDS)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    if failed:
        logs = ", ".join(str(folder.run(run) / "log.txt") for run in failed)
        raise ValueError(f"{len(failed)} of {len(runs)} runs failed: see {logs}")


def _time_left(seconds: Sequence[float], waiting: int, elapsed: Sequence[float], jobs: int) -> str:
    """The remaining time, from the mean time of the runs that have finished here."""
    if not seconds or not (waiting or elapsed):
        return ""
    mean = sum(seconds) / len(seconds)
    work = mean * waiting + sum(max(mean - time, 0) for time in elapsed)
    return f", about {duration(work / jobs)} left"


def _start(folder: StudyFolder, run: StudyRun, threads: int) -> subprocess.Popen[bytes]:
    log = folder.run(run) / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            run_command(folder, run),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, PARENT: str(os.getpid()), "OMP_NUM_THREADS": str(threads)},
            process_group=0,  # Ctrl-C reaches only the study, which then ends its runs
        )


def end_with_parent() -> None:
    """In a process that a study started: end when the study is killed (Linux only)."""
    parent = os.environ.get(PARENT)
    if parent is None or sys.platform != "linux":
        return
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    if os.getppid() != int(parent):
        sys.exit(143)


def last_line(log: Path, code: int) -> str:
    """The last line of a log, or the exit code if the log is empty."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LONGEST_ERROR))
        lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {code}"
