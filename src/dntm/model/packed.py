"""Packed: a matrix laid out once for many narrow products (Eqs. 7 and 8, made fast).

    product(y, x) = y + x W^T

A step of the encoder multiplies a few rows by a large matrix; a plain product spends most of its
time on bringing that matrix into the order the processor wants. On a CPU in single precision oneDNN
can do that ahead, with the operations `torch.compile` uses for frozen weights; where they are
missing, and in every other case, the product is a plain one.
"""

from collections.abc import Callable

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
