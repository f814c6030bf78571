"""Git repositories for the tests of fetching."""

import shutil
import subprocess
from pathlib import Path

import pytest

FILES = {
    "corpus/train/a.txt": "Anna met a dog .\n",
    "corpus/dev/b.txt": "She liked it .\n",
    "corpus/with space/c [1].txt": "It ran .\n",
    "other/corpus/d.txt": "not wanted\n",
    "README.md": "a corpus\n",
}
GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgSign=false")
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(work: Path, message: str) -> str:
    git(work, "add", ".")
    git(work, "commit", "--quiet", "-m", message)
    return git(work, "rev-parse", "HEAD")


def files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }
