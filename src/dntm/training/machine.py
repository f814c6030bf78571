"""The machine that a run used: processor, versions, time and peak memory.

A run may be interrupted and resumed, also on another machine. Each session of a run has one entry
in its `machine.json`, updated every few seconds, so that a killed session is recorded too. Names
of hosts and users are not recorded.
"""

import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from dntm.files import write_text
from dntm.settings import read_json

UPDATE_SECONDS = 5.0


def peak_memory_gb() -> float:
    """Peak memory of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, ru_maxrss includes the memory of the process that started this one.
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii"))
        if found:
            return int(found[1]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


class Session:
    """One session of a run, from its start until now."""

    def __init__(self, path: Path, earlier: list[dict[str, Any]], threads: int) -> None:
        self.path = path
        self.earlier = earlier
        self.began = time.monotonic()
        self.noted = float("-inf")
        self.entry = {"began": _now(), **describe_machine(), "threads": threads}

    @classmethod
    def begin(cls, path: Path, threads: int) -> Self:
        """Begin a session after those recorded in `path`."""
        earlier: list[dict[str, Any]] = []
        if path.exists():
            try:
                earlier = list(read_json(path)["sessions"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path} is damaged: {error!r}") from None
        return cls(path, earlier, threads)

    def note(self, *, now: bool = False) -> None:
        """Write time and memory so far, at most once every few seconds unless `now`."""
        moment = time.monotonic()
        if not now and moment - self.noted < UPDATE_SECONDS:
            return
        self.noted = moment
        entry = {
            **self.entry,
            "ended": _now(),
            "seconds": round(moment - self.began, 1),
            "peak_memory_gb": round(peak_memory_gb(), 3),
        }
        write_text(self.path, json.dumps({"sessions": [*self.earlier, entry]}, indent=2) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def describe_machine() -> dict[str, Any]:
    """The machine, the versions and the commit of the source, as plain values."""
    return {
        "machine": {
            "processor": processor_name(),
            "cores": os.cpu_count() or 1,
            "memory_gb": _memory_gb(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("dntm", "torch", "numpy")},
        },
        "commit": commit(),
    }


def commit() -> str:
    """The commit of the source, with `-dirty` if files were changed; empty if unknown."""
    try:
        # An installed package may lie inside the repository of another project.
        _git("ls-files", "--error-unmatch", ".")
        return _git("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    return subprocess.check_output(
        command, stderr=subprocess.DEVNULL, text=True, timeout=20
    ).strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def processor_name() -> str:
    """The model name of the processor."""
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
