"""The benchmark compares two ways to the same numbers."""

import numpy as np
import pytest
import torch

from dntm.benchmark.documents import random_document
from dntm.benchmark.train import (
    benchmark_training,
    count_work,
    make_batch,
    make_models,
    stretches,
)
from dntm.model.config import ModelConfig

SMALL = ModelConfig(
    vocabulary=80, entities=50, embedding_dim=8, hidden_dim=8, encoder_dim=8, context_dim=8
)


def test_the_obvious_loop_gives_the_same_loss_and_gradients() -> None:
    model, naive = make_models(SMALL, seed=3)
    model, naive = model.double(), naive.double()
    ours = theirs = model.initial_state(4)

    for sentences, goes_on in stretches(make_batch(SMALL, 4, seed=5)):
        expected, theirs = naive.loss(sentences, theirs.detach())
        nats, _, ours = model.loss(model.plan(sentences, goes_on), ours.detach())
        expected.backward()  # type: ignore[no-untyped-call]
        nats.backward()  # type: ignore[no-untyped-call]

        assert nats.item() == pytest.approx(expected.item(), rel=1e-10)

    torch.testing.assert_close(model.x.weight.grad, naive.x.weight.grad)
    torch.testing.assert_close(model.lstm.W_hh.grad, naive.lstm.weight_hh_l0.grad)


def test_random_documents_have_the_statistics_of_the_corpus() -> None:
    random = np.random.default_rng(1)

    documents = [random_document(random, vocabulary=10_000, entities=50) for _ in range(300)]

    sentences = [s for document in documents for s in document]
    mentions = [[row for s in d for row in s if 3 <= row < 53] for d in documents]
    assert np.mean([len(d) for d in documents]) == pytest.approx(22.7, rel=0.1)
    assert np.mean([len(s) - 2 for s in sentences]) == pytest.approx(18, rel=0.1)
    assert np.mean([len(set(m)) for m in mentions]) == pytest.approx(14, rel=0.15)
    assert np.mean([len(m) / len(set(m)) for m in mentions]) == pytest.approx(3.3, rel=0.15)


def test_the_work_of_a_token_is_that_of_the_equations() -> None:
    model, _ = make_models(SMALL, seed=3)
    sentence = [1, 60, 61, 2]

    tokens, flops = count_work(model, [[sentence, sentence]])

    lstm, output = 8 * (4 * 8 * 16), 6 * 8 * (80 + 50)
    assert (tokens, flops) == (6, 2 * 3 * (lstm + output))


def test_a_small_benchmark_measures_everything() -> None:
    found = benchmark_training(SMALL, batch=2, rounds=1, long=40)

    assert found.threads == torch.get_num_threads()
    assert min(found.of_ideal, found.speedup, found.long_over_short) > 0
    assert 0.05 < found.peak_memory_gb < 10


def test_the_obvious_loop_is_only_of_the_full_model() -> None:
    with pytest.raises(ValueError, match="variant 'input'"):
        benchmark_training(ModelConfig(variant="input"))
