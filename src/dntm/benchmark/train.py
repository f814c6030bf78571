"""How fast the model trains: against the obvious loop, and against what the machine could do.

All are timed in turns on the same batches, and the best time of each counts, since other work on
the machine can only slow them down. Memory is that of a fresh process which does nothing but train.
"""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from dntm.benchmark.clock import clock_name, peak_memory_gb, seconds
from dntm.benchmark.documents import Document, random_documents, sample_documents
from dntm.benchmark.naive import NaiveModel
from dntm.benchmark.step import TRUNCATION, Train, make_model, naive_trainer, trainer
from dntm.benchmark.work import count_work, matmul_gflops
from dntm.corpus.dataset import Dataset
from dntm.model.config import ModelConfig

BATCHES = 3
"""Batches in a round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainBenchmark:
    """What was measured."""

    threads: int
    clock: str
    """Which seconds: see `dntm.benchmark.clock`."""
    tokens: int
    """Predicted tokens of a round."""
    tokens_per_second: float
    naive_tokens_per_second: float
    ideal_tokens_per_second: float
    matmul_gflops: float
    peak_memory_gb: float
    short_seconds_per_token: float
    """In documents of one stretch."""
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

    def as_plain(self) -> dict[str, Any]:
        """Everything measured and derived, for JSON."""
        derived = ("of_ideal", "speedup", "long_over_short")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def benchmark_training(
    config: ModelConfig,
    *,
    dataset: Path | None = None,
    batch: int = 8,
    rounds: int = 3,
    long: int = 400,
    seed: int = 0,
) -> TrainBenchmark:
    """Time training on a dataset's documents, or random ones, with a model of this shape.

    `long` is the sentences of a long document. A dataset decides the size of the vocabulary.
    """
    for name, value in (("batch", batch), ("rounds", rounds), ("long", long)):
        if value < 1:
            raise ValueError(f"{name} is {value}, expected at least 1")
    if config.variant != "both":
        raise ValueError(
            f"variant {config.variant!r}, expected both: the obvious loop has no other"
        )
    config, batches = make_batches(config, dataset, batch, seed)
    model = make_model(config, seed)
    ours, theirs = trainer(model), naive_trainer(NaiveModel(make_model(config, seed)))
    work = [count_work(model, documents, TRUNCATION) for documents in batches]
    tokens, flops = sum(t for t, _ in work), sum(f for _, f in work)
    turns = [(_round(ours, batches), _round(theirs, batches), matmul_gflops())
             for _ in range(rounds)]  # fmt: skip
    our_seconds, their_seconds, gflops = zip(*turns, strict=True)
    short, lengthy = (_alike(config, batch, seed, sentences) for sentences in (TRUNCATION, long))
    return TrainBenchmark(
        threads=torch.get_num_threads(),
        clock=clock_name(),
        tokens=tokens,
        tokens_per_second=tokens / min(our_seconds),
        naive_tokens_per_second=tokens / min(their_seconds),
        ideal_tokens_per_second=tokens / (flops / (max(gflops) * 1e9)),
        matmul_gflops=max(gflops),
        peak_memory_gb=_training_memory_gb(config, batches[0], seed),
        short_seconds_per_token=min(_per_token(ours, short) for _ in range(2 * rounds)),
        long_seconds_per_token=_per_token(ours, lengthy),
    )


def make_batches(
    config: ModelConfig, dataset: Path | None, batch: int, seed: int
) -> tuple[ModelConfig, list[list[Document]]]:
    """The batches of a round, and the configuration with the vocabulary they need."""
    if dataset is None:
        found = random_documents(seed, vocabulary=config.vocabulary, entities=config.entities)
        documents = list(islice(found, batch * BATCHES))
    else:
        opened = Dataset.open(dataset)
        documents = sample_documents(opened, batch * BATCHES, seed)
        vocabulary = opened.vocabulary
        config = replace(config, vocabulary=len(vocabulary), entities=vocabulary.entities)
    return config, [documents[start : start + batch] for start in range(0, len(documents), batch)]


def _alike(config: ModelConfig, batch: int, seed: int, sentences: int) -> list[Document]:
    """One batch of random documents, all of so many sentences."""
    found = random_documents(
        seed, vocabulary=config.vocabulary, entities=config.entities, sentences=sentences
    )
    return list(islice(found, batch))


def _round(train: Train, batches: Sequence[Sequence[Document]]) -> float:
    def every() -> None:
        for documents in batches:
            train(documents)

    return seconds(every)


def _per_token(train: Train, documents: Sequence[Document]) -> float:
    tokens = sum(len(sentence) - 1 for document in documents for sentence in document)
    return seconds(lambda: train(documents)) / tokens


def _training_memory_gb(config: ModelConfig, documents: Sequence[Document], seed: int) -> float:
    """Peak memory of a fresh process that trains on one batch."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        threads = torch.get_num_threads()
        return pool.submit(_train_and_measure, config, documents, seed, threads).result()


def _train_and_measure(
    config: ModelConfig, documents: Sequence[Document], seed: int, threads: int
) -> float:
    torch.set_num_threads(threads)
    trainer(make_model(config, seed))(documents)
    return peak_memory_gb()
