import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dntm import files


def fill(folder: Path, text: str) -> None:
    (folder / "content.txt").write_text(text)


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["in one step", "in two"])
def _exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in two":
        monkeypatch.setattr(files, "_exchange", lambda *_: False)


@pytest.mark.usefixtures("_exchange")
def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    fill(target, "old")

    with files.new_folder(target, overwrite=True) as folder:
        fill(folder, "new")

    assert (target / "content.txt").read_text() == "new"
    assert leftovers(tmp_path) == ["target"]


@pytest.mark.usefixtures("_exchange")
def test_after_an_error_everything_is_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    fill(target, "old")

    def interrupted() -> None:
        with files.new_folder(target, overwrite=True) as folder:
            fill(folder, "half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()

    assert (target / "content.txt").read_text() == "old"
    assert leftovers(tmp_path) == ["target"]


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with files.new_folder(tmp_path / "link", overwrite=True) as folder:
        fill(folder, "new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "content.txt").read_text() == "new"


def test_a_file_is_replaced_or_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    files.write_text(path, "one")
    files.write_text(path, "two")

    def full(_handle: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_text(path, "three")

    assert path.read_text() == "two"
    assert leftovers(tmp_path) == ["a.txt"]


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")

    files.write_text(tmp_path / "link.txt", "new")

    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    files.write_text(pipe, "through")

    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()
    assert leftovers(tmp_path) == ["pipe"]


def test_what_a_killed_process_left_is_removed_by_the_next_who_writes_there(tmp_path: Path) -> None:
    for name in (".target.a1b2c3d4", ".target.old.a1b2c3d4"):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".kept.a1b2c3d4").mkdir()

    with files.new_folder(tmp_path / "target") as folder:
        fill(folder, "new")

    # What was moved aside stays until the new one is there.
    assert leftovers(tmp_path) == [".kept.a1b2c3d4", ".target.old.a1b2c3d4", "target"]
    with files.new_folder(tmp_path / "target", overwrite=True) as folder:
        fill(folder, "newer")
    assert leftovers(tmp_path) == [".kept.a1b2c3d4", "target"]


def test_what_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    with files.new_folder(tmp_path / "target") as first:
        os.utime(first, (0, 0))
        with files.new_folder(tmp_path / "target") as second:
            fill(second, "second")
        assert first.is_dir()
        shutil.rmtree(tmp_path / "target")
    with files.new_file(tmp_path / "file") as file:
        temporary = next(tmp_path.glob(".file.*"))
        os.utime(temporary, (0, 0))
        files.write_text(tmp_path / "file", "other")
        file.write("mine")

    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_is_one_process_at_a_time_and_the_dead_hold_nothing(tmp_path: Path) -> None:
    hold = "import sys; from pathlib import Path; from dntm.files import folder_of_one\n"
    hold += f"with folder_of_one(Path({str(tmp_path / 'run')!r})): print('in', flush=True); input()"
    other = subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    other.stdout.readline()

    with (
        pytest.raises(ValueError, match="in use by another process"),
        files.folder_of_one(tmp_path / "run"),
    ):
        pass
    other.kill()
    other.communicate()

    with files.folder_of_one(tmp_path / "run"):
        (tmp_path / "run" / "x").touch()
    assert (tmp_path / "run").is_dir()
