"""How fast the model trains: against the obvious loop, and against what the machine could do.

    ideal tokens/s = tokens / (flops of the equations / best rate of a matrix product)

Flops count real tokens only, no padding, no weight gradients of the frozen encoder, and in the
encoder only the words each direction has to read. A step is the loss, its gradients, clipping to
norm 1 and fused Adam, for both ways. They are timed in turns, and the best time counts, since
other work on the machine can only slow them down.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dntm.benchmark.documents import Document, random_document
from dntm.benchmark.naive import NaiveModel
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.model.reading_state import ReadingState
from dntm.schedule import Stretch

STRETCH = 20
"""Sentences between truncations, as in the paper."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainBenchmark:
    """What was measured."""

    threads: int
    tokens_per_second: float
    naive_tokens_per_second: float
    ideal_tokens_per_second: float
    matmul_gflops: float
    peak_memory_gb: float
    """Of a process that does nothing but train."""
    short_seconds_per_token: float
    long_seconds_per_token: float

    @property
    def of_ideal(self) -> float:
        """Speed as a share of what the machine could do."""
        return self.tokens_per_second / self.ideal_tokens_per_second

    @property
    def speedup(self) -> float:
        """How many times faster than the obvious loop."""
        return self.tokens_per_second / self.naive_tokens_per_second

    @property
    def long_over_short(self) -> float:
        """Time per token in long documents over that in short ones."""
        return self.long_seconds_per_token / self.short_seconds_per_token


def benchmark_training(
    config: ModelConfig,
    *,
    batch: int = 8,
    rounds: int = 3,
    long: int = 400,
    seed: int = 0,
) -> TrainBenchmark:
    """Time training steps on random documents; `long` is the sentences of a long document."""
    if config.variant != "both":
        raise ValueError(
            f"variant {config.variant!r}, expected both: the obvious loop has no other"
        )
    documents = make_batch(config, batch, seed)
    model, naive = make_models(config, seed)
    train, train_naive = Step(model), Step(naive)
    tokens, flops = count_work(model, documents)
    ours, theirs, matmul = [], [], []
    for _ in range(rounds):
        ours.append(seconds(lambda: train_on(model, train, documents)))
        theirs.append(seconds(lambda: train_naively_on(naive, model, train_naive, documents)))
        matmul.append(matmul_gflops())
    short = make_batch(config, batch, seed + 1, sentences=STRETCH)
    lengthy = make_batch(config, batch, seed + 1, sentences=long)
    return TrainBenchmark(
        threads=torch.get_num_threads(),
        tokens_per_second=tokens / min(ours),
        naive_tokens_per_second=tokens / min(theirs),
        ideal_tokens_per_second=tokens / (flops / (max(matmul) * 1e9)),
        matmul_gflops=max(matmul),
        peak_memory_gb=peak_memory_gb(config, batch, seed),
        short_seconds_per_token=min(_per_token(model, train, short) for _ in range(rounds)),
        long_seconds_per_token=_per_token(model, train, lengthy),
    )


class Step:
    """One optimiser step from a loss summed over some tokens."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(self.parameters, lr=1e-3, fused=True)

    def __call__(self, nats: Tensor, tokens: int) -> None:
        """Move the parameters."""
        (nats / tokens).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.adam.step()
        self.adam.zero_grad()


def make_batch(
    config: ModelConfig, batch: int, seed: int, sentences: int | None = None
) -> list[Document]:
    """Random documents of one batch."""
    random = np.random.default_rng(seed)
    sizes = {"vocabulary": config.vocabulary, "entities": config.entities}
    return [random_document(random, **sizes, sentences=sentences) for _ in range(batch)]


def make_models(config: ModelConfig, seed: int) -> tuple[DynamicTextModel, NaiveModel]:
    """A model with its encoder frozen, and the obvious loop over another one just like it."""
    model, other = (DynamicTextModel(config, torch.Generator().manual_seed(seed)) for _ in range(2))
    model.freeze_encoder()
    other.freeze_encoder()
    return model, NaiveModel(other)


def stretches(documents: Sequence[Document]) -> list[tuple[list[Document], list[bool]]]:
    """The sentences between truncations, and which documents go on after them."""
    return [
        (
            [document[start : start + STRETCH] for document in documents],
            [len(document) > start + STRETCH for document in documents],
        )
        for start in range(0, max(map(len, documents)), STRETCH)
    ]


def train_on(model: DynamicTextModel, step: Step, documents: Sequence[Document]) -> None:
    """Train on one batch of documents."""
    state = model.initial_state(len(documents))
    for sentences, goes_on in stretches(documents):
        nats, tokens, state = model.loss(model.plan(sentences, goes_on), state.detach())
        step(nats, tokens)


def train_naively_on(
    naive: NaiveModel, model: DynamicTextModel, step: Step, documents: Sequence[Document]
) -> None:
    """Train on one batch of documents, the obvious way."""
    state: ReadingState = model.initial_state(len(documents))
    for sentences, _ in stretches(documents):
        nats, state = naive.loss(sentences, state.detach())
        step(nats, sum(len(s) - 1 for document in sentences for s in document))


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def matmul_gflops(size: int = 2048, repeats: int = 5) -> float:
    """The best rate at which this machine multiplies square matrices."""
    a, b = torch.randn(2, size, size)
    best = min(seconds(lambda: torch.mm(a, b)) for _ in range(repeats))
    return 2 * size**3 / best / 1e9


def count_work(model: DynamicTextModel, documents: Sequence[Document]) -> tuple[int, float]:
    """Predicted tokens of a batch, and the flops of a training pass over them."""
    plans = [model.plan(*stretch) for stretch in stretches(documents)]
    tokens = sum(len(plan.layout.targets) for plan in plans)
    return tokens, sum(_flops(plan, model.config) for plan in plans)


def _flops(stretch: Stretch, config: ModelConfig) -> float:
    """Multiplications and additions of the equations; with gradients each product costs thrice."""
    x, h, encoder, d = (
        config.embedding_dim, config.hidden_dim, config.encoder_dim, config.context_dim
    )  # fmt: skip
    predicted = len(stretch.layout.targets)
    merged = sum(len(merge.contexts) for level in stretch.levels for merge in level.merges)
    learned = len(stretch.layout.read) * 4 * h * (x + h)
    learned += predicted * h * (config.vocabulary + config.entities)
    learned += merged * (6 * d * d + d * h) + len(stretch.entity_rows) * d * x
    frozen = merged * 2 * encoder * d
    for level in stretch.levels:
        for s, length in enumerate(level.lengths):
            positions = level.position[level.sentence == s]
            reached = positions.max() + length - 1 - positions.min()
            frozen += reached * 4 * encoder * (x + encoder)
    return 2.0 * (3 * learned + 2 * frozen)


def peak_memory_gb(config: ModelConfig, batch: int, seed: int) -> float:
    """Peak memory of a fresh process that trains on one batch."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(_train_and_measure, config, batch, seed).result()


def _train_and_measure(config: ModelConfig, batch: int, seed: int) -> float:
    model = DynamicTextModel(config, torch.Generator().manual_seed(seed))
    model.freeze_encoder()
    train_on(model, Step(model), make_batch(config, batch, seed))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def _per_token(model: DynamicTextModel, step: Step, documents: Sequence[Document]) -> float:
    tokens = sum(len(sentence) - 1 for document in documents for sentence in document)
    return seconds(lambda: train_on(model, step, documents)) / tokens
