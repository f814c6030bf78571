"""Processes: one training run on several processes or machines, started by `torchrun`.

Every process holds the same weights and reads its share of each batch. DDP sums the gradients
during the backward pass (gloo on CPUs, NCCL on GPUs). Each loss is weighted by its share of the
batch's tokens, so the sum is the gradient of the whole batch; a process without documents takes
part with a loss of zero. Only the first process validates and writes. If a process dies, torchrun's
agent ends the others.

Ctrl-C and SIGTERM stop a run between two updates, after its state is saved.
"""

import os
import platform
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

Device = Literal["auto", "cpu", "cuda", "mps"]
MAX_THREADS = 256
_TIMEOUT = timedelta(hours=12)
"""The others wait while the first process validates or reads a large text."""


class Interrupted(Exception):  # noqa: N818
    """A signal stopped the run; its state is saved."""


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Compute matrix products of single precision this way; see `Optimization`."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collect the first Ctrl-C or SIGTERM, so that the run can end between two batches."""
    stopped: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # which gets no signals
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
    if stopped:  # after the last batch
        raise Interrupted


@dataclass(frozen=True)
class Processes:
    """The rank of this process, the number of processes, and the device."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process validates and writes."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if self.count > 1:
            dist.barrier()

    def totals(self, values: Sequence[float]) -> list[float]:
        """Sums over all processes."""
        if self.count == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared)
        found: list[float] = shared.tolist()
        return found

    def share_gradients(self, step: nn.Module) -> nn.Module:
        """Wrap the module in DDP, which takes the mean: multiply its loss by `count`."""
        if self.count == 1:
            return step
        return DistributedDataParallel(step, find_unused_parameters=True, broadcast_buffers=False)


def device_of(name: Device) -> torch.device:
    """The device; auto: CUDA if available, else the CPU."""
    available = {"cpu": True, "cuda": torch.cuda.is_available()}
    if name == "auto":
        return torch.device("cuda" if available["cuda"] else "cpu")
    available["mps"] = torch.backends.mps.is_available()
    if not available[name]:
        found = ", ".join(kind for kind, there in available.items() if there)
        raise ValueError(f"device is {name!r}, but PyTorch finds none here, only {found}")
    return torch.device(name)


def set_threads(threads: int) -> None:
    """Set PyTorch's CPU threads; 0: keep PyTorch's default."""
    if not 0 <= threads <= MAX_THREADS:
        raise ValueError(f"threads is {threads}, expected 0 to {MAX_THREADS}")
    if threads:
        torch.set_num_threads(threads)


def processor_name() -> str:
    """The model name of the processor."""
    return _system_file("cpuinfo", r"^model name\s*:\s*(.+)$") or platform.machine()


def peak_memory_gb() -> float:
    """Peak memory of this process so far."""
    # On Linux, ru_maxrss includes the memory of the process that started this one.
    if found := _system_file("self/status", r"^VmHWM:\s*(\d+) kB"):
        return int(found) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def _system_file(name: str, pattern: str) -> str:
    """The first match in a file of /proc; empty if there is none (not Linux)."""
    try:
        text = Path("/proc", name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else ""


@contextmanager
def processes(device: Device = "auto") -> Iterator[Processes]:
    """Join the processes that torchrun started; without torchrun, this one alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(0, 1, device_of(device))
        return
    where = device_of(device)
    if where.type == "cuda":
        where = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(where)
    dist.init_process_group("nccl" if where.type == "cuda" else "gloo", timeout=_TIMEOUT)
    group = Processes(dist.get_rank(), count, where)
    try:
        yield group
    except Interrupted:
        group.wait()  # until the first process has saved
        raise
    else:
        group.wait()
    finally:
        dist.destroy_process_group()
