"""Repositories to fetch from, and a git that fails."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpus.repositories import FILES, GIT, commit_all, git


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A clone whose second commit changes a file of the first."""
    work = tmp_path / "work"
    for name, text in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
    git(work, "init", "--quiet", "--initial-branch=main")
    commit_all(work, "first")
    (work / "corpus/train/a.txt").write_text("Anna met a cat .\n", encoding="utf-8")
    commit_all(work, "second")
    return work


@pytest.fixture
def bare(work: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", "--bare", str(work), "bare.git")
    return tmp_path / "bare.git"


@pytest.fixture
def first(work: Path) -> str:
    return git(work, "rev-parse", "HEAD~1")


@pytest.fixture
def broken_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Puts a git before the real one that does something else at one of its commands."""

    def install(command: str, instead: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        script = folder / "git"
        script.write_text(
            f'#!/bin/sh\nfor word in "$@"; do\n  if [ "$word" = {command} ]; then\n'
            f'    {instead}\n  fi\ndone\nexec "{GIT}" "$@"\n',
            encoding="utf-8",
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return script

    return install
