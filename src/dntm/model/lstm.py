"""LSTM: the recurrent network of Eqs. 2, 7 and 8, run in two ways that give the same numbers.

    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x_t + W_hh h_{t-1} + b
    c_t        = f * c_{t-1} + i * g
    h_t        = o * tanh(c_t)

`carry` continues a few long sequences, cut into segments of constant width; on a CPU each segment
is one oneDNN call. `bind` prepares the weights for `ragged_lstm`, which runs many short sequences.
`LSTMCore` is the paper's language model (Eq. 2).

Departure: the LSTM has one bias vector, as the parameter counts of Table 3 require. PyTorch's own
layers have two, although only their sum matters.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.model.core import Dropout
from dntm.model.fast.layout import Layout, Segment
from dntm.model.fast.recurrence import Weights, packed


class LSTM(nn.Module):
    """One direction, one layer; gates in the order i, f, g, o."""

    no_bias: Tensor

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.W_ih = nn.Parameter(torch.empty(4 * hidden_dim, input_dim))
        self.W_hh = nn.Parameter(torch.empty(4 * hidden_dim, hidden_dim))
        self.b = nn.Parameter(torch.empty(4 * hidden_dim))
        self.register_buffer("no_bias", torch.zeros(4 * hidden_dim), persistent=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights. Forget gates start open (b_f = 1)."""
        hidden_dim = self.W_hh.shape[1]
        bound = hidden_dim**-0.5
        nn.init.uniform_(self.W_ih, -bound, bound, generator=generator)
        nn.init.uniform_(self.W_hh, -bound, bound, generator=generator)
        nn.init.zeros_(self.b)
        nn.init.ones_(self.b[hidden_dim : 2 * hidden_dim])

    def carry(
        self,
        x: Float[Tensor, "places input_dim"],
        segments: Sequence[Segment],
        h: Float[Tensor, "batch hidden_dim"],
        c: Float[Tensor, "batch hidden_dim"],
    ) -> tuple[
        Float[Tensor, "places hidden_dim"],
        Float[Tensor, "batch hidden_dim"],
        Float[Tensor, "batch hidden_dim"],
    ]:
        """Every h_t, and each sequence's last h and c."""
        outputs, last_h, last_c = [h[:0]], [h[:0]], [c[:0]]
        narrower = [*[segment.width for segment in segments][1:], 0]
        parts = torch.split(x, [segment.steps * segment.width for segment in segments])
        for part, segment, width in zip(parts, segments, narrower, strict=False):
            output, h, c = self._run(part.view(segment.steps, segment.width, -1), h, c)
            outputs.append(output.flatten(0, 1))
            last_h.insert(0, h[width:])
            last_c.insert(0, c[width:])
            h, c = h[:width], c[:width]
        return torch.cat(outputs), torch.cat(last_h), torch.cat(last_c)

    def _run(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weights = [self.W_ih, self.W_hh, self.b, self.no_bias]
        train = torch.is_grad_enabled()
        states, h, c = torch.lstm(
            x,
            (h.unsqueeze(0), c.unsqueeze(0)),
            weights,
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=train,
            bidirectional=False,
            batch_first=False,
        )
        return states, h.squeeze(0), c.squeeze(0)

    def bind(self) -> Weights:
        """The current weights, prepared for the calls of one window."""
        return Weights(
            self.W_ih, self.W_hh, self.b, step=packed(self.W_hh), step_back=packed(self.W_hh.t())
        )


class LSTMState(NamedTuple):
    """The last h (before a projection) and c of each document."""

    h: Float[Tensor, "batch core_dim"]
    c: Float[Tensor, "batch core_dim"]

    def select(self, documents: Sequence[int]) -> "LSTMState":
        """The state of these documents, in this order."""
        rows = torch.tensor(documents, dtype=torch.long, device=self.h.device)
        return LSTMState(self.h.index_select(0, rows), self.c.index_select(0, rows))

    def detach(self) -> "LSTMState":
        """The same values without gradients."""
        return LSTMState(self.h.detach(), self.c.detach())


class LSTMCore(LSTM):
    """Eq. 2: h_t = LSTM(x_{w_t}, h_{t-1}), carried through each document.

    With `core_dim`, the LSTM has states s_t of that size, and h_t = W_sh s_t (Sak et al. 2014, but
    the recurrence is not projected): a wider core without wider output embeddings.
    """

    def __init__(self, embedding_dim: int, hidden_dim: int, core_dim: int | None = None) -> None:
        super().__init__(embedding_dim, core_dim or hidden_dim)
        self.W_sh = None if core_dim is None else nn.Parameter(torch.empty(hidden_dim, core_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; W_sh preserves the variance of its input."""
        super().reset_parameters(generator)
        if self.W_sh is not None:
            nn.init.xavier_uniform_(self.W_sh, generator=generator)

    def initial(self, documents: int) -> LSTMState:
        """The state before the first sentence."""
        zeros = self.b.new_zeros(documents, self.W_hh.shape[1])
        return LSTMState(zeros, zeros)

    def forward(
        self,
        x: Float[Tensor, "places embedding_dim"],
        layout: Layout,
        state: LSTMState,
        dropout: Dropout,  # noqa: ARG002 (a single layer has nothing between its layers)
    ) -> tuple[Float[Tensor, "places hidden_dim"], LSTMState]:
        """Every h_t, and the state after the window."""
        order = torch.from_numpy(layout.order).to(x.device)
        h, c = (value.index_select(0, order) for value in state)
        all_h, h, c = self.carry(x, layout.segments, h, c)
        if self.W_sh is not None:
            all_h = nn.functional.linear(all_h, self.W_sh)
        return all_h, LSTMState(state.h.index_copy(0, order, h), state.c.index_copy(0, order, c))
