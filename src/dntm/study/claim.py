"""Claims: only one process at a time works on a part of a study, however many were started.

A claim is a lock that the system lifts when its holder ends, by whatever cause, so that nothing
has to be cleaned up after a kill -9. It also holds between machines that share the folder by NFS.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(path: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file while the block runs; gives its handle.

    Where another process holds it, `waiting` is called once, and then the other waited for. A
    process that is started with the handle holds the lock, too, until it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def is_claimed(path: Path) -> bool:
    """Whether another process holds the lock file right now."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
