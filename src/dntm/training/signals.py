"""Stopping a run: by Ctrl-C or SIGTERM, between two updates, with nothing lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CHECKPOINT_SECONDS = 120.0
"""How much work an interruption can cost, at most."""


class Interrupted(Exception):  # noqa: N818
    """A signal stopped the run; its state is saved."""


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collects the first Ctrl-C or SIGTERM, so that the run can end between two batches.

    Only the main thread may; in another one a signal ends the program as it always does.
    """
    stopped: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)

    previous = {n: signal.signal(n, stop) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
