"""The fast parts give the numbers of plain loops."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dntm.model.core import LSTM
from dntm.model.fast.layout import lay_out_ragged
from dntm.model.fast.recurrence import Cells, Deferred, packed, ragged_lstm
from dntm.model.reference import Reference
from tests.model.small import configure

LENGTHS = np.array([2, 4, 1, 4])


def plain_lstm(lstm: LSTM, x: Tensor, before: Cells) -> tuple[Tensor, Tensor]:
    """The h and c of every place, sequence by sequence and step by step."""
    ragged = lay_out_ragged(LENGTHS)
    parameters = {f"lstm.{name}": value for name, value in lstm.named_parameters()}
    reference, states = Reference(configure(), parameters), {}
    for sequence, length in enumerate(LENGTHS):
        rank = int(ragged.rank[sequence])
        h, c = before.h[rank], before.c[rank]
        for time in range(length):
            place = int(ragged.starts[time]) + rank
            h, c = states[place] = reference.lstm("lstm", x[place], h, c)
    h_all, c_all = zip(*(states[place] for place in range(len(states))), strict=True)
    return torch.stack(h_all), torch.stack(c_all)


@pytest.mark.parametrize("carried", [False, True])
def test_a_ragged_run_has_the_values_and_gradients_of_the_plain_loop(carried: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    lstm = LSTM(3, 5).double()
    lstm.reset_parameters(generator)
    x, h_0, c_0 = (
        torch.randn(rows, size, generator=generator, dtype=torch.double).requires_grad_()
        for rows, size in ((LENGTHS.sum(), 3), (4, 5), (4, 5))
    )
    start = Cells(h_0, c_0) if carried else Cells(torch.zeros_like(h_0), torch.zeros_like(c_0))
    learned = [x, *lstm.parameters(), *([h_0, c_0] if carried else [])]
    weights = torch.randn(2, len(x), 5, generator=generator, dtype=torch.double)

    expected = torch.stack(plain_lstm(lstm, x, start))
    run = ragged_lstm(x, lstm.bind(), lay_out_ragged(LENGTHS).widths, start if carried else None)
    found = torch.stack((run.h, run.c))

    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad((found * weights).sum(), learned),
        torch.autograd.grad((expected * weights).sum(), learned),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_packed_product_is_the_plain_one(rows: int, dtype: torch.dtype) -> None:
    W, y, x = (
        torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
        for shape in ((12, 8), (rows, 12), (rows, 8))
    )
    kept = y.clone()

    torch.testing.assert_close(packed(W)(y, x), y + x @ W.t())
    torch.testing.assert_close(packed(W.t())(x, y), x + y @ W)
    assert torch.equal(y, kept)


def test_a_deferred_gradient_is_the_sum_over_all_uses() -> None:
    W = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    x = torch.tensor([[1.0, -1.0]], requires_grad=True)

    def value(product: Deferred | nn.Linear) -> Tensor:
        once = product(x)
        twice = product(once[:, :2] * once[:, 1:])
        return (twice**2).sum() + once.sum()

    linear = nn.Linear(2, 3, bias=False)
    linear.weight = W

    for one, other in zip(
        torch.autograd.grad(value(Deferred(W)), (W, x)),
        torch.autograd.grad(value(linear), (W, x)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
