"""What a run ran on: processor, cores, memory, versions, commit. No names of hosts or users."""

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import dntm


def describe_machine() -> dict[str, Any]:
    """The machine, the versions and the commit of the program, as JSON holds them."""
    return {
        "machine": {
            "processor": _processor(),
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


def _processor() -> str:
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
