"""How fast the model trains: against the naive loop, and against what the machine could do.

The naive loop is `model.reference.SentenceLoop`: the equations a sentence of every document at a
time, through PyTorch's own layers, with its own Adam. What the machine could do is its roofline.
All are timed in turns on the same batches, and the best time of each counts, since other work on
the machine can only slow them down. Memory is that of a fresh process which does nothing but train.

The documents are a sample of a dataset, or random ones like it: what decides how fast a model reads
are sentence counts and lengths, entities and mentions. Those of random documents follow OntoGUM:
22.7 sentences a document, 18 tokens a sentence, 14 entities a document, 3.3 mentions an entity.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dntm.benchmark.machine import clock_name, machine_name, peak_memory_gb, seconds
from dntm.benchmark.roofline import (
    Machine,
    Shape,
    Work,
    count_work,
    matmul_gflops,
    read_rate,
)
from dntm.corpus.dataset import Dataset
from dntm.corpus.vocabulary import BOS, EOS, entity_rows, row_of_entity
from dntm.model.config import ModelConfig
from dntm.model.fast.window import windows
from dntm.model.language_model import DynamicTextModel
from dntm.model.reference import SentenceLoop

SENTENCES, TOKENS, ENTITIES, MENTIONS = 22.7, 18.0, 14.0, 3.3
"""What is OntoGUM's: a document's sentences, a sentence's tokens, entities, their mentions."""
BATCHES = 3
"""Batches in a round."""
TRUNCATION = 20
"""Sentences between updates, as in the paper."""

Document = list[list[int]]

Train = Callable[[Sequence[Document]], None]
"""Trains on one batch of documents."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainBenchmark:
    """What was measured."""

    machine: str
    """The processor."""
    threads: int
    clock: str
    """Which seconds: see `dntm.benchmark.machine`."""
    tokens: int
    """Predicted tokens of a round."""
    tokens_per_second: float
    naive_tokens_per_second: float
    ideal_tokens_per_second: float
    """The roofline, of the two parts below."""
    arithmetic_tokens_per_second: float
    """If the equations' arithmetic at the best rate of a matrix product were all there is."""
    weights_tokens_per_second: float
    """If reading the weights of every recurrent step were all there is."""
    matmul_gflops: float
    weights_gb_per_second: float
    """The rate at which the LSTM's recurrent weights are read."""
    peak_memory_gb: float
    short_seconds_per_token: float
    """In documents of one BPTT window."""
    long_seconds_per_token: float

    @property
    def of_ideal(self) -> float:
        """Speed as a share of what the machine could do."""
        return self.tokens_per_second / self.ideal_tokens_per_second

    @property
    def speedup(self) -> float:
        """How many times faster than the naive loop."""
        return self.tokens_per_second / self.naive_tokens_per_second

    @property
    def long_over_short(self) -> float:
        """Time per token in long documents over that in short ones."""
        return self.long_seconds_per_token / self.short_seconds_per_token

    def as_plain(self) -> dict[str, Any]:
        """Everything measured and derived, for JSON."""
        derived = ("of_ideal", "speedup", "long_over_short")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def make_model(config: ModelConfig, seed: int) -> DynamicTextModel:
    """A model with its encoder frozen."""
    model = DynamicTextModel(config, torch.Generator().manual_seed(seed))
    model.freeze_encoder()
    return model


def trainer(model: DynamicTextModel) -> Train:
    """Training as `dntm train` does it."""
    learned = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(learned, lr=1e-3, fused=True)

    def train(documents: Sequence[Document]) -> None:
        state = model.initial_state(len(documents))
        for text in windows(documents, TRUNCATION):
            window = model.plan(text.sentences, text.continues)
            nats, tokens, state = model.loss(window, state.detach().select(text.kept))
            _update(nats / tokens, adam, learned)

    return train


def naive_trainer(naive: SentenceLoop) -> Train:
    """Training the naive way, with Adam as PyTorch gives it."""
    learned = [p for p in naive.parameters() if p.requires_grad]
    adam = torch.optim.Adam(learned, lr=1e-3)

    def train(documents: Sequence[Document]) -> None:
        states = [naive.reference.begin() for _ in documents]
        for text in windows(documents, TRUNCATION):
            nats, states = naive.loss(text.sentences, [states[i].detach() for i in text.kept])
            tokens = sum(len(s) - 1 for document in text.sentences for s in document)
            _update(nats / tokens, adam, learned)

    return train


