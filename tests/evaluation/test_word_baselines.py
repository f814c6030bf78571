"""The baselines for the meaning of entities against plain loops."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from dntm.evaluation.word_baselines import WordBaseline, a_la_carte, bag_of_words, context_vectors
from dntm.model.extensions.naming import nameable
from tests.evaluation.small_passages import DIM, FIRST, PASSAGES, TEXT, VOCABULARY, random_model


def context(sentence: Sequence[int], position: int) -> list[int]:
    """The words around a token, by a plain loop."""
    near = range(max(0, position - 10), min(len(sentence), position + 11))
    return [sentence[t] for t in near if t != position and sentence[t] >= FIRST]


def test_context_vectors_are_weighted_means_over_ten_words_on_each_side() -> None:
    x = torch.randn(len(VOCABULARY), DIM, generator=torch.Generator().manual_seed(1))
    weights = torch.rand(len(VOCABULARY)) + 0.1
    weights[:FIRST] = 0
    random = np.random.default_rng(0)
    sentences = [random.integers(0, len(x), length).tolist() for length in (30, 1, 7, 25)]

    found = iter(context_vectors(sentences, x, weights))

    for sentence in sentences:
        for position in range(len(sentence)):
            around = context(sentence, position)
            expected = sum((weights[c] * x[c] for c in around), torch.zeros(DIM))
            torch.testing.assert_close(next(found), expected / max(len(around), 1))


def test_a_baseline_maps_the_mean_over_the_mentions_so_far() -> None:
    x = torch.randn(len(VOCABULARY), DIM, generator=torch.Generator().manual_seed(1))
    is_word = (torch.arange(len(x)) >= FIRST).float()
    projection = torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(2))
    baseline = WordBaseline(x, is_word, projection)

    for passage in PASSAGES:
        found = baseline(passage)

        means = []
        for (s, position), vector in zip(passage.mentions(), found, strict=True):
            around = context(passage.sentences[s], position)
            means.append(x[around].mean(0) if around else torch.zeros(DIM))
            torch.testing.assert_close(vector, projection @ torch.stack(means).mean(0))


def test_the_map_of_a_la_carte_is_the_least_squares_of_plain_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dntm.evaluation.word_baselines._BATCH", 2)
    model = random_model()
    x = model.model.x.weight.detach().double().numpy()

    found = a_la_carte(TEXT, model)

    contexts: dict[int, list[np.ndarray]] = {}
    for sentence in TEXT:
        for position, target in enumerate(sentence):
            if nameable(VOCABULARY)[target]:
                contexts.setdefault(target, []).append(x[context(sentence, position)].mean(0))
    seen = [word for word, found in contexts.items() if len(found) > 1]
    u = np.array([np.mean(contexts[word], axis=0) for word in seen])
    weight = np.diag(np.log([len(contexts[word]) for word in seen]))
    expected = np.linalg.solve(u.T @ weight @ u, u.T @ weight @ x[seen]).T
    assert len(seen) > DIM
    np.testing.assert_allclose(found.projection.numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("counted", [True, False])
def test_the_bag_has_sif_weights_and_lacks_the_common_component(*, counted: bool) -> None:
    model = random_model()
    words = len(VOCABULARY) - FIRST
    counts = [9] * FIRST + [words + 3 - n for n in range(words)]
    model.vocabulary = replace(VOCABULARY, counts=counts if counted else None)
    x = model.model.x.weight.detach().double().numpy()

    found = bag_of_words(model)

    centered = x[FIRST:] - x[FIRST:].mean(0)
    share = np.array(counts[FIRST:]) if counted else 1 / np.arange(1, words + 1)
    share = share / share.sum()
    weights = 1e-3 / (1e-3 + share)
    common = np.linalg.svd(np.sqrt(share)[:, None] * weights[:, None] * centered)[2][0]
    np.testing.assert_allclose(found.words[FIRST:], centered, atol=1e-6)
    np.testing.assert_allclose(found.weights, [0] * FIRST + weights.tolist(), rtol=1e-5)
    expected = np.eye(DIM) - np.outer(common, common)
    np.testing.assert_allclose(found.projection, expected, atol=1e-4)
