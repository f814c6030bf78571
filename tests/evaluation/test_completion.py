import numpy as np
import pytest
import torch

from dntm.evaluation.guesses import Recovery, fitting, recover


def test_ranks_count_what_fits_better_or_as_well() -> None:
    x = torch.eye(5)
    scores = torch.tensor([[0.0, 0, 0, 3, 1], [0, 0, 0, 2, 2], [0, 0, 0, 1, 5]])
    sentences = [np.array([3, 4]), np.array([3])]

    found = recover(sentences, lambda _: scores, x, torch.zeros(5))

    assert found.words == 3
    assert found.recall == {1: pytest.approx(1 / 3), 10: 1.0, 100: 1.0}
    assert found.reciprocal_rank == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)


def test_unknown_words_are_no_targets() -> None:
    found = recover(
        [np.array([0, 3, 0])], lambda _: torch.zeros(3, 2), torch.zeros(5, 2), torch.arange(5.0)
    )

    assert (found.words, found.reciprocal_rank) == (1, 0.5)


def test_special_rows_are_not_ranked_among_the_words() -> None:
    bias = torch.tensor([9.0, 9.0, 9.0, 1.0, 0.0])

    found = recover([np.array([3])], lambda _: torch.zeros(1, 2), torch.zeros(5, 2), bias)

    assert found.recall[1] == 1.0
    assert bias[0] == 9.0


def test_no_rank_comes_from_numbers_that_are_not_finite() -> None:
    wrong = torch.full((1, 2), torch.nan)

    with pytest.raises(ValueError, match="no finite number"):
        recover([np.array([3])], lambda _: wrong, torch.ones(5, 2), torch.zeros(5))


def test_nothing_to_recover_is_not_a_number() -> None:
    assert np.isnan(Recovery.of(np.zeros(0, dtype=np.int64)).reciprocal_rank)


def test_the_best_fit_comes_first() -> None:
    ranked = fitting(torch.tensor([1.0, 0.0]), torch.tensor([[1.0, 9], [3, 0]]), torch.zeros(2))

    assert ranked == [(1, 3.0), (0, 1.0)]
