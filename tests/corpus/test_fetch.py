"""Fetching with git, from repositories made here."""

import io
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dntm.corpus.fetch import fetch
from tests.corpus.repositories import FILES, files, git, needs_git

pytestmark = needs_git


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
