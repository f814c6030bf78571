"""How fast pretraining runs: against a plain implementation, and against what the machine could do.

Both read the same pool of sentences. Ours cuts it by length, as `dntm pretrain` does; the plain one
takes sentences as they come, in packed sequences through PyTorch's bidirectional LSTM. They are
timed in turns, and the best time of each counts.

    ideal words/s = words / (flops of the equations on them / best rate of a matrix product)
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from dntm.benchmark.machine import clock_name, seconds
from dntm.benchmark.roofline import matmul_gflops
from dntm.corpus.vocabulary import BOS, EOS, SPECIALS
from dntm.model.reference import copy_lstm
from dntm.model.sentence_completion import SentenceCompletion
from dntm.training.config import EncoderConfig

BATCH, NEGATIVES, BATCHES = 128, 5, 4
"""The paper's sentences of an update and negatives of a word; batches of a round."""
POOL = 64 * BATCH

Sentence = Int[np.ndarray, " _"]
Batch = tuple[list[Sentence], Int[np.ndarray, "_ negatives"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainBenchmark:
    """What was measured."""

    threads: int
    clock: str
    words: int
    """Words of a round."""
    words_per_second: float
    plain_words_per_second: float
    ideal_words_per_second: float
    matmul_gflops: float

    @property
    def of_ideal(self) -> float:
        """Speed as a share of what the machine could do."""
        return self.words_per_second / self.ideal_words_per_second

    @property
    def speedup(self) -> float:
        """How much faster than the plain implementation."""
        return self.words_per_second / self.plain_words_per_second

    def as_plain(self) -> dict[str, float | int | str]:
        """The numbers as JSON holds them."""
        return {**asdict(self), "of_ideal": self.of_ideal, "speedup": self.speedup}


class PlainCompletion(nn.Module):
    """The obvious way to the same loss."""

    def __init__(self, model: SentenceCompletion) -> None:
        super().__init__()
        dim, double = model.encoder.W_hd.shape
        self.x = nn.Embedding(len(model.x), dim, _weight=model.x.detach().clone())
        self.lstm = nn.LSTM(dim, double // 2, batch_first=True, bidirectional=True)
        self.W_hd = nn.Linear(double, dim)
        copy_lstm(model.encoder.forward_lstm, self.lstm, "l0")
        copy_lstm(model.encoder.backward_lstm, self.lstm, "l0_reverse")
        with torch.no_grad():
            self.W_hd.weight.copy_(model.encoder.W_hd)
            self.W_hd.bias.copy_(model.encoder.b_d)

    def forward(
        self, sentences: Sequence[Sentence], negatives: Int[np.ndarray, "words negatives"]
    ) -> Float[Tensor, ""]:
        """The loss summed over all words of the sentences."""
        rows = [torch.tensor([BOS, *s.tolist(), EOS]) for s in sentences]
        lengths = torch.tensor([len(r) for r in rows])
        padded = self.x(pad_sequence(rows, batch_first=True))
        packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        left, right = h.chunk(2, 2)
        around = torch.cat((left[:, :-2], right[:, 2:]), 2)
        inside = torch.arange(around.shape[1]) < (lengths - 2).unsqueeze(1)
        x_hat = torch.relu(self.W_hd(around[inside]))
        words = torch.from_numpy(np.concatenate(sentences))
        others = self.x(torch.from_numpy(negatives))
        positive = nn.functional.logsigmoid((x_hat * self.x(words)).sum(1)).sum()
        negative = nn.functional.logsigmoid(-(others * x_hat.unsqueeze(1)).sum(2)).sum()
        return -(positive + negative)


def benchmark_pretraining(
    config: EncoderConfig, *, vocabulary: int, rounds: int, seed: int
) -> PretrainBenchmark:
    """Time both on random sentences as long as those of English text."""
    random = np.random.default_rng(seed)
    pool = random_sentences(random, POOL, vocabulary)
    by_length = sorted(pool, key=len, reverse=True)
    ours_read = _batches(by_length, random, vocabulary)
    plain_reads = _batches(pool, random, vocabulary)
    generator = torch.Generator().manual_seed(seed)
    model = SentenceCompletion(vocabulary, config.embedding_dim, config.encoder_dim, generator)
    ours, plain = _trainer(model, fused=True), _trainer(PlainCompletion(model), fused=False)
    for train, batches in ((ours, ours_read), (plain, plain_reads)):
        train(batches[0])
    our_rates, plain_rates, gflops = [], [], []
    for _ in range(rounds):
        our_rates.append(_rate(ours, ours_read))
        plain_rates.append(_rate(plain, plain_reads))
        gflops.append(matmul_gflops())
    return PretrainBenchmark(
        threads=torch.get_num_threads(),
        clock=clock_name(),
        words=sum(len(negatives) for _, negatives in ours_read),
        words_per_second=max(our_rates),
        plain_words_per_second=max(plain_rates),
        ideal_words_per_second=max(gflops) * 1e9 / flops_of_a_word(config),
        matmul_gflops=max(gflops),
    )


def flops_of_a_word(config: EncoderConfig) -> float:
    """Both LSTMs' steps, Eq. 6 and the products with the word and its negatives, and gradients."""
    x, encoder = config.embedding_dim, config.encoder_dim
    products = 2 * 4 * encoder * (x + encoder) + 2 * encoder * x + (1 + NEGATIVES) * x
    return 2.0 * 3 * products


def random_sentences(random: np.random.Generator, count: int, vocabulary: int) -> list[Sentence]:
    """Sentences of 1 to 32 words, 13 on average, as in novels and news."""
    lengths = np.clip(random.gamma(2.2, 13 / 2.2, size=count).round().astype(int), 1, 32)
    return [random.integers(len(SPECIALS), vocabulary, size=length) for length in lengths]


def _batches(pool: list[Sentence], random: np.random.Generator, vocabulary: int) -> list[Batch]:
    """Batches from evenly spaced places of the pool."""
    found = []
    for start in np.linspace(0, POOL - BATCH, BATCHES).astype(int).tolist():
        sentences = pool[start : start + BATCH]
        words = sum(map(len, sentences))
        negatives = random.integers(len(SPECIALS), vocabulary, size=(words, NEGATIVES))
        found.append((sentences, negatives))
    return found


def _trainer(model: nn.Module, *, fused: bool) -> Callable[[Batch], None]:
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)

    def train(batch: Batch) -> None:
        sentences, negatives = batch
        loss = model(sentences, negatives) / len(negatives)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()

    return train


def _rate(train: Callable[[Batch], None], batches: Sequence[Batch]) -> float:
    words = sum(len(negatives) for _, negatives in batches)

    def every() -> None:
        for batch in batches:
            train(batch)

    return words / seconds(every)
