"""fetch: corpora that the program gets itself, with the user's git.

A corpus is some paths of a repository at one commit. The commit's hash vouches for every byte
below it, whoever serves them, so the cache is keyed by commit and paths alone: a mirror, a local
clone and the original fill the same folder.

A checkout is made in a temporary folder beside its place and renamed into it when complete. So a
folder in that place is finished, whatever was interrupted, and of two processes that fetch at once
the second to finish takes what the first has put there.

git, run as a program: the same for everybody, silent about passwords, and never a hook.

What it does must depend on its arguments alone. So it runs on the repository that it is given,
even inside another one or inside a hook; without the user's hooks, templates and line endings; and
it fails where it would ask for a password.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
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


def _git(folder: Path, *arguments: str) -> str:
    """What git prints, run in the repository that `folder` itself is."""
    with _started(folder, arguments) as process:
        printed, said = process.communicate()
    if process.returncode:
        raise GitError(_reason(said))
    return printed.decode(errors="replace").strip()


def _git_aloud(folder: Path, stream: TextIO, *arguments: str) -> None:
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


_FETCH = ("-c", "protocol.version=2", "fetch", "--progress", "--no-recurse-submodules")
"""Under protocol 0 a filtered fetch from a shallow repository never ends: git 2.39 asks for the
missing commits in an ever longer chain of processes."""
_ABSENT = ("not our ref", "reference is not a tree")
_DAY = 24 * 60 * 60.0


def fetch(
    repository: str,
    *,
    commit: str,
    paths: Sequence[str],
    into: Path,
    progress: TextIO | None = None,
) -> Path:
    """The folder, inside the cache folder `into`, that holds `paths` as of `commit`.

    `repository` is anything git fetches from: a URL, a local clone, a bare repository, a mirror.
    A finished checkout is recognised without it. git's progress goes to `progress` (standard
    error) where that is a terminal, else a single line.
    """
    wanted = _checked(commit, paths)
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:8]
    target = into.absolute() / f"{commit[:12]}-{digest}"
    if _finished(target, commit):
        return target
    stream = sys.stderr if progress is None else progress
    source = str(Path(repository).absolute()) if Path(repository).exists() else repository
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _check_out(folder / "checkout", source, commit, wanted, stream)
        _put(folder / "checkout", target, commit)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def _checked(commit: str, paths: Sequence[str]) -> list[str]:
    """The paths in one form and order; ValueError for what git would misread."""
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise ValueError(f"commit {commit!r}: expected a full hash, 40 digits of 0-9 and a-f")
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts or "\n" in path:
            raise ValueError(f"path {path!r}: expected a file or folder inside the repository")
    if not paths:
        raise ValueError("no paths to fetch: expected at least one file or folder")
    return sorted({str(PurePosixPath(path)) for path in paths})


def _finished(target: Path, commit: str) -> bool:
    """Whether the checkout is there; ValueError where it was changed since, never a repair."""
    if not target.exists():
        return False
    offline = ("-c", "protocol.allow=never")
    try:
        head = _git(target, "rev-parse", "HEAD")
        changes = _git(target, *offline, "status", "--porcelain", "-uall").splitlines()
    except GitError as error:
        raise ValueError(
            f"{target} is no longer a checkout ({error}): delete that folder"
        ) from None
    if head != commit or changes:
        found = f"commit {head}" if head != commit else changes[0].strip()
        raise ValueError(
            f"{target} was changed since it was fetched (git: {found}), expected commit {commit} "
            "as it is: delete that folder to fetch it again"
        )
    return True


def _sweep(target: Path) -> None:
    """Remove what killed processes left behind, none of it young enough to be in use."""
    for left in target.parent.glob(f".{target.name}.*"):
        with suppress(FileNotFoundError):  # another process may sweep too
            if left.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(left, ignore_errors=True)


def _put(folder: Path, target: Path, commit: str) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not _finished(target, commit):
            raise


def _check_out(
    folder: Path, repository: str, commit: str, paths: Sequence[str], stream: TextIO
) -> None:
    """Fetch as little as the server allows: the paths' files, the commit, or all branches."""
    if not stream.isatty():
        stream.write(f"fetching {', '.join(paths)} of {repository} at {commit[:12]}\n")
    one = ("--depth=1", "origin", commit)
    branches = ("--tags", "--update-shallow", "origin", "+refs/heads/*:refs/remotes/origin/*")
    ways = [("--filter=blob:none", *one), one, branches]
    _start(folder, repository, paths)
    _check_reachable(folder, repository)
    for way in ways:
        shutil.rmtree(folder)
        _start(folder, repository, paths)
        try:
            _git_aloud(folder, stream, *_FETCH, *way)
            _git_aloud(folder, stream, "checkout", "--progress", "--detach", commit)
            break
        except GitError as error:
            if any(words in str(error) for words in _ABSENT):
                raise ValueError(f"{repository} has no commit {commit} (git: {error})") from None
            if way is ways[-1]:
                raise ValueError(_unreachable(repository, error)) from None
    _verify(folder, repository, commit, paths)


def _start(folder: Path, repository: str, paths: Sequence[str]) -> None:
    """An empty repository that will check out `paths` and nothing else."""
    folder.mkdir()
    _git(folder, "init", "--quiet", "--template=")
    _git(folder, "remote", "add", "--", "origin", repository)
    # The checkout may itself be the mirror that another fetch reads its files from.
    _git(folder, "config", "uploadpack.allowFilter", "true")
    patterns = ["/" + re.sub(r"([\\*?\[ ])", r"\\\1", path) for path in paths]
    _git(folder, "sparse-checkout", "set", "--no-cone", *patterns)


def _check_reachable(folder: Path, repository: str) -> None:
    try:
        _git(folder, "ls-remote", "origin", "HEAD")
    except GitError as error:
        if Path(repository).exists():
            raise ValueError(
                f"{repository} is not a git repository (git: {error}): "
                "expected a clone, a bare repository or a URL"
            ) from None
        raise ValueError(_unreachable(repository, error)) from None


def _unreachable(repository: str, error: GitError) -> str:
    return (
        f"cannot fetch from {repository} (git: {error}): without network, "
        "--from PATH_OR_URL takes a local clone or a mirror"
    )


def _verify(folder: Path, repository: str, commit: str, paths: Sequence[str]) -> None:
    head = _git(folder, "rev-parse", "HEAD")
    if head != commit:
        raise ValueError(f"{commit} in {repository} leads to {head}, expected a commit's own hash")
    for path in paths:
        if not os.path.lexists(folder / path):
            raise ValueError(f"{repository} has no {path!r} at commit {commit}")