def _update(loss: Tensor, adam: torch.optim.Adam, learned: list[nn.Parameter]) -> None:
    adam.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(learned, 1.0)
    adam.step()


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
        raise ValueError(f"variant {config.variant!r}, expected both: the naive loop has no other")
    config, batches = make_batches(config, dataset, batch, seed)
    model = make_model(config, seed)
    ours, theirs = trainer(model), naive_trainer(SentenceLoop(make_model(config, seed)))
    work = [count_work(model, documents, TRUNCATION) for documents in batches]
    tokens, shapes = sum(w.tokens for w in work), {shape for w in work for shape, _ in w.steps}
    turns = [(_round(ours, batches), _round(theirs, batches), _measure(shapes))
             for _ in range(rounds)]  # fmt: skip
    our_seconds, their_seconds, measured = zip(*turns, strict=True)
    machine = Machine(
        name=machine_name(),
        gflops=max(found.gflops for found in measured),
        read_rates={s: max(found.read_rates[s] for found in measured) for s in shapes},
    )

    def ideal(part: Callable[[Work], float]) -> float:
        return tokens / sum(map(part, work))

    short, lengthy = (_alike(config, batch, seed, sentences) for sentences in (TRUNCATION, long))
    return TrainBenchmark(
        machine=machine.name,
        threads=torch.get_num_threads(),
        clock=clock_name(),
        tokens=tokens,
        tokens_per_second=tokens / min(our_seconds),
        naive_tokens_per_second=tokens / min(their_seconds),
        ideal_tokens_per_second=ideal(machine.ideal_seconds),
        arithmetic_tokens_per_second=ideal(machine.arithmetic_seconds),
        weights_tokens_per_second=ideal(machine.weights_seconds),
        matmul_gflops=machine.gflops,
        weights_gb_per_second=machine.read_rates[4 * config.hidden_dim, config.hidden_dim],
        peak_memory_gb=training_memory_gb(config, batches[0], seed),
        short_seconds_per_token=min(_per_token(ours, short) for _ in range(2 * rounds)),
        long_seconds_per_token=_per_token(ours, lengthy),
    )


def _measure(shapes: set[Shape]) -> Machine:
    rates = {shape: read_rate(shape) for shape in shapes}
    return Machine(name=machine_name(), gflops=matmul_gflops(), read_rates=rates)


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


def training_memory_gb(config: ModelConfig, documents: Sequence[Document], seed: int) -> float:
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


def sample_documents(dataset: Dataset, count: int, seed: int) -> list[Document]:
    """So many documents of the train split, drawn with the seed, as rows of its vocabulary."""
    documents = list(dataset.documents("train"))
    if len(documents) < count:
        raise ValueError(
            f"{dataset.folder} has {len(documents)} documents in its train split, "
            f"expected at least {count}"
        )
    chosen = np.random.default_rng(seed).permutation(len(documents))[:count]
    encode = dataset.vocabulary.encode
    return [[encode(sentence) for sentence in documents[d].sentences] for d in chosen]


def random_documents(
    seed: int, *, vocabulary: int, entities: int, sentences: int | None = None
) -> Iterator[Document]:
    """Any number of random documents, always the same for a seed."""
    random = np.random.default_rng(seed)
    while True:
        yield random_document(random, vocabulary=vocabulary, entities=entities, sentences=sentences)


def random_document(
    random: np.random.Generator,
    *,
    vocabulary: int,
    entities: int,
    sentences: int | None = None,
) -> Document:
    """One document as rows of a vocabulary; of random length if no number of sentences is given."""
    count = sentences or max(2, round(random.gamma(4, SENTENCES / 4)))
    lengths = np.clip(random.gamma(2.2, TOKENS / 2.2, size=count).round().astype(int), 2, 60)
    text = [
        random.integers(entity_rows(entities).stop, vocabulary, size=length) for length in lengths
    ]
    present = int(np.clip(round(ENTITIES * count / SENTENCES), 1, entities))
    often = np.arange(1, present + 1) ** -0.7
    mentions = round(MENTIONS * ENTITIES * count / SENTENCES)
    chosen = random.choice(present, size=max(0, mentions - present), p=often / often.sum())
    for entity in (*range(present), *chosen):
        sentence = text[random.integers(count)]
        sentence[random.integers(len(sentence))] = -1 - entity
    return _number_entities(text)


def _number_entities(text: list[np.ndarray]) -> Document:
    """Rows for the entities, marked by numbers below zero, in order of first appearance."""
    rows: dict[int, int] = {}
    return [
        [
            BOS,
            *(rows.setdefault(t, row_of_entity(1 + len(rows))) if t < 0 else t for t in s.tolist()),
            EOS,
        ]
        for s in text
    ]
