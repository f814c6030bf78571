"""Training speed, next to the naive loop and the roofline of the machine.

All are timed in turns on the same batches, and the best time of each counts, since other programs
can only slow them down. Memory is that of a fresh process which only trains.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import Tensor, nn

from benchmarks.documents import Document, make_batches, random_documents
from benchmarks.naive import SentenceLoop
from benchmarks.roofline import Machine, Work, count_work
from benchmarks.timing import Options, print_machine, seconds
from dntm.model.config import ModelConfig
from dntm.model.fast.window import windows
from dntm.model.language_model import DynamicTextModel
from dntm.training.processes import peak_memory_gb

TRUNCATION = 20
"""Sentences between updates, as in the paper."""
LONG = 400
"""Sentences of a long document."""

Train = Callable[[Sequence[Document]], None]
"""Trains on one batch of documents."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Options):
    """Options of benchmarks that train."""

    dataset: Path | None = None
    """The dataset folder to sample documents from; if omitted, random documents."""
    batch: int = 8
    """Documents per batch."""
    rounds: int = 3
    """How often each is timed; the best time counts."""
    seed: int = 0
    """Seed of the sample."""
    model: ModelConfig = field(default_factory=ModelConfig)

    @property
    def text(self) -> str:
        """What is read."""
        return "random documents" if self.dataset is None else str(self.dataset)


def make_model(config: ModelConfig, seed: int) -> DynamicTextModel:
    """A model with its encoder frozen."""
    model = DynamicTextModel(config, torch.Generator().manual_seed(seed))
    model.freeze_encoder()
    return model


def trainer(model: DynamicTextModel) -> Train:
    """Train as `dntm train` does."""
    learned = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(learned, lr=1e-3, fused=True)

    def train(documents: Sequence[Document]) -> None:
        state = model.initial_state(len(documents))
        for text in windows(documents, TRUNCATION):
            window = model.plan(text.sentences, text.continues)
            nats, found = model.loss(window, state.detach().select(text.kept))
            state = found.after
            _update(nats / len(window.layout.targets), adam, learned)

    return train


def naive_trainer(naive: SentenceLoop) -> Train:
    """Train with the naive loop and PyTorch's default Adam."""
    learned = [p for p in naive.parameters() if p.requires_grad]
    adam = torch.optim.Adam(learned, lr=1e-3)

    def train(documents: Sequence[Document]) -> None:
        states = [naive.begin() for _ in documents]
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


def measure(options: TrainingOptions, long: int = LONG) -> dict[str, Any]:
    """Time training; a dataset determines the size of the vocabulary."""
    config, batches = make_batches(options.model, options.dataset, options.batch, options.seed)
    model = make_model(config, options.seed)
    ours = trainer(model)
    naive = naive_trainer(SentenceLoop(make_model(config, options.seed)))
    work = [count_work(model, documents, TRUNCATION) for documents in batches]
    tokens, shapes = sum(w.tokens for w in work), {shape for w in work for shape, _ in w.steps}
    our_seconds, naive_seconds, measured = [], [], []
    for _ in range(options.rounds):
        our_seconds.append(_round(ours, batches))
        naive_seconds.append(_round(naive, batches))
        measured.append(Machine.measure(shapes))
    machine = Machine(
        gflops=max(found.gflops for found in measured),
        read_rates={s: max(found.read_rates[s] for found in measured) for s in shapes},
    )

    def at_best(part: Callable[[Work], float]) -> float:
        return tokens / sum(map(part, work))

    rate, naive_rate = tokens / min(our_seconds), tokens / min(naive_seconds)
    ideal = at_best(machine.ideal_seconds)
    short, lengthy = (
        random_documents(config, options.batch, options.seed, sentences)
        for sentences in (TRUNCATION, long)
    )
    per_short = min(_per_token(ours, short) for _ in range(2 * options.rounds))
    per_long = _per_token(ours, lengthy)
    return {
        "tokens": tokens,
        "tokens_per_second": rate,
        "naive_tokens_per_second": naive_rate,
        "speedup": rate / naive_rate,
        "ideal_tokens_per_second": ideal,
        "of_ideal": rate / ideal,
        "arithmetic_tokens_per_second": at_best(machine.arithmetic_seconds),
        "weights_tokens_per_second": at_best(machine.weights_seconds),
        "matmul_gflops": machine.gflops,
        "weights_gb_per_second": machine.read_rates[4 * config.hidden_dim, config.hidden_dim],
        "peak_memory_gb": training_memory_gb(config, batches[0], options.seed),
        "short_seconds_per_token": per_short,
        "long_seconds_per_token": per_long,
    }


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


def main(options: TrainingOptions) -> None:
    """Print tokens per second."""
    options.set_threads()
    found = measure(options)
    rates = {name: f"{value:12,.0f} tokens/s" for name, value in found.items()}
    short, long = (found[f"{name}_seconds_per_token"] * 1e3 for name in ("short", "long"))
    print(f"{found['tokens']:,} tokens of {options.text} in batches of {options.batch}")
    print_machine()
    print(f"ours             {rates['tokens_per_second']}")
    print(f"naive loop       {rates['naive_tokens_per_second']} ({found['speedup']:.2f}x)")
    share = f"({found['of_ideal']:.0%})"
    print(f"ideal            {rates['ideal_tokens_per_second']} {share}, the roofline of")
    arithmetic = f"matrix products at {found['matmul_gflops']:,.1f} GF/s"
    print(f"  arithmetic     {rates['arithmetic_tokens_per_second']}: {arithmetic}")
    reading = f"read at each recurrent step at {found['weights_gb_per_second']:,.1f} GB/s"
    print(f"  weights        {rates['weights_tokens_per_second']}: {reading}")
    print(f"peak memory      {found['peak_memory_gb']:12,.2f} GB")
    print(f"20 sentences     {short:12,.3f} ms/token")
    print(f"400 sentences    {long:12,.3f} ms/token ({long / short:.2f}x)")
    options.save({"text": options.text, "batch": options.batch, "seed": options.seed} | found)


if __name__ == "__main__":
    main(tyro.cli(TrainingOptions, description=__doc__))
