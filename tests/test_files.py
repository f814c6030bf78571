import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dntm import files


def fill(folder: Path, text: str) -> None:
    (folder / "content.txt").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_replaced_as_a_whole_and_an_error_leaves_it_unchanged(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    fill(target, "old")

    def replaced(error: type[Exception] | None = None) -> str:
        with files.new_folder(target, overwrite=True) as folder:
            fill(folder, "new")
            if error:
                raise error
        return (target / "content.txt").read_text()

    with pytest.raises(RuntimeError):
        replaced(RuntimeError)
    assert (target / "content.txt").read_text() == "old"
    assert replaced() == "new"
    assert names(tmp_path) == ["target"]


def test_a_full_disk_leaves_the_previous_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    files.write_text(path, "one")
    files.write_text(path, "two")

    def full(_handle: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_text(path, "three")

    assert path.read_text() == "two"
    assert names(tmp_path) == ["a.txt"]


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "link.txt").symlink_to("real.txt")

    files.write_text(tmp_path / "link.txt", "new")
    with files.new_folder(tmp_path / "link", overwrite=True) as folder:
        fill(folder, "new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "content.txt").read_text() == "new"
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    files.write_text(pipe, "through")

    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_temporary_files_of_dead_processes_are_removed(tmp_path: Path, dead: int) -> None:
    host = platform.node()
    stale = f".target.{host}-{dead}-0.tmp"
    kept = [f".other.{host}-{dead}-0.tmp", f".target.another-host-{dead}-0.tmp"]
    for name in (stale, *kept):
        (tmp_path / name).mkdir()

    with files.new_folder(tmp_path / "target") as first:
        files.remove_stale_files(tmp_path, "target")
        assert first.is_dir()
    assert not (tmp_path / stale).exists()
    assert all((tmp_path / name).exists() for name in kept)


def test_the_previous_folder_comes_back_if_a_process_died_while_replacing_it(
    tmp_path: Path, dead: int
) -> None:
    previous = tmp_path / f".target.{platform.node()}-{dead}-1.tmp.old"
    previous.mkdir()
    fill(previous, "old")

    files.remove_stale_files(tmp_path)

    assert (tmp_path / "target" / "content.txt").read_text() == "old"


HOLD = """
import sys
from pathlib import Path
from dntm import files
with files.{manager}: print("held", flush=True); sys.stdin.read()
"""


def holder(manager: str) -> "subprocess.Popen[bytes]":
    code = HOLD.format(manager=manager)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_lock_is_exclusive_and_ends_with_its_holder(tmp_path: Path) -> None:
    path, waited = tmp_path / "locks" / "A-1", []
    other = holder(f"locked(Path({str(path)!r}), print)")
    assert files.is_locked(path)

    def kill() -> None:
        waited.append(time.monotonic())
        other.kill()

    with files.locked(path, kill):
        assert files.is_locked(path)

    other.communicate()
    assert len(waited) == 1
    assert not files.is_locked(path)


def test_a_run_folder_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    other = holder(f"exclusive_folder(Path({str(folder)!r}))")

    with pytest.raises(ValueError, match="in use by another"), files.exclusive_folder(folder):
        pass
    other.kill()
    other.communicate()

    with files.exclusive_folder(folder):
        pass
    assert not folder.exists()
    with files.exclusive_folder(folder):
        (folder / "x").touch()
    assert folder.is_dir()
