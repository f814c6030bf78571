"""Newcomers: all numbers that nobody has yet stand for the next one."""

import numpy as np
import pytest
import torch

from dntm.model.config import Variant
from dntm.model.newcomer import LATER, pool_free_rows
from dntm.model.salience import Mentions
from tests.model.small import BOS, EOS, A, B, C, build, oracle_of

TEXT = [[BOS, 7, A, 8, A, B, EOS], [BOS, 9, EOS], [BOS, B, 6, C, A, EOS]]
POSITIONS = range(sum(map(len, TEXT)))


def test_the_next_number_has_what_all_free_ones_had_together() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    times = np.array([[0, 0, 0], [4, 0, 0], [1, 2, 1]])

    found = pool_free_rows(logits, Mentions(np.zeros_like(times), times))

    e = np.exp
    expected = [
        [np.log(e(1) + e(2) + e(3)), 2 - LATER, 3 - LATER],
        [1, np.log(e(2) + e(3)), 3 - LATER],
        [1, 2, 3],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("variant", ["baseline", "both"])
def test_only_the_share_of_newcomers_moves(variant: Variant) -> None:
    plain, pooled = build(variant, "max"), build(variant, "max", newcomer=True)

    p, q = (
        model.log_distribution(model.plan([TEXT]), model.initial_state(1), POSITIONS)[1].exp()
        for model in (plain, pooled)
    )

    known = 0
    for row, (before, after) in enumerate(zip(p, q, strict=True)):
        read = [token for sentence in TEXT for token in sentence][row]
        known = max(known, read - A + 1 if A <= read <= C else 0)
        first = A + known
        torch.testing.assert_close(after.sum(), torch.ones(()).double())
        torch.testing.assert_close(after[:first], before[:first])
        torch.testing.assert_close(after[C + 1 :], before[C + 1 :])
        torch.testing.assert_close(after[first : C + 1].sum(), before[first : C + 1].sum())
        assert (after[first + 1 : C + 1] < 1e-9).all()


def test_gradients_are_the_oracles_where_there_is_no_salience() -> None:
    model = build("both", "attention", newcomer=True)
    oracle = oracle_of(model)
    expected = -torch.stack(oracle.read(TEXT, oracle.begin())[0]).sum()
    expected.backward()  # type: ignore[no-untyped-call]

    loss, _, _ = model.loss(model.plan([TEXT]), model.initial_state(1))
    loss.backward()  # type: ignore[no-untyped-call]

    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, oracle.p[name].grad, atol=1e-9, rtol=0)


def test_another_order_of_numbers_is_improbable_and_no_error() -> None:
    model = build("both", "max", newcomer=True)

    (scores,), _ = model.score(model.plan([[[BOS, C, 7, EOS]]]), model.initial_state(1))

    assert -LATER - 20 < scores[0] < -LATER / 2
    assert np.isfinite(scores).all()
