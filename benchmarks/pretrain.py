"""Pretraining speed, next to the machine's limit.

    ideal words/s = words / (flops of the equations on them / best rate of a matrix product)

The sentences are random; as in `dntm pretrain`, a batch has sentences of similar length.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import tyro
from jaxtyping import Int
from torch import nn

from benchmarks.roofline import matmul_gflops
from benchmarks.timing import Options, print_machine, seconds
from dntm.corpus.vocabulary import SPECIALS
from dntm.model.context_encoder import ContextEncoder
from dntm.model.sentence_completion import SentenceCompletion
from dntm.training.config import EncoderConfig

BATCH, NEGATIVES, BATCHES = 128, 5, 4
"""The paper's sentences per update and negatives per word; batches per round."""
POOL = 64 * BATCH

Batch = tuple[list[Int[np.ndarray, " _"]], Int[np.ndarray, "_ negatives"]]


@dataclass(frozen=True, kw_only=True)
class PretrainingOptions(Options):
    """Options of this benchmark."""

    vocabulary: int = 10_000
    """Rows of the embedding table."""
    rounds: int = 3
    """How often it is timed; the best time counts."""
    seed: int = 0
    """Seed of the sentences."""
    model: EncoderConfig = field(default_factory=EncoderConfig)


def measure(options: PretrainingOptions) -> dict[str, Any]:
    """Time pretraining on random sentences as long as those of English text."""
    sizes, generator = options.model, torch.Generator().manual_seed(options.seed)
    dims = (sizes.embedding_dim, sizes.encoder_dim, sizes.embedding_dim)
    model = SentenceCompletion(options.vocabulary, ContextEncoder(*dims), generator)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def train(batches: list[Batch]) -> None:
        for sentences, negatives in batches:
            loss = model(sentences, negatives) / len(negatives)
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()

    batches = _batches(np.random.default_rng(options.seed), options.vocabulary)
    train(batches[:1])
    times, gflops = [], []
    for _ in range(options.rounds):
        times.append(seconds(lambda: train(batches)))
        gflops.append(matmul_gflops())
    words = sum(len(negatives) for _, negatives in batches)
    ideal = max(gflops) * 1e9 / flops_per_word(sizes)
    rate = words / min(times)
    return {
        "words": words,
        "words_per_second": rate,
        "ideal_words_per_second": ideal,
        "of_ideal": rate / ideal,
        "matmul_gflops": max(gflops),
    }


def flops_per_word(config: EncoderConfig) -> float:
    """Both LSTMs' steps, Eq. 6, the products with the word and its negatives, and gradients."""
    x, encoder = config.embedding_dim, config.encoder_dim
    products = 2 * 4 * encoder * (x + encoder) + 2 * encoder * x + (1 + NEGATIVES) * x
    return 2.0 * 3 * products


def _batches(random: np.random.Generator, vocabulary: int) -> list[Batch]:
    """Batches of similar length, from sentences of 1 to 32 words, 13 on average."""
    lengths = np.clip(random.gamma(2.2, 13 / 2.2, size=POOL).round().astype(int), 1, 32)
    lengths[::-1].sort()
    found = []
    for start in np.linspace(0, POOL - BATCH, BATCHES).astype(int).tolist():
        chosen = lengths[start : start + BATCH]
        sentences = [random.integers(len(SPECIALS), vocabulary, size=n) for n in chosen]
        negatives = random.integers(len(SPECIALS), vocabulary, size=(chosen.sum(), NEGATIVES))
        found.append((sentences, negatives))
    return found


def main(options: PretrainingOptions) -> None:
    """Print words per second."""
    options.set_threads()
    found = measure(options)
    ideal, share = found["ideal_words_per_second"], found["of_ideal"]
    print_machine()
    print(f"ours             {found['words_per_second']:12,.0f} words/s")
    print(f"ideal            {ideal:12,.0f} words/s ({share:.0%})")
    print(f"matrix product   {found['matmul_gflops']:12,.1f} GF/s")
    options.save(found)


if __name__ == "__main__":
    main(tyro.cli(PretrainingOptions, description=__doc__))
