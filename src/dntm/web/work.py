"""Work: the threads that run the model, the places in front of them, and each request's time."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dntm.web.limits import Limits, Refused

T = TypeVar("T")


class Workers:
    """A few threads, and a place for each request that is being worked on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="reading")
        self._active = 0

    @property
    def active(self) -> int:
        """How many requests are being worked on."""
        return self._active

    def begin(self) -> "Work":
        """Take a place, if one is free. It must be closed."""
        if self._active >= self._limits.readings:
            raise Refused(
                503, f"{self._limits.readings} texts are being read already: try again in a moment"
            )
        self._active += 1
        return Work(self._pool, self._limits.seconds, self._leave)

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _leave(self) -> None:
        self._active -= 1


class Work:
    """One request's share of the threads: its place, and the time it has left."""

    def __init__(self, pool: ThreadPoolExecutor, limit: float, leave: Callable[[], None]) -> None:
        self._pool = pool
        self._limit = limit
        self._leave = leave
        self._began = time.monotonic()
        self._open = True

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self._began

    def close(self) -> None:
        """Give the place back."""
        if self._open:
            self._open = False
            self._leave()

    async def run(self, task: Callable[[], T]) -> T:
        """Run one task in the pool, if there is time left."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._limit - self.seconds):
                return await loop.run_in_executor(self._pool, task)
        except TimeoutError:
            raise Refused(
                503, f"reading took longer than {self._limit:g} s and was stopped"
            ) from None
