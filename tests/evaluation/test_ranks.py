"""Ranks against plain loops, with ties and numbers that are not finite."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from dntm.evaluation.ranks import cosine_ranks, recover


def cos(a: Tensor, b: Tensor) -> float:
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def plain_rank(vector: Tensor, words: Tensor, answer: int) -> int:
    return sum(cos(vector, w) >= cos(vector, words[answer]) - 1e-7 for w in words)


def test_cosine_ranks_are_those_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dntm.evaluation.ranks.CASES", 7)
    generator = torch.Generator().manual_seed(2)
    vectors, words = torch.randn(20, 4, generator=generator), torch.randn(9, 4, generator=generator)
    answers = np.arange(20) % 9

    expected = [plain_rank(v, words, a) for v, a in zip(vectors, answers.tolist(), strict=True)]

    assert cosine_ranks(vectors, words, answers).rank.tolist() == expected
    assert len(set(expected)) > 3


def test_a_scale_changes_the_probability_of_the_first_word() -> None:
    words = torch.tensor([[1.0, 0], [0, 2], [0, 0]])

    found = cosine_ranks(torch.tensor([[5.0, 0]]), words, np.array([1]), torch.tensor([2.0]))

    assert found.rank.tolist() == [2]
    assert found.confidence.tolist() == pytest.approx([1 / (1 + math.exp(-2))])


def test_ties_count_against_the_model_and_zero_vectors_are_ranked_last() -> None:
    words = torch.tensor([[1.0, 0], [2, 0], [-1, 0], [0, 0], [0, 0]])

    ranks = cosine_ranks(torch.tensor([[3.0, 0]]).expand(5, 2), words, np.arange(5))
    nothing = cosine_ranks(torch.zeros(1, 2), words[:3], np.array([0]))

    assert ranks.rank.tolist() == [2, 2, 3, 5, 5]
    assert nothing.rank.tolist() == [3]


def test_hidden_words_are_ranked_by_score_with_ties_against_the_model() -> None:
    scores = torch.tensor([[0.0, 0, 0, 3, 1], [0, 0, 0, 2, 2], [0, 0, 0, 1, 5]])
    sentences = [np.array([3, 4]), np.array([3])]

    found = recover(sentences, lambda _: scores, torch.eye(5), torch.zeros(5))

    assert found.cases == 3
    assert found.recall == {1: pytest.approx(1 / 3), 10: 1.0, 100: 1.0}
    assert found.reciprocal_rank == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)


def test_special_rows_are_neither_hidden_nor_ranked() -> None:
    bias = torch.tensor([9.0, 9.0, 9.0, 1.0, 0.0])

    found = recover([np.array([0, 3, 0])], lambda _: torch.zeros(3, 2), torch.zeros(5, 2), bias)
    nothing = recover([], lambda _: torch.zeros(0, 2), torch.zeros(5, 2), bias)

    assert (found.cases, found.recall[1]) == (1, 1.0)
    assert bias[0] == 9.0
    assert nothing.cases == 0
    assert np.isnan(nothing.reciprocal_rank)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_scores_that_are_not_finite_are_an_error(wrong: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        recover(
            [np.array([3])], lambda _: torch.full((1, 2), wrong), torch.ones(5, 2), torch.zeros(5)
        )
    with pytest.raises(ValueError, match="not finite"):
        cosine_ranks(torch.full((1, 2), torch.nan), torch.ones(3, 2), np.array([0]))
