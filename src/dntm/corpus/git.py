"""git, run as a program: the same for everybody, silent about passwords, and never a hook.

What it does must depend on its arguments alone. So it runs on the repository that it is given,
even inside another one or inside a hook; without the user's hooks, templates and line endings; and
it fails where it would ask for a password.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

_SETTINGS = {
    "advice.detachedHead": "false",
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "init.defaultBranch": "main",
    "maintenance.auto": "false",
}
"""The same checkout whatever the user's own configuration, no hook run and no endless wait."""
_UNSET = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
)
"""What would point git at another repository, as inside one of its hooks."""
_QUIET = {"GIT_ASKPASS": "", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class GitError(ValueError):
    """What git said when it failed."""


def run(folder: Path, *arguments: str) -> str:
    """What git prints, run in the repository that `folder` itself is."""
    with _started(folder, arguments) as process:
        printed, said = process.communicate()
    if process.returncode:
        raise GitError(_reason(said))
    return printed.decode(errors="replace").strip()


def run_aloud(folder: Path, stream: TextIO, *arguments: str) -> None:
    """Run git and pass on, where someone looks, what it says of its progress."""
    said = b""
    with _started(folder, arguments, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        try:
            while chunk := os.read(process.stderr.fileno(), 4096):
                said += chunk
                if stream.isatty():
                    stream.write(chunk.decode(errors="replace"))
                    stream.flush()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise GitError(_reason(said))


def _started(
    folder: Path, arguments: Sequence[str], stdout: int = subprocess.PIPE
) -> "subprocess.Popen[bytes]":
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if name not in _UNSET}
    environment.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    try:
        return subprocess.Popen(
            # A given --git-dir keeps git from taking a repository around the folder for its own.
            ["git", "-C", str(folder), "--git-dir=.git", *settings, *arguments],
            env=environment | _QUIET,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
    except FileNotFoundError:
        raise ValueError(
            "git is not installed, which fetches the corpora: install it with your system's "
            "package manager (such as apt install git) or from https://git-scm.com/downloads"
        ) from None


def _reason(said: bytes) -> str:
    """The last line, before the advice that git ends every failed connection with."""
    text = said.decode(errors="replace").partition("fatal: Could not read from remote")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
