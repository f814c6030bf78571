"""The machine: what work ran on, how long it took there and with how much memory.

With one thread a benchmark's seconds are those of the processor, which other work on the machine
lengthens least; with several they are those of the clock on the wall, since waiting for each other
is part of it. A share of a limit is that of one machine: whoever prints it prints the machine, too.
No names of hosts or users.

A run may be stopped and taken up again, also on another machine. Every sitting has its own entry in
the run's `machine.json`, brought up to date every few seconds, so that one that is killed counts.
"""

import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import dntm
from dntm.files import write_text
from dntm.settings import read_json

NOTE_SECONDS = 5.0


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    clock = time.process_time if clock_name() == "processor" else time.perf_counter
    start = clock()
    run()
    return clock() - start


def clock_name() -> str:
    """Which seconds these are."""
    import torch

    return "processor" if torch.get_num_threads() == 1 else "wall clock"


def peak_memory_gb() -> float:
    """The most memory this process has held so far.

    Linux counts in `ru_maxrss` also what the process that started this one held.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii"))
        if found:
            return int(found[1]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def peak_memory_mib() -> float:
    """The same in MiB."""
    return peak_memory_gb() * 1e9 / 2**20


class Sitting:
    """One sitting, from its beginning until now."""

    def __init__(self, path: Path, earlier: list[dict[str, Any]], threads: int) -> None:
        self.path = path
        self.earlier = earlier
        self.began = time.monotonic()
        self.noted = float("-inf")
        self.entry = {"began": _now(), **describe_machine(), "threads": threads}

    @classmethod
    def begin(cls, path: Path, threads: int) -> Self:
        """Begin a sitting after those that `path` tells of."""
        earlier: list[dict[str, Any]] = []
        if path.exists():
            try:
                earlier = list(read_json(path)["sittings"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path} is damaged: {error!r}") from None
        return cls(path, earlier, threads)

    def note(self, *, now: bool = False) -> None:
        """Write the time and memory so far, unless that was done a moment ago."""
        moment = time.monotonic()
        if not now and moment - self.noted < NOTE_SECONDS:
            return
        self.noted = moment
        entry = {
            **self.entry,
            "ended": _now(),
            "seconds": round(moment - self.began, 1),
            "peak_memory_gb": round(peak_memory_gb(), 3),
        }
        write_text(self.path, json.dumps({"sittings": [*self.earlier, entry]}, indent=2) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def describe_machine() -> dict[str, Any]:
    """The machine, the versions and the commit of the program, as JSON holds them."""
    return {
        "machine": {
            "processor": machine_name(),
            "cores": os.cpu_count() or 1,
            "memory_gb": _memory_gb(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {
            "dntm": dntm.__version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in ("torch", "numpy")},
        },
        "commit": commit(),
    }


def commit() -> str:
    """The commit of the source, `+` behind it where files differ; empty where it is not known."""
    source = Path(dntm.__file__).parent
    if _git(source, "ls-files", "--error-unmatch", "__init__.py") is None:
        return ""
    found = _git(source, "rev-parse", "HEAD")
    changed = _git(source, "status", "--porcelain", "--untracked-files=no", ".")
    return f"{found}+" if found and changed else found or ""


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def machine_name() -> str:
    """What the processor calls itself."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        text = information.read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
            return found[1].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, OSError, ValueError):
        return None
