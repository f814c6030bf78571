"""What all benchmarks share: options, the clock, and the machine they print.

With one thread, times are processor seconds, which other programs affect least. With several
threads they are wall-clock seconds, because waiting for each other is part of the cost.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dntm.files import write_text
from dntm.training.processes import processor_name


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every benchmark."""

    threads: int = 0
    """CPU threads; 0: as many as PyTorch chooses."""
    json: Path | None = None
    """Also write the numbers to this file."""

    def set_threads(self) -> None:
        """Use the threads asked for."""
        if self.threads:
            torch.set_num_threads(self.threads)

    def save(self, numbers: dict[str, Any]) -> None:
        """Write the numbers, with the machine that they belong to."""
        if self.json:
            ran_on: dict[str, Any] = {"torch": torch.__version__, "machine": processor_name()}
            ran_on |= {"threads": torch.get_num_threads(), "clock": clock_name()}
            write_text(self.json, json.dumps(ran_on | numbers, indent=2) + "\n")
            print(f"numbers: {self.json}")


def clock_name() -> str:
    """Which clock `seconds` reads."""
    return "processor" if torch.get_num_threads() == 1 else "wall clock"


def seconds(run: Callable[[], object]) -> float:
    """The time that a call takes."""
    clock = time.process_time if clock_name() == "processor" else time.perf_counter
    start = clock()
    run()
    return clock() - start


def print_machine() -> None:
    """Print what the numbers below depend on."""
    print(f"machine          {processor_name()}")
    print(f"threads          {torch.get_num_threads():12,} ({clock_name()} seconds)")
