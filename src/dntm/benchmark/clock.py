"""The clock of the benchmarks, and the memory of a process.

With one thread seconds are those of the processor, which other work on the machine lengthens least;
with several they are those of the clock on the wall, since waiting for each other is part of it.
"""

import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    run()
    return clock() - start


def clock_name() -> str:
    """Which seconds these are."""
    return "processor" if torch.get_num_threads() == 1 else "wall clock"


def peak_memory_gb() -> float:
    """The most memory this process has held so far.

    Linux counts in `ru_maxrss` also what the process that started this one held.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii"))
        if found:
            return int(found[1]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
