"""Deferred: a matrix used in many small products, whose gradient is made once from all of them.

    y_k = W x_k,   dW = sum over k of dy_k x_k^T

Autograd would make a matrix of W's size for each use and add them up; here each use only notes its
x and dy, and when all have been through the backward pass dW is one product.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


class Deferred:
    """W as it is now, for the products of one pass."""

    def __init__(self, W: Float[Tensor, "outputs inputs"]) -> None:
        self.W = W.detach()
        self.noted: list[tuple[Tensor, Tensor]] = []
        # Every use depends on this empty tensor, so its gradient comes after all of theirs.
        self.anchor: Tensor = _Gather.apply(W, self.noted)  # type: ignore[no-untyped-call]

    def __call__(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows outputs"]:
        """The product x W^T."""
        y: Tensor = _Use.apply(x, self.anchor, self)  # type: ignore[no-untyped-call]
        return y


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, W: Tensor, noted: list[tuple[Tensor, Tensor]]) -> Tensor:
        ctx.noted = noted
        return W.new_empty(0)

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:
        x, dy = (torch.cat(values) for values in zip(*ctx.noted, strict=True))
        ctx.noted.clear()
        return dy.t() @ x, None


class _Use(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, matrix: Deferred) -> Tensor:
        ctx.save_for_backward(x)
        ctx.matrix, ctx.learned = matrix, anchor.requires_grad
        return x @ matrix.W.t()

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, None, None]:
        if ctx.learned:
            ctx.matrix.noted.append((ctx.saved_tensors[0], dy))
        return dy @ ctx.matrix.W if ctx.needs_input_grad[0] else None, None, None
