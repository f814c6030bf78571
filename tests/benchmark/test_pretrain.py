import numpy as np
import torch

from dntm.benchmark.pretrain import (
    PlainCompletion,
    benchmark_pretraining,
    flops_of_a_word,
    random_sentences,
)
from dntm.model.sentence_completion import SentenceCompletion
from dntm.training.config import EncoderConfig


def test_the_plain_implementation_gives_the_same_loss() -> None:
    model = SentenceCompletion(40, 6, 5, torch.Generator().manual_seed(1))
    random = np.random.default_rng(2)
    sentences = random_sentences(random, 9, 40)
    negatives = random.integers(3, 40, size=(sum(map(len, sentences)), 5))

    plain = PlainCompletion(model)

    torch.testing.assert_close(plain(sentences, negatives), model(sentences, negatives))


def test_the_work_of_a_word_is_that_of_its_products() -> None:
    lstms = 2 * 4 * 3 * (2 + 3)
    contexts, words = 6 * 2, 6 * 2

    assert flops_of_a_word(EncoderConfig(embedding_dim=2, encoder_dim=3)) == 6 * (
        lstms + contexts + words
    )


def test_speeds_are_measured() -> None:
    sizes = EncoderConfig(embedding_dim=4, encoder_dim=4)

    found = benchmark_pretraining(sizes, vocabulary=50, rounds=1, seed=0)

    assert found.words > 0
    assert found.words_per_second > 0
    assert found.speedup == found.words_per_second / found.plain_words_per_second
