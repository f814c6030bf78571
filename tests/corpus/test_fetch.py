"""Fetching with git, from repositories made here and through git programs that fail."""

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dntm.corpus.fetch import fetch

FILES = {
    "corpus/train/a.txt": "Anna met a dog .\n",
    "corpus/dev/b.txt": "She liked it .\n",
    "corpus/with space/c [1].txt": "It ran .\n",
    "other/corpus/d.txt": "not wanted\n",
    "README.md": "a corpus\n",
}
GIT = shutil.which("git")

pytestmark = pytest.mark.skipif(GIT is None, reason="git is not installed")


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("form", ["{0}/work", "{0}/bare.git", "file://{0}/bare.git", "bare.git"])
def test_every_form_of_a_repository_gives_the_same_files(
    form: str, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    folder = fetch(
        form.format(tmp_path), commit=first, paths=["corpus/train"], into=tmp_path / "cache"
    )

    assert files(folder) == {"corpus/train/a.txt": "Anna met a dog .\n"}


def test_files_and_folders_are_checked_out_and_nothing_else(
    bare: Path, first: str, tmp_path: Path
) -> None:
    wanted = ["corpus/dev/", "README.md", "corpus/with space/c [1].txt"]

    folder = fetch(str(bare), commit=first, paths=wanted, into=tmp_path)

    kept = ("README.md", "corpus/dev/b.txt", "corpus/with space/c [1].txt")
    assert files(folder) == {name: FILES[name] for name in kept}


def test_a_filtering_server_sends_no_file_that_is_not_wanted(
    bare: Path, first: str, tmp_path: Path
) -> None:
    git(bare, "config", "uploadpack.allowFilter", "true")
    blobs = [
        git(bare, "rev-parse", f"{first}:{name}") for name in ("README.md", "corpus/dev/b.txt")
    ]

    folder = fetch(bare.as_uri(), commit=first, paths=["corpus/dev"], into=tmp_path)

    objects = git(folder, "cat-file", "--batch-check", "--batch-all-objects")
    assert [blob in objects for blob in blobs] == [False, True]


def test_a_finished_fetch_needs_its_source_no_more(bare: Path, first: str, tmp_path: Path) -> None:
    git(bare, "config", "uploadpack.allowFilter", "true")
    folder = fetch(str(bare), commit=first, paths=["corpus"], into=tmp_path / "cache")
    shutil.rmtree(bare)

    again = fetch(str(bare), commit=first, paths=["corpus/"], into=tmp_path / "cache")

    assert again == folder
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [folder.name]


def test_other_commits_and_other_paths_have_folders_of_their_own(
    work: Path, first: str, tmp_path: Path
) -> None:
    second = git(work, "rev-parse", "HEAD")
    wanted = [(first, "corpus/train"), (second, "corpus/train"), (first, "corpus/dev")]

    folders = [
        fetch(str(work), commit=commit, paths=[path], into=tmp_path / "cache")
        for commit, path in wanted
    ]

    assert [list(files(folder).values()) for folder in folders] == [
        ["Anna met a dog .\n"],
        ["Anna met a cat .\n"],
        ["She liked it .\n"],
    ]


@pytest.mark.parametrize("form", ["{0}/bare.git", "{0}/shallow", "file://{0}/shallow"])
def test_a_server_that_refuses_hashes_is_asked_for_its_branches(
    form: str, bare: Path, first: str, tmp_path: Path, broken_git: Callable[[str, str], Path]
) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=2", bare.as_uri(), "shallow")
    broken_git("--depth=1", "echo 'error: Server does not allow request' >&2; exit 1")

    folder = fetch(
        form.format(tmp_path), commit=first, paths=["corpus/train"], into=tmp_path / "cache"
    )

    assert files(folder) == {"corpus/train/a.txt": "Anna met a dog .\n"}
    assert git(folder, "branch", "--remotes").split() == ["origin/main"]


def test_a_server_that_refuses_filters_is_asked_for_the_whole_commit(
    bare: Path, first: str, tmp_path: Path, broken_git: Callable[[str, str], Path]
) -> None:
    broken_git("--filter=blob:none", "echo 'fatal: no filters' >&2; exit 128")

    folder = fetch(bare.as_uri(), commit=first, paths=["corpus/train"], into=tmp_path / "cache")

    assert files(folder) == {"corpus/train/a.txt": "Anna met a dog .\n"}
    assert git(folder, "rev-list", "--count", "HEAD") == "1"
    assert git(folder, "branch", "--remotes") == ""


def test_the_older_protocol_of_the_users_settings_is_not_used(
    bare: Path, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=2", bare.as_uri(), "shallow")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.version")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "0")
    monkeypatch.setenv("GIT_TRACE_PACKET", str(tmp_path / "packets"))

    fetch(str(tmp_path / "shallow"), commit=first, paths=["corpus"], into=tmp_path / "cache")

    assert "fetch< version 2" in (tmp_path / "packets").read_text(encoding="utf-8")


