"""Writing so that nothing is ever half there: a temporary name first, then moved into place."""

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name and move it into place."""
    with new_file(path) as file:
        file.write(text)


@contextmanager
def new_file(path: Path) -> Iterator[TextIO]:
    """A file under a temporary name that takes its place when the block ends well.

    A link stays, and what it points to is replaced; a device or a pipe is written to as it is.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        follow_umask(Path(temporary), 0o666)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder beside `target` that takes its place when the block ends well.

    What stood there before is removed only after the new folder is in place; after an error
    everything is as it was.
    """
    if target.exists() and not overwrite:
        raise ValueError(f"{target} exists already: choose another folder or pass --overwrite")
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield temporary
        follow_umask(temporary, 0o777)
        if not target.exists():
            temporary.replace(target)
        elif _exchange(temporary, target):
            shutil.rmtree(temporary)
        else:
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old."))
            target.replace(old / "content")
            try:
                temporary.replace(target)
            except BaseException:
                (old / "content").replace(target)
                raise
            finally:
                shutil.rmtree(old)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step (Linux); False where the system cannot."""
    here, exchange = -100, 2
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done: int = rename(here, os.fsencode(one), here, os.fsencode(other), exchange)
    return done == 0


def follow_umask(path: Path, mode: int) -> None:
    """Temporary files are private; what is moved into place follows the user's umask."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)
