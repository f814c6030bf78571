"""Products: matrices that many small products use, laid out once or differentiated once.

    packed(W)(y, x) = y + x W^T      W laid out once for many narrow products
    Deferred(W)(x)  = x W^T          dW = sum over uses of dy^T x, as one product at the end

A step of the encoder multiplies a few rows by a large matrix; a plain product spends most of its
time on bringing that matrix into the order the processor wants. On a CPU in single precision oneDNN
can do that once, with the operations `torch.compile` uses for frozen weights; where they are
missing, and in every other case, the product is a plain one.

Autograd would make a gradient of W's size for each use and add them up; `Deferred` collects each
use's x and dy in a gradient buffer and multiplies once, when all uses have been through the
backward pass.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Product = Callable[
    [Float[Tensor, "rows outputs"], Float[Tensor, "rows inputs"]], Float[Tensor, "rows outputs"]
]
"""Gives y + x W^T for y and x; without gradients of its own."""


def packed(W: Float[Tensor, "outputs inputs"]) -> Product:
    """The product with W as it is now."""
    weight = W.detach()
    if not _can_pack(weight):
        transposed = weight.t()
        return lambda y, x: torch.addmm(y, x, transposed)
    ahead = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
    linear = torch.ops.mkldnn._linear_pointwise.binary
    return lambda y, x: linear(x, y, ahead, None, "add")


def _can_pack(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


class Deferred:
    """W as it is now, for the products of one pass."""

    def __init__(self, W: Float[Tensor, "outputs inputs"]) -> None:
        self.W = W.detach()
        self.buffer: list[tuple[Tensor, Tensor]] = []
        # Every use depends on this empty tensor, so its gradient comes after all of theirs.
        self.anchor: Tensor = _Gather.apply(W, self.buffer)  # type: ignore[no-untyped-call]

    def __call__(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows outputs"]:
        """The product x W^T."""
        y: Tensor = _Use.apply(x, self.anchor, self)  # type: ignore[no-untyped-call]
        return y


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, W: Tensor, buffer: list[tuple[Tensor, Tensor]]) -> Tensor:
        ctx.buffer = buffer
        return W.new_empty(0)

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:
        x, dy = (torch.cat(values) for values in zip(*ctx.buffer, strict=True))
        ctx.buffer.clear()
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
            ctx.matrix.buffer.append((ctx.saved_tensors[0], dy))
        return dy @ ctx.matrix.W if ctx.needs_input_grad[0] else None, None, None