def test_a_checkout_serves_as_the_mirror_of_another_machine(
    bare: Path, first: str, tmp_path: Path
) -> None:
    git(bare, "config", "uploadpack.allowFilter", "true")
    folder = fetch(bare.as_uri(), commit=first, paths=["corpus/dev"], into=tmp_path / "here")
    shutil.rmtree(bare)

    copy = fetch(str(folder), commit=first, paths=["corpus/dev"], into=tmp_path / "there")

    assert files(copy) == files(folder) != {}


def test_a_mirror_without_the_wanted_files_is_an_error(
    bare: Path, first: str, tmp_path: Path
) -> None:
    git(bare, "config", "uploadpack.allowFilter", "true")
    folder = fetch(bare.as_uri(), commit=first, paths=["corpus/dev"], into=tmp_path / "here")
    shutil.rmtree(bare)

    with pytest.raises(ValueError, match=f"{folder.name} has no commit|cannot fetch from"):
        fetch(str(folder), commit=first, paths=["corpus/train"], into=tmp_path / "there")

    assert list((tmp_path / "there").iterdir()) == []


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


def test_many_at_once_share_one_checkout(bare: Path, first: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    with ThreadPoolExecutor(4) as pool:
        calls = [
            pool.submit(fetch, str(bare), commit=first, paths=["corpus/dev"], into=cache)
            for _ in range(4)
        ]
        folders = {call.result() for call in calls}

    assert folders == set(cache.iterdir())
    assert files(folders.pop()) == {"corpus/dev/b.txt": "She liked it .\n"}


@pytest.mark.parametrize("change", ["edit", "delete", "add", "move"])
def test_a_checkout_that_was_changed_is_reported_and_kept(
    change: str, bare: Path, first: str, tmp_path: Path
) -> None:
    folder = fetch(str(bare), commit=first, paths=["corpus"], into=tmp_path / "cache")
    changed = folder / "corpus/dev/b.txt"
    if change == "edit":
        changed.write_text("She liked us .\n", encoding="utf-8")
    elif change == "delete":
        changed.unlink()
    elif change == "add":
        changed.with_name("mine.txt").touch()
    else:
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "mine")
    before = files(folder)

    with pytest.raises(ValueError, match="was changed since it was fetched"):
        fetch(str(bare), commit=first, paths=["corpus"], into=tmp_path / "cache")

    assert files(folder) == before


def test_a_repository_around_the_cache_is_not_taken_for_the_checkout(
    work: Path, first: str
) -> None:
    folder = fetch(str(work), commit=first, paths=["corpus"], into=work / "cache")
    shutil.rmtree(folder / ".git")

    with pytest.raises(ValueError, match=r"is no longer a checkout .*delete that folder"):
        fetch(str(work), commit=first, paths=["corpus"], into=work / "cache")


def test_the_users_own_git_settings_and_hooks_change_nothing(
    bare: Path, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n", encoding="utf-8")
    (hooks / "post-checkout").chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(
        f'[core]\nhooksPath = "{hooks}"\nautocrlf = true\nsparseCheckoutCone = true\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_DIR", str(bare))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))

    folder = fetch(str(bare), commit=first, paths=["corpus/dev"], into=tmp_path / "cache")

    assert (folder / "corpus/dev/b.txt").read_bytes() == b"She liked it .\n"
    assert list(files(folder)) == ["corpus/dev/b.txt"]
    assert not (tmp_path / "ran").exists()


def test_progress_is_gits_own_on_a_terminal_and_one_line_elsewhere(
    bare: Path, first: str, tmp_path: Path
) -> None:
    terminal, file = Terminal(), io.StringIO()

    fetch(str(bare), commit=first, paths=["corpus"], into=tmp_path / "a", progress=terminal)
    fetch(str(bare), commit=first, paths=["corpus"], into=tmp_path / "b", progress=file)

    assert "objects: 100%" in terminal.getvalue()
    assert file.getvalue() == f"fetching corpus of {bare} at {first[:12]}\n"


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
