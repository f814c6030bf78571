"""Fast recurrence: an LSTM over many short sequences, and matrix products with few rows.

    ragged_lstm      one run over sequences of different lengths (Eqs. 7 and 8)
    packed(W)(y, x)  y + x W^T      W laid out once for many narrow products
    linear(x, W, b)  x W^T + b      for wide products
    Deferred(W)(x)   x W^T          dW = sum over uses of dy^T x, as one product at the end

A step of the encoder multiplies a few rows by a large matrix. A plain product spends most of its
time reordering that matrix for the processor. On a CPU in single precision, oneDNN can reorder it
once, with the operations that `torch.compile` uses for frozen weights; otherwise the product is a
plain one.

`linear` uses oneDNN, too: on AMD processors, exact single precision then takes half the time of
PyTorch's default. It changes no setting of the process.

Autograd would compute a gradient of W's size for each use and add them up. `Deferred` collects the
x and dy of each use and multiplies once, after the backward pass of all uses.

Sequences are laid out as in `layout.Ragged`. A library LSTM would also compute gradients of frozen
weights, and has a fixed cost per call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

Product = Callable[
    [Float[Tensor, "rows outputs"], Float[Tensor, "rows inputs"]], Float[Tensor, "rows outputs"]
]
"""Maps y and x to y + x W^T, without gradients."""


def packed(W: Float[Tensor, "outputs inputs"]) -> Product:
    """The product with the current W."""
    weight = W.detach()
    if not _has_onednn(weight):
        transposed = weight.t()
        return lambda y, x: torch.addmm(y, x, transposed)
    ahead = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
    product = torch.ops.mkldnn._linear_pointwise.binary
    return lambda y, x: product(x, y, ahead, None, "add")


def linear(
    x: Float[Tensor, "rows inputs"],
    W: Float[Tensor, "outputs inputs"],
    b: Float[Tensor, " outputs"] | None = None,
) -> Float[Tensor, "rows outputs"]:
    """The product x W^T + b, by oneDNN if no gradients are needed."""
    if torch.is_grad_enabled() or not _has_onednn(W):
        return nn.functional.linear(x, W, b)
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, W, b, "none", [], "")
    return found


def _has_onednn(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


class Deferred:
    """The current W, for the products of one pass."""

    def __init__(self, W: Float[Tensor, "outputs inputs"]) -> None:
        self.W = W.detach()
        self.buffer: list[tuple[Tensor, Tensor]] = []
        # Every use depends on this empty tensor, so its backward runs after all of theirs.
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


@dataclass(frozen=True, slots=True)
class Weights:
    """An LSTM's weights, with W_hh prepared for narrow products."""

    W_ih: Float[Tensor, "gates input_dim"]
    W_hh: Float[Tensor, "gates hidden_dim"]
    b: Float[Tensor, " gates"]
    step: Product
    """Adds W_hh h_{t-1} to the gates."""
    step_back: Product
    """Adds W_hh^T d gates to d h_{t-1}."""


class Cells(NamedTuple):
    """The states h and c at some places."""

    h: Float[Tensor, "places hidden_dim"]
    c: Float[Tensor, "places hidden_dim"]


def ragged_lstm(
    x: Float[Tensor, "places input_dim"],
    weights: Weights,
    widths: list[int],
    before: Cells | None = None,
) -> Cells:
    """The states h and c at every place; the sequences start from `before`, or from zero.

    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x_t + W_hh h_{t-1} + b
    c_t        = f * c_{t-1} + i * g,   h_t = o * tanh(c_t)
    """
    begin = before or (None, None)
    inputs = (x, *begin, weights.W_ih, weights.W_hh, weights.b, weights, widths)
    return Cells(*_Loop.apply(*inputs))  # type: ignore[no-untyped-call]


