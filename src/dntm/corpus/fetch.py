"""fetch: corpora that the program gets itself, with the user's git.

A corpus is some paths of a repository at one commit. The commit's hash vouches for every byte
below it, whoever serves them, so the cache is keyed by commit and paths alone: a mirror, a local
clone and the original fill the same folder.

A checkout is made in a temporary folder beside its place and renamed into it when complete. So a
folder in that place is finished, whatever was interrupted, and of two processes that fetch at once
the second to finish takes what the first has put there.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TextIO

from dntm.corpus.git import GitError, run, run_aloud

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
    target = into.absolute() / f"{commit[:12]}-{_digest(wanted)}"
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


def _digest(paths: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(paths).encode()).hexdigest()[:8]


def _finished(target: Path, commit: str) -> bool:
    """Whether the checkout is there; ValueError where it was changed since, never a repair."""
    if not target.exists():
        return False
    offline = ("-c", "protocol.allow=never")
    try:
        head = run(target, "rev-parse", "HEAD")
        changes = run(target, *offline, "status", "--porcelain", "-uall").splitlines()
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
            run_aloud(folder, stream, *_FETCH, *way)
            run_aloud(folder, stream, "checkout", "--progress", "--detach", commit)
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
    run(folder, "init", "--quiet", "--template=")
    run(folder, "remote", "add", "--", "origin", repository)
    # The checkout may itself be the mirror that another fetch reads its files from.
    run(folder, "config", "uploadpack.allowFilter", "true")
    patterns = ["/" + re.sub(r"([\\*?\[ ])", r"\\\1", path) for path in paths]
    run(folder, "sparse-checkout", "set", "--no-cone", *patterns)


def _check_reachable(folder: Path, repository: str) -> None:
    try:
        run(folder, "ls-remote", "origin", "HEAD")
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
    head = run(folder, "rev-parse", "HEAD")
    if head != commit:
        raise ValueError(f"{commit} in {repository} leads to {head}, expected a commit's own hash")
    for path in paths:
        if not os.path.lexists(folder / path):
            raise ValueError(f"{repository} has no {path!r} at commit {commit}")
