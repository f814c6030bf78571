"""Processes: one training run on several processes or machines, under `torchrun`.

Every process holds the same weights and reads its share of each batch; torch's DDP adds up their
gradients during the backward pass (gloo on CPUs, NCCL on GPUs). Each loss is weighted by its share
of the whole batch's tokens, so that the sum is the gradient of the whole batch, and a process whose
share is empty takes part with weight zero. The first process alone validates and writes.

A process that was killed is not always noticed by the others: some of gloo's calls wait for it for
ever, and no signal is heard in there. So each process has a connection to the first and sends a
beat a second; where one ends without a word, the others do, too (`_watched`).

How many threads each has: as many as it is given, or as OMP_NUM_THREADS says, or as many cores as
are idle when it starts. Threads that share a core wait for each other at every matrix product: a
small training with two threads ran 15 times slower than with one where both cores were taken.

Ctrl-C and SIGTERM stop a run between two updates, with nothing lost.
"""

import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

Device = Literal["auto", "cpu", "cuda", "mps"]
MOST_THREADS = 256
CHECKPOINT_SECONDS = 120.0
"""How much work an interruption can cost, at most."""
CROWDED = 0.5
"""How many cores' worth of work may be too much before a run says so."""
_PATIENCE = timedelta(hours=12)
"""How long a process waits for another that is still alive: the first may be reading a large text
or validating."""
_JOINING = timedelta(minutes=10)
"""How long the processes of a run wait for each other to come."""
_BEAT = 1.0
"""Seconds from one sign of life to the next."""
_SILENCE = 30
"""After how many beats of which nothing is heard a process counts as dead."""
_GRACE = 10.0
"""Seconds that torch has to notice it, before this process is ended."""


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


@dataclass(frozen=True)
class Processes:
    """Which process this is, and how many there are."""

    rank: int
    count: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process validates and writes."""
        return self.rank == 0

    def wait(self) -> None:
        """Go on when all have come this far; signals are heard meanwhile."""
        if self.count > 1:
            work = dist.all_reduce(torch.zeros(1, device=self.device), async_op=True)
            while not work.is_completed():
                time.sleep(0.01)
            work.wait()

    def totals(self, values: Sequence[float]) -> list[float]:
        """Sums over all processes."""
        if self.count == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared)
        found: list[float] = shared.tolist()
        return found

    def share_gradients(self, step: nn.Module) -> nn.Module:
        """The module with its gradients summed over all processes; its loss is to be multiplied
        by `count`, since DDP takes the mean.
        """
        if self.count == 1:
            return step
        return DistributedDataParallel(step, find_unused_parameters=True)


def alone(device: Device = "cpu") -> Processes:
    """The one process of an ordinary run."""
    return Processes(0, 1, device_of(device))


def device_of(name: Device) -> torch.device:
    """Where to compute; auto is a CUDA device where there is one, else the CPU."""
    available = {"cpu": True, "cuda": torch.cuda.is_available()}
    if name == "auto":
        return torch.device("cuda" if available["cuda"] else "cpu")
    available["mps"] = torch.backends.mps.is_available()
    if not available[name]:
        found = ", ".join(kind for kind, there in available.items() if there)
        raise ValueError(f"device is {name!r}, but PyTorch finds none here, only {found}")
    return torch.device(name)


def set_threads(given: int = 0) -> int:
    """Let matrix products use so many threads; returns how many."""
    if not 0 <= given <= MOST_THREADS:
        raise ValueError(f"threads is {given}, expected 0 to {MOST_THREADS}")
    if given or not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(given or idle_cores())
    return torch.get_num_threads()


def idle_cores(seconds: float = 0.2) -> int:
    """How many cores of this machine nothing else uses right now, at least one."""
    crowd = Crowd()
    time.sleep(seconds)
    return max(1, min(crowd.mine, round(crowd.cores - crowd.others())))


class Crowd:
    """What other programs take of the machine's cores (on Linux; elsewhere nothing is known)."""

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        affinity = getattr(os, "sched_getaffinity", None)
        self.mine = len(affinity(0)) if affinity else self.cores
        """Cores that this process may use."""
        self._start = self._now()

    def others(self) -> float:
        """How many cores others have kept busy since the beginning, on average."""
        seconds, busy, own = (b - a for a, b in zip(self._start, self._now(), strict=True))
        return max(0.0, busy - own) / seconds if seconds else 0.0

    def warning(self, threads: int) -> str | None:
        """What to say where more is running than there are cores."""
        others = self.others()
        if others + threads <= self.cores + CROWDED:
            return None
        say = f"other programs keep {others:.1f} of {self.cores} cores busy"
        return f"{say}: --threads 1 may be faster than {threads}" if threads > 1 else say

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """The clock, and the seconds of processor time of all programs and of this one."""
        own = time.process_time()
        try:
            line = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0]
            user, nice, system, _, _, *rest = map(int, line.split()[1:])
            busy = (user + nice + system + sum(rest[:3])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError):
            busy = own
        return time.monotonic(), busy, own


