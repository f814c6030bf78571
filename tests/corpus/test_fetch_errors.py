"""Fetching that fails or is interrupted, also through git programs that fail."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dntm.corpus.fetch import fetch
from tests.corpus.repositories import FILES, GIT, files, git, needs_git

pytestmark = needs_git


@pytest.mark.parametrize("command", ["fetch", "checkout", "rev-parse"])
def test_a_process_killed_midway_leaves_nothing_that_counts_as_finished(
    command: str,
    bare: Path,
    first: str,
    tmp_path: Path,
    broken_git: Callable[[str, str], Path],
) -> None:
    cache = tmp_path / "cache"
    script = broken_git(command, f'"{GIT}" "$@"; kill -9 $PPID; exit 0')
    program = (
        "import sys; from pathlib import Path; from dntm.corpus.fetch import fetch; "
        "fetch(sys.argv[1], commit=sys.argv[2], paths=['corpus'], into=Path(sys.argv[3]))"
    )
    arguments = [sys.executable, "-c", program, str(bare), first, str(cache)]
    killed = subprocess.run(arguments, capture_output=True, check=False)
    script.unlink()

    folder = fetch(str(bare), commit=first, paths=["corpus"], into=cache)

    assert killed.returncode == -signal.SIGKILL
    assert files(folder) == {k: v for k, v in FILES.items() if k.startswith("corpus/")}
    assert len(list(cache.iterdir())) == 2  # what the killed one left is kept for a day


def test_what_a_killed_process_left_is_swept_after_a_day(
    bare: Path, first: str, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    folder = fetch(str(bare), commit=first, paths=["corpus"], into=cache)
    left = folder.rename(cache / f".{folder.name}.left")
    os.utime(left, (time.time() - 2 * 24 * 3600,) * 2)

    fetch(str(bare), commit=first, paths=["corpus"], into=cache)

    assert list(cache.iterdir()) == [folder]


@pytest.mark.parametrize("command", ["fetch", "checkout"])
def test_a_failing_git_is_an_error_that_leaves_the_cache_empty(
    command: str,
    bare: Path,
    first: str,
    tmp_path: Path,
    broken_git: Callable[[str, str], Path],
) -> None:
    broken_git(command, "echo 'fatal: the disk is full' >&2; exit 128")

    with pytest.raises(ValueError, match=r"cannot fetch from .* \(git: fatal: the disk is full\)"):
        fetch(str(bare), commit=first, paths=["corpus"], into=tmp_path / "cache")

    assert list((tmp_path / "cache").iterdir()) == []


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Python's own handler, also where whoever started the tests has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_from_the_keyboard_leaves_the_cache_empty(
    bare: Path, first: str, tmp_path: Path, broken_git: Callable[[str, str], Path]
) -> None:
    broken_git("fetch", "kill -INT $PPID; exec sleep 20")
    start = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        fetch(str(bare), commit=first, paths=["corpus"], into=tmp_path / "cache")

    assert list((tmp_path / "cache").iterdir()) == []
    assert time.monotonic() - start < 10


def test_a_commit_that_is_not_there_is_named(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=rf"bare.git has no commit {'1' * 40} \(git: .*not our ref"
    ):
        fetch(str(bare), commit="1" * 40, paths=["corpus"], into=tmp_path / "cache")

    assert list((tmp_path / "cache").iterdir()) == []


def test_a_tag_is_no_commit(bare: Path, first: str, tmp_path: Path) -> None:
    git(bare, "tag", "--annotate", "-m", "one", "v1", first)
    tag = git(bare, "rev-parse", "v1")

    with pytest.raises(ValueError, match=f"{tag} in .* leads to {first}"):
        fetch(str(bare), commit=tag, paths=["corpus"], into=tmp_path / "cache")


def test_a_path_that_the_commit_does_not_have_is_named(
    bare: Path, first: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"has no 'corpora' at commit {first}"):
        fetch(str(bare), commit=first, paths=["corpus", "corpora"], into=tmp_path / "cache")


def test_a_folder_that_is_no_repository_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()

    with pytest.raises(ValueError, match=r"plain is not a git repository .*expected a clone"):
        fetch(str(tmp_path / "plain"), commit="1" * 40, paths=["a"], into=tmp_path / "cache")


def test_a_server_out_of_reach_gives_gits_reason_and_the_way_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    url = "https://127.0.0.1:1/corpus.git"

    with pytest.raises(ValueError, match=r"git: fatal: unable to access .*--from PATH_OR_URL"):
        fetch(url, commit="1" * 40, paths=["a"], into=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_without_git_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ValueError, match=r"git is not installed.*apt install git"):
        fetch("corpus.git", commit="1" * 40, paths=["a"], into=tmp_path / "cache")


@pytest.mark.parametrize("commit", ["", "main", "1" * 39, "G" * 40, "1" * 40 + "\n"])
def test_a_commit_is_given_by_its_full_hash(commit: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a full hash"):
        fetch("corpus.git", commit=commit, paths=["a"], into=tmp_path)


@pytest.mark.parametrize("path", ["", ".", "/etc", "a/../../b", "a\nb"])
def test_a_path_lies_inside_the_repository(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a file or folder inside the repository"):
        fetch("corpus.git", commit="1" * 40, paths=["a", path], into=tmp_path)


def test_no_paths_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no paths to fetch"):
        fetch("corpus.git", commit="1" * 40, paths=[], into=tmp_path)
