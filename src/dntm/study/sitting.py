"""Sittings: what each stretch of work on a cell took, kept in its `machine.json`.

A cell may be stopped and taken up again, also on another machine. Every sitting has its own entry,
brought up to date every few seconds, so that one that is killed counts too.
"""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from dntm.files import write_text
from dntm.study.machine import describe_machine

NOTE_SECONDS = 5.0


class Sitting:
    """One sitting, from its beginning until now."""

    def __init__(self, path: Path, earlier: list[dict[str, Any]], threads: int) -> None:
        self.path = path
        self.earlier = earlier
        self.began = time.monotonic()
        self.noted = float("-inf")
        self.entry = {"began": _now(), **describe_machine(), "threads": threads}

    @classmethod
    def begin(cls, path: Path, threads: int) -> Self:
        """Begin a sitting after those that `path` tells of."""
        earlier: list[dict[str, Any]] = []
        if path.exists():
            try:
                earlier = json.loads(path.read_text(encoding="utf-8"))["sittings"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path} is damaged: {error!r}") from None
        return cls(path, earlier, threads)

    def note(self, *, now: bool = False) -> None:
        """Write the time and memory so far, unless that was done a moment ago."""
        from dntm.benchmark.clock import peak_memory_gb

        moment = time.monotonic()
        if not now and moment - self.noted < NOTE_SECONDS:
            return
        self.noted = moment
        entry = {
            **self.entry,
            "ended": _now(),
            "seconds": round(moment - self.began, 1),
            "peak_memory_gb": round(peak_memory_gb(), 3),
        }
        write_text(self.path, json.dumps({"sittings": [*self.earlier, entry]}, indent=2) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
