"""Ragged LSTM: one run over many short sequences of different lengths (Eqs. 7 and 8, made fast).

    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x_t + W_hh h_{t-1} + b
    c_t        = f * c_{t-1} + i * g,   h_t = o * tanh(c_t),   h_0 = c_0 = 0

All sequences take a time step together, the longest first, so that the ones still running are
always the first rows: no padding. A library's LSTM would also make gradients of its weights where
they are frozen, and spend a fixed time on each call.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class RaggedLayout:
    """Sequences of different lengths, time step by time step, the longest sequence first."""

    widths: list[int]
    """How many sequences reach each time step."""
    starts: Int[Tensor, " time"]
    """The place where each time step begins."""
    rank: Int[Tensor, " sequences"]
    """Where each sequence stands within a time step."""
    sequence: Int[Tensor, " places"]
    time: Int[Tensor, " places"]

    def place(
        self, sequence: Int[Tensor, " mentions"], time: Int[Tensor, " mentions"]
    ) -> Int[Tensor, " mentions"]:
        """Where a time step of a sequence lies."""
        return self.starts[time] + self.rank[sequence]


def ragged_layout(lengths: Int[Tensor, " sequences"]) -> RaggedLayout:
    """Lay out sequences of these lengths."""
    order = torch.argsort(lengths, descending=True, stable=True)
    steps = torch.arange(int(lengths.max()), device=lengths.device)
    widths = (lengths > steps.unsqueeze(1)).sum(1)
    starts = widths.cumsum(0) - widths
    time = torch.repeat_interleave(steps, widths)
    sequence = order[torch.arange(len(time), device=time.device) - starts[time]]
    return RaggedLayout(widths.tolist(), starts, torch.argsort(order), sequence, time)


def ragged_lstm(
    x: Float[Tensor, "places input_dim"],
    W_ih: Float[Tensor, "gates input_dim"],
    W_hh: Float[Tensor, "gates hidden_dim"],
    b: Float[Tensor, " gates"],
    layout: RaggedLayout,
) -> Float[Tensor, "places hidden_dim"]:
    """The h of every place of the layout."""
    h: Tensor = _Loop.apply(x, W_ih, W_hh, b, layout.widths)  # type: ignore[no-untyped-call]
    return h


class _Loop(torch.autograd.Function):
    """The loop over time steps.

    Whatever does not wait for the step before is one large product: the inputs' part of the
    gates, and in the backward pass all gradients but that of h_{t-1}.
    """

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any, x: Tensor, W_ih: Tensor, W_hh: Tensor, b: Tensor, widths: list[int]
    ) -> Tensor:
        """Run all time steps."""
        size = W_hh.shape[1]
        gates = torch.addmm(b, x, W_ih.t())
        h, c = x.new_empty(len(x), size), x.new_empty(len(x), size)
        tanh_c = torch.empty_like(c)
        start = before = 0
        for step, width in enumerate(widths):
            now, old = slice(start, start + width), slice(before, before + width)
            gate = gates[now]
            if step:
                gate.addmm_(h[old], W_hh.t())
            gate[:, : 2 * size].sigmoid_()
            gate[:, 2 * size : 3 * size].tanh_()
            gate[:, 3 * size :].sigmoid_()
            i, f, g, o = gate.chunk(4, 1)
            torch.mul(i, g, out=c[now])
            if step:
                c[now].addcmul_(f, c[old])
            torch.tanh(c[now], out=tanh_c[now])
            torch.mul(o, tanh_c[now], out=h[now])
            start, before = start + width, start
        ctx.save_for_backward(x, W_ih, W_hh, gates, h, c, tanh_c)
        ctx.widths = widths
        return h

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Run them backwards; nobody pays for gradients nobody needs."""
        x, W_ih, W_hh, gates, h, c, tanh_c = ctx.saved_tensors
        dgates = _gate_gradients(grad, W_hh, (gates, c, tanh_c), ctx.widths)
        dx = dgates @ W_ih if ctx.needs_input_grad[0] else None
        dW_ih = dgates.t() @ x if ctx.needs_input_grad[1] else None
        dW_hh = None
        if ctx.needs_input_grad[2]:
            first = ctx.widths[0]
            dW_hh = dgates[first:].t() @ h.index_select(0, _previous(ctx.widths, h)[first:])
        db = dgates.sum(0) if ctx.needs_input_grad[3] else None
        return dx, dW_ih, dW_hh, db, None


def _previous(widths: list[int], like: Float[Tensor, "..."]) -> Int[Tensor, " places"]:
    """The place of each place's sequence one time step earlier (itself at the first step)."""
    places = torch.arange(sum(widths))
    back = torch.tensor([0, *widths[:-1]])
    return (places - torch.repeat_interleave(back, torch.tensor(widths))).to(like.device)


def _gate_gradients(
    grad: Float[Tensor, "places hidden_dim"],
    W_hh: Float[Tensor, "gates hidden_dim"],
    kept: tuple[Tensor, Tensor, Tensor],
    widths: list[int],
) -> Float[Tensor, "places gates"]:
    """Gradients before the gates' nonlinearities.

    Each is a known factor times dh_t (for o) or dc_t (for i, f, g); the factors are made ahead of
    the loop, which then only carries dh and dc back in time.
    """
    gates, c, tanh_c = kept
    i, f, g, o = gates.chunk(4, 1)
    c_before = c.index_select(0, _previous(widths, c))
    c_before[: widths[0]] = 0
    factors = (g * (i - i * i), c_before * (f - f * f), i - i * g * g, tanh_c * (o - o * o))
    dgates = torch.stack(factors, 1)
    dc = o * (1 - tanh_c * tanh_c)
    dh = grad.clone(memory_format=torch.contiguous_format)
    end, reach = len(gates), 0
    for width in reversed(widths):
        now, going_on = slice(end - width, end), slice(end - width, end - width + reach)
        later = slice(end, end + reach)
        if reach:
            dh[going_on].addmm_(dgates[later].flatten(1), W_hh)
        dc[now].mul_(dh[now])
        if reach:
            dc[going_on].addcmul_(dc[later], f[later])
        dgates[now, :3].mul_(dc[now].unsqueeze(1))
        dgates[now, 3].mul_(dh[now])
        end, reach = end - width, width
    return dgates.flatten(1)
