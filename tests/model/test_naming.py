"""Naming is a softmax over cosines, and its sampled form estimates the whole."""

import math

import numpy as np
import pytest
import torch

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.config import Merging
from dntm.model.naming import Naming, nameable
from tests.model.small import BOS, EOS, A, B, build, oracle_of

torch.manual_seed(4)
X = torch.randn(9, 5)
X_E = torch.randn(3, 5)


def cos(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def test_the_loss_is_a_softmax_over_scaled_cosines() -> None:
    naming = Naming()
    answers = torch.tensor([4, 0, 8])

    expected = 0.0
    for x_e, answer in zip(X_E, answers, strict=True):
        scores = [10 * cos(x_e, x_w) for x_w in X]
        expected -= scores[answer] - math.log(sum(map(math.exp, scores)))

    assert naming.loss(X_E, X, answers).item() == pytest.approx(expected, rel=1e-5)


def test_a_candidate_drawn_one_time_in_four_counts_fourfold() -> None:
    naming = Naming()
    some, answers = X[[0, 3, 5]], torch.tensor([0, 0, 0])
    four_times = torch.cat((some, some[1:], some[1:], some[1:]))

    log_included = torch.tensor([1.0, 0.25, 0.25]).log()

    sampled = naming.loss(X_E, some, answers, log_included)
    torch.testing.assert_close(sampled, naming.loss(X_E, four_times, answers))


def test_signs_numbers_letters_and_entities_are_no_answers() -> None:
    words = Vocabulary(("the", "a", ",", "1990", "dog", "n't", "'s"), entities=2)

    found = np.array(words.labels())[nameable(words)]

    assert found.tolist() == ["the", "dog", "n't"]


@pytest.mark.parametrize("merging", ["gru-relu", "attention"])
def test_hidden_words_are_named_as_the_reference_names_them(merging: Merging) -> None:
    model = build("both", merging, naming=True)
    sentences = [[BOS, 6, A, 7, B, EOS], [BOS, A, 8, A, EOS], [BOS, 9, B, 6, EOS]]
    answers = np.array([9, 0, 9, 9, 10])

    window = model.plan([sentences], [False], every_context=True)
    _, nats, _ = model.losses(window, model.initial_state(1), answers=answers)

    reference = oracle_of(model)
    state, expected = reference.begin(), torch.zeros((), dtype=torch.double)
    for sentence, asked in zip(sentences, [[(A, 9)], [(A, 9)], [(B, 10)]], strict=True):
        _, state = reference.read([sentence], state)
        for row, answer in asked:
            expected = expected - reference.name(row, state.entities)[answer - 6]
    # A's first mention of the second sentence is merged before its second one is.
    known = reference.read(sentences[:1], reference.begin())[1].entities
    x = [reference.x(row, known) for row in sentences[1]]
    merged = reference.merge(reference.context(x, 1), known[A])
    expected = expected - reference.name(A, {A: merged})[9 - 6]
    torch.testing.assert_close(nats, expected)