@contextmanager
def processes(device: Device = "auto") -> Iterator[Processes]:
    """The processes that torchrun started, or this one alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield alone(device)
        return
    where = device_of(device)
    if where.type == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(where)
    rank = int(os.environ["RANK"])
    group = Processes(rank, count, where)
    lost = (
        f"process {rank + 1} of {count}: another process of this run has ended; "
        "what the last checkpoint holds is safe, start all of them again with --resume"
    )
    with ExitStack() as watch:
        try:
            _join(group, watch, lost)
            try:
                yield group
            except Interrupted:
                group.wait()  # the first may still be saving
                raise
            group.wait()  # nobody leaves while another still uses the connections
        except RuntimeError as error:
            if not _is_lost_connection(error):
                raise
            raise ConnectionError(lost) from None
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


def _join(group: Processes, watch: ExitStack, lost: str) -> None:
    """Meet the other processes; from then on `watch` sees to it that none is waited for in vain."""
    try:
        with _signals_end():
            store, _, _ = next(rendezvous("env://", timeout=_JOINING))
            peers = watch.enter_context(_connected(store, group.rank, group.count))
    except (RuntimeError, OSError) as error:
        raise ConnectionError(
            f"process {group.rank + 1} of {group.count}: the others have not come: {error}"
        ) from None
    watch.enter_context(_watched(peers, lost))
    dist.init_process_group(
        "nccl" if group.device.type == "cuda" else "gloo",
        store=store,
        rank=group.rank,
        world_size=group.count,
        timeout=_PATIENCE,
    )


@contextmanager
def _signals_end() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the process at once, wherever it waits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def _connected(store: Any, rank: int, count: int) -> Iterator[list[socket.socket]]:
    """A connection to the first process; in the first, one to every other.

    The first tells through the store where it listens, and a word by which it knows its own.
    """
    with ExitStack() as opened:
        seconds = _JOINING.total_seconds()
        if rank > 0:
            port, word = store.get("watch").decode().split()
            peer = socket.create_connection((os.environ["MASTER_ADDR"], int(port)), timeout=seconds)
            opened.enter_context(peer)
            peer.sendall(word.encode())
            yield [peer]
            return
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        with socket.create_server(("", 0), family=family, dualstack_ipv6=both) as server:
            word = secrets.token_hex(16)
            store.set("watch", f"{server.getsockname()[1]} {word}")
            server.settimeout(seconds)
            peers: list[socket.socket] = []
            while len(peers) < count - 1:
                peer, _ = server.accept()
                opened.enter_context(peer)
                peer.settimeout(_GRACE)
                with suppress(OSError):
                    if secrets.compare_digest(peer.recv(32, socket.MSG_WAITALL), word.encode()):
                        peers.append(peer)
        yield peers


@contextmanager
def _watched(peers: Sequence[socket.socket], lost: str) -> Iterator[None]:
    """While the block runs, end this process soon after another one has ended."""
    left = threading.Event()
    thread = threading.Thread(target=_watch, args=(peers, left, lost), daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _watch(peers: Sequence[socket.socket], left: threading.Event, lost: str) -> None:
    for peer in peers:
        peer.setblocking(False)  # noqa: FBT003
    # Beats, not seconds: where all are suspended together, nobody is late
    silent = [0] * len(peers)
    while max(silent) < _SILENCE:
        if left.wait(_BEAT):
            return
        silent = [_missed(peer, before) for peer, before in zip(peers, silent, strict=True)]
    if not left.wait(_GRACE):
        sys.stderr.write(f"dntm: error: {lost}\n")
        sys.stderr.flush()
        os._exit(1)


def _missed(peer: socket.socket, before: int) -> int:
    """How many beats in a row are missing; of a connection that has ended, all."""
    try:
        with suppress(BlockingIOError):
            peer.send(b".")
        return 0 if peer.recv(4096) else _SILENCE
    except BlockingIOError:
        return before + 1
    except OSError:
        return _SILENCE


def _is_lost_connection(error: RuntimeError) -> bool:
    text = str(error).lower()
    return any(sign in text for sign in ("connection", "gloo", "nccl", "socket", "timed out"))
