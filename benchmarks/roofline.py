"""The roofline: how fast this machine could train at best.

    arithmetic   flops of the equations / best rate of a matrix product
    weights      bytes of the recurrent weights, once per recurrent step / their read rate
    ideal        arithmetic, plus for each recurrent step the time by which reading its weights
                 exceeds its own arithmetic

Flops count real tokens only: no padding, no weight gradients of the frozen encoder, and in the
encoder only the words that each direction has to read. A product with the gradients of both
factors costs three times its forward pass, with that of its input only twice.

A recurrent step multiplies few rows by W_hh (or the GRU's U), once in the forward and once in the
backward pass, and is limited by the rate at which these weights are read. That rate is measured on
a matrix of the same size which is read repeatedly: from the cache if it fits, else from memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmarks.timing import seconds
from dntm.model.config import ModelConfig
from dntm.model.entity_memory import encoder_tokens
from dntm.model.fast.window import EncodedDocument, Window, windows
from dntm.model.language_model import DynamicTextModel

Shape = tuple[int, int]
"""Rows and columns of a weight matrix."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a training pass over some documents."""

    tokens: int
    """Predicted tokens."""
    flops: float
    steps: tuple[tuple[Shape, int], ...]
    """The weights that each recurrent step reads, and the rows it multiplies by them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Measured rates of the machine."""

    gflops: float
    """The best rate of a matrix product."""
    read_rates: dict[Shape, float]
    """GB/s at which weights of a shape are read."""

    @classmethod
    def measure(cls, shapes: set[Shape]) -> "Machine":
        """Measure this machine."""
        return cls(gflops=matmul_gflops(), read_rates={shape: read_rate(shape) for shape in shapes})

    def arithmetic_seconds(self, work: Work) -> float:
        """Time of the arithmetic at the best rate of a matrix product."""
        return work.flops / (self.gflops * 1e9)

    def weights_seconds(self, work: Work) -> float:
        """Time to read the weights of all recurrent steps."""
        return sum(self._reading(shape) for shape, _ in work.steps)

    def ideal_seconds(self, work: Work) -> float:
        """The roofline: at least each of the two, at most their sum."""
        waiting = (
            self._reading(shape) - 2.0 * width * shape[0] * shape[1] / (self.gflops * 1e9)
            for shape, width in work.steps
        )
        return self.arithmetic_seconds(work) + sum(max(0.0, wait) for wait in waiting)

    def _reading(self, shape: Shape) -> float:
        return 4 * shape[0] * shape[1] / (self.read_rates[shape] * 1e9)


def matmul_gflops(size: int = 2048, repeats: int = 5) -> float:
    """The best rate at which this machine multiplies square matrices."""
    a, b = torch.randn(2, size, size)
    best = min(seconds(lambda: torch.mm(a, b)) for _ in range(repeats))
    return 2 * size**3 / best / 1e9


def read_rate(shape: Shape, repeats: int = 10) -> float:
    """GB/s at which repeated products with one vector read a matrix."""
    W, x = torch.randn(shape), torch.randn(shape[1])
    times = max(1, 2**27 // (4 * W.numel()))

    def steps() -> None:
        for _ in range(times):
            torch.mv(W, x)

    best = min(seconds(steps) for _ in range(repeats))
    return 4 * W.numel() * times / best / 1e9


def count_work(
    model: DynamicTextModel, documents: Sequence[EncodedDocument], truncation: int
) -> Work:
    """Count the work of a training pass over a batch."""
    plans = [model.plan(text.sentences, text.continues) for text in windows(documents, truncation)]
    return Work(
        sum(len(plan.layout.targets) for plan in plans),
        sum(_flops(plan, model.config) for plan in plans),
        tuple(step for plan in plans for step in _steps(plan, model.config)),
    )


def _flops(window: Window, config: ModelConfig) -> float:
    x, h, encoder, d = (
        config.embedding_dim, config.hidden_dim, config.encoder_dim, config.context_dim
    )  # fmt: skip
    predicted = len(window.layout.targets)
    merged = len(window.merges.state)
    learned = len(window.layout.read) * 4 * h * (x + h)
    learned += predicted * h * (config.vocabulary + config.entities)
    learned += merged * (6 * d * d + d * h) + len(window.entity_rows) * d * x
    frozen = merged * 2 * encoder * d
    read = sum(len(tokens) for tokens in encoder_tokens(window))
    frozen += read * 4 * encoder * (x + encoder)
    return 2.0 * (3 * learned + 2 * frozen)


def _steps(window: Window, config: ModelConfig) -> list[tuple[Shape, int]]:
    """Every recurrent step of the window, forward and backward."""
    h, encoder, d = config.hidden_dim, config.encoder_dim, config.context_dim
    calls = [*window.ahead, *(rest.call for level in window.levels for rest in level.rests)]
    steps = [((4 * h, h), s.width) for s in window.layout.segments for _ in range(s.steps)]
    steps += [((4 * encoder, encoder), width) for call in calls for width in call.widths]
    merges = [merge for level in window.levels for merge in level.merges]
    steps += [((3 * d, d), len(merge.contexts)) for merge in merges]
    return 2 * steps
