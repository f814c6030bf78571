"""The baselines for the meaning of entities against plain loops."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from dntm.evaluation.word_baselines import (
    WordBaseline,
    context_vectors,
    encoder_baseline,
    fit_context_baselines,
)
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


def test_a_context_baseline_is_the_mean_over_the_mentions_so_far() -> None:
    x = torch.randn(len(VOCABULARY), DIM, generator=torch.Generator().manual_seed(1))
    is_word = torch.ones(len(x))
    is_word[:FIRST] = 0
    projection = torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(2))
    contexts = partial(context_vectors, words=x, weights=is_word)

    found = iter(WordBaseline(x, contexts, projection)(PASSAGES))

    for passage in PASSAGES:
        means = []
        for s, position, _ in passage.mentions():
            around = context(passage.sentences[s], position)
            means.append(x[around].mean(0) if around else torch.zeros(DIM))
            expected = projection @ torch.stack(means).mean(0)
            torch.testing.assert_close(next(found), expected)
    assert next(found, None) is None


def test_an_encoder_baseline_is_the_mean_of_the_contexts_of_the_mentions() -> None:
    rows = np.arange(len(VOCABULARY)) * 10
    rows[:FIRST] = 0

    def contexts(sentences: Sequence[np.ndarray]) -> Tensor:
        """For each word where it stands, its sentence's length, and the word before it."""
        told = [
            (position, len(s), s[position - 1] if position else -1)
            for s in sentences
            for position in range(len(s))
        ]
        return torch.tensor(told, dtype=torch.float32)

    found = iter(encoder_baseline(torch.zeros(len(rows), 3), contexts, rows)(PASSAGES))

    for passage in PASSAGES:
        told = []
        for s, position, _ in passage.mentions():
            before = rows[passage.sentences[s][position - 1]] if position > 1 else -1
            told.append((position - 1, len(passage.sentences[s]) - 2, before))
            expected = torch.tensor(np.mean(told, axis=0), dtype=torch.float32)
            torch.testing.assert_close(next(found), expected)


def test_the_map_of_a_la_carte_is_the_least_squares_of_plain_numpy() -> None:
    model = random_model()
    x = model.model.x.weight.detach().double().numpy()
    _, found = fit_context_baselines([TEXT[:2], TEXT[2:]], model)

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
    assert found.projection is not None
    np.testing.assert_allclose(found.projection.numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("counted", [True, False])
def test_the_bag_has_sif_weights_and_lacks_the_common_component(*, counted: bool) -> None:
    model = random_model()
    x = model.model.x.weight.detach().double().numpy()
    found, _ = fit_context_baselines([TEXT[:2], TEXT[2:]], model, counted=counted)

    words = [r for sentence in TEXT for r in sentence if r >= FIRST]
    count = {r: float(words.count(r)) for r in range(FIRST, len(x))}
    if not counted:
        count = {r: 1 / (r - FIRST + 1) for r in range(FIRST, len(x))}
    total = sum(count.values())
    weights = {r: 1e-3 / (1e-3 + count[r] / total) for r in count}
    bags = []
    for sentence in TEXT:
        for position, target in enumerate(sentence):
            if target >= FIRST + 2 and nameable(VOCABULARY)[target]:
                around = context(sentence, position)
                bags.append(np.mean([weights[c] * x[c] for c in around], axis=0))
    common = np.linalg.svd(np.array(bags))[2][0]

    assert isinstance(found.contexts, partial)
    np.testing.assert_allclose(
        found.contexts.keywords["weights"], [0] * FIRST + list(weights.values()), rtol=1e-5
    )
    expected = np.eye(DIM) - np.outer(common, common)
    assert found.projection is not None
    np.testing.assert_allclose(found.projection.numpy(), expected, atol=1e-4)
