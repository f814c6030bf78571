"""LSTM: the recurrent network of Eqs. 2, 7 and 8, run in two ways that give the same numbers.

    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x_t + W_hh h_{t-1} + b
    c_t        = f * c_{t-1} + i * g
    h_t        = o * tanh(c_t)

`carry` takes few long sequences with a state from before, cut into segments of constant width: on
a CPU each is one call of oneDNN. `ready` gives the weights to `ragged_lstm`, for many
short sequences.

Departure: there is one bias vector, which Table 3's counts of parameters ask for; PyTorch's own
layers keep two of which only the sum matters.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.model.fast.layout import Segment
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
        """Draw the weights; forget gates start open (b_f = 1), so that c is kept at first."""
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

    def ready(self) -> Weights:
        """The weights as they are now, for the calls of one window."""
        return Weights(
            self.W_ih, self.W_hh, self.b, step=packed(self.W_hh), step_back=packed(self.W_hh.t())
        )