class _Loop(torch.autograd.Function):
    """The loop over time steps.

    What does not depend on the previous step is one large product: the inputs' part of the gates,
    and in the backward pass all gradients except that of h_{t-1}.
    """

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        x: Tensor,
        h_0: Tensor | None,
        c_0: Tensor | None,
        W_ih: Tensor,
        W_hh: Tensor,
        b: Tensor,
        weights: Weights,
        widths: list[int],
    ) -> tuple[Tensor, Tensor]:
        """Run all time steps."""
        size = W_hh.shape[1]
        gates = torch.addmm(b, x, W_ih.t())
        h, c, tanh_c = (x.new_empty(len(x), size) for _ in range(3))
        h_before, c_before = h_0, c_0
        parts = (gates, gates[:, : 2 * size], *gates.chunk(4, 1), h, c, tanh_c)
        for gate, i_f, i, f, g, o, h_now, c_now, tanh_now in zip(
            *(torch.split(part, widths) for part in parts), strict=True
        ):
            width = len(gate)
            total = gate if h_before is None else weights.step(gate, h_before[:width])
            total_i_f, total_g, total_o = total.split_with_sizes((2 * size, size, size), 1)
            torch.sigmoid(total_i_f, out=i_f)
            torch.tanh(total_g, out=g)
            torch.sigmoid(total_o, out=o)
            torch.mul(i, g, out=c_now)
            if c_before is not None:
                c_now.addcmul_(f, c_before[:width])
            torch.tanh(c_now, out=tanh_now)
            torch.mul(o, tanh_now, out=h_now)
            h_before, c_before = h_now, c_now
        ctx.save_for_backward(x, h_0, c_0, W_ih, gates, h, c, tanh_c)
        ctx.weights, ctx.widths = weights, widths
        ctx.set_materialize_grads(False)
        return h, c

    @staticmethod
    def backward(
        ctx: Any, grad_h: Tensor | None, grad_c: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Run them backwards; skips inputs that need no gradient."""
        x, h_0, c_0, W_ih, gates, h, c, tanh_c = ctx.saved_tensors
        need_x, need_h_0, _, need_W_ih, need_W_hh, need_b = ctx.needs_input_grad[:6]
        first = ctx.widths[0]
        dh = (
            torch.zeros_like(h)
            if grad_h is None
            else grad_h.clone(memory_format=torch.contiguous_format)
        )
        c_before = _before(c, c_0, ctx.widths)
        dgates, dc = _gate_gradients(
            (dh, grad_c), ctx.weights.step_back, (gates, c_before, tanh_c), ctx.widths
        )
        dh_0 = dc_0 = None
        if need_h_0:
            size = h.shape[1]
            dh_0 = ctx.weights.step_back(torch.zeros_like(h_0), dgates[:first])
            dc_0 = dc[:first] * gates[:first, size : 2 * size]
        dx = dgates @ W_ih if need_x else None
        dW_ih = dgates.t() @ x if need_W_ih else None
        dW_hh = dgates.t() @ _before(h, h_0, ctx.widths) if need_W_hh else None
        db = dgates.sum(0) if need_b else None
        return dx, dh_0, dc_0, dW_ih, dW_hh, db, None, None


def _before(
    values: Float[Tensor, "places hidden_dim"],
    begin: Float[Tensor, "sequences hidden_dim"] | None,
    widths: list[int],
) -> Float[Tensor, "places hidden_dim"]:
    """Each place's value one time step earlier."""
    first = values.new_zeros(widths[0], values.shape[1]) if begin is None else begin
    earlier = [
        block[:width] for block, width in zip(torch.split(values, widths), widths[1:], strict=False)
    ]
    return torch.cat((first, *earlier))


def _gate_gradients(
    grads: tuple[Tensor, Tensor | None],
    step_back: Product,
    kept: tuple[Tensor, Tensor, Tensor],
    widths: list[int],
) -> tuple[Float[Tensor, "places gates"], Float[Tensor, "places hidden_dim"]]:
    """Gradients of the gates before their nonlinearities, and of c.

    Each is a known factor times dh_t (for o) or dc_t (for i, f, g). The factors are computed before
    the loop, which then only carries dh and dc back in time.
    """
    dh, grad_c = grads
    gates, c_before, tanh_c = kept
    i, f, g, o = gates.chunk(4, 1)
    factors = (g * (i - i * i), c_before * (f - f * f), i - i * g * g, tanh_c * (o - o * o))
    dgates = torch.stack(factors, 1)
    dc = o * (1 - tanh_c * tanh_c)
    later: tuple[Tensor, Tensor, Tensor] | None = None
    end = len(dc)
    steps = [torch.split(t, widths) for t in (dgates, dh, dc, f)]
    for dgate, dh_now, dc_now, f_now in zip(*(reversed(s) for s in steps), strict=True):
        if later is not None:
            dgate_later, dc_later, f_later = later
            reach = len(dgate_later)
            dh_now[:reach] = step_back(dh_now[:reach], dgate_later.flatten(1))
        dc_now.mul_(dh_now)
        if grad_c is not None:
            dc_now.add_(grad_c[end - len(dc_now) : end])
        if later is not None:
            dc_now[:reach].addcmul_(dc_later, f_later)
        dgate[:, :3].mul_(dc_now.unsqueeze(1))
        dgate[:, 3].mul_(dh_now)
        later, end = (dgate, dc_now, f_now), end - len(dc_now)
    return dgates.flatten(1), dc
