"""Processes: one training run on several processes or machines, under `torchrun`.

Every process holds the same weights and reads its share of each batch; torch's DDP adds up their
gradients during the backward pass (gloo on CPUs, NCCL on GPUs). Each loss is weighted by its share
of the whole batch's tokens, so that the sum is the gradient of the whole batch, and a process whose
share is empty takes part with weight zero. The first process alone validates and writes.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

_PATIENCE = timedelta(hours=12)
"""How long a process waits for another that is still alive: the first may be reading a large text
or validating."""


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
        """Go on when all have come this far."""
        self.totals([0.0])

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


def alone() -> Processes:
    """The one process of an ordinary run."""
    return Processes(0, 1, torch.device("cpu"))


@contextmanager
def processes() -> Iterator[Processes]:
    """The processes that torchrun started, or this one alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield alone()
        return
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    rank = int(os.environ["RANK"])
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Processes(rank, count, device)
    except RuntimeError as error:
        if not _is_lost_connection(error):
            raise
        raise ConnectionError(
            f"process {rank + 1} of {count}: another process of this run has ended; "
            "what the last checkpoint holds is safe, start all of them again with --resume"
        ) from None
    finally:
        dist.destroy_process_group()


def _is_lost_connection(error: RuntimeError) -> bool:
    text = str(error).lower()
    return any(sign in text for sign in ("connection", "gloo", "nccl", "socket", "timed out"))
