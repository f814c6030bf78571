"""ContextEncoder: what one sentence says about an entity (Section 3).

It reads the words on both sides of a mention, never the mention itself:

    d'_e    = ReLU(W_hd [h_fwd_{t-1}; h_bwd_{t+1}] + b_d)     Eq. 6
    h_fwd_t = LSTM(x_{w_t}, h_fwd_{t-1})                      Eq. 7
    h_bwd_t = LSTM(x_{w_t}, h_bwd_{t+1})                      Eq. 8

Each direction stops at the last mention it has to reach.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.layout.ragged import lay_out_ragged
from dntm.model.lstm import LSTM
from dntm.model.ragged_lstm import Weights, ragged_lstm


class ContextEncoder(nn.Module):
    """Turns each mention's sentence into a context vector d'_e."""

    def __init__(self, embedding_dim: int, encoder_dim: int, context_dim: int) -> None:
        super().__init__()
        self.forward_lstm = LSTM(embedding_dim, encoder_dim)
        self.backward_lstm = LSTM(embedding_dim, encoder_dim)
        self.W_hd = nn.Parameter(torch.empty(context_dim, 2 * encoder_dim))
        self.b_d = nn.Parameter(torch.empty(context_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; W_hd keeps the variance of its input, as ReLU layers want it."""
        self.forward_lstm.reset_parameters(generator)
        self.backward_lstm.reset_parameters(generator)
        nn.init.kaiming_uniform_(self.W_hd, nonlinearity="relu", generator=generator)
        nn.init.zeros_(self.b_d)

    def ready(self) -> tuple[Weights, Weights]:
        """The weights of both directions as they are now, for any number of runs."""
        return self.forward_lstm.ready(), self.backward_lstm.ready()

    def contexts(
        self,
        h_forward: Float[Tensor, "mentions encoder_dim"],
        h_backward: Float[Tensor, "mentions encoder_dim"],
    ) -> Float[Tensor, "mentions context_dim"]:
        """Eq. 6, from the h before and after each mention."""
        around = torch.cat((h_forward, h_backward), 1)
        return torch.relu(torch.addmm(self.b_d, around, self.W_hd.t()))

    def forward(
        self,
        words: Float[Tensor, "sentences time embedding_dim"],
        lengths: Int[Tensor, " sentences"],
        sentence: Int[Tensor, " mentions"],
        position: Int[Tensor, " mentions"],
    ) -> Float[Tensor, "mentions context_dim"]:
        """Encode the mention at `position` t of its `sentence`, for every mention.

        <bos> and <eos> surround every sentence, so t - 1 and t + 1 always exist. Every sentence
        has a mention.
        """
        flat, which = words.flatten(0, 1), sentence.cpu().numpy()
        first = np.arange(len(lengths)) * words.shape[1]
        last = first + lengths.cpu().numpy() - 1
        from_start = position.cpu().numpy()
        from_end = (last - first)[which] - from_start
        around = []
        for weights, begin, sign, steps in zip(
            self.ready(), (first, last), (1, -1), (from_start, from_end), strict=True
        ):
            reach = np.zeros(len(lengths), dtype=np.int64)
            np.maximum.at(reach, which, steps)
            ragged = lay_out_ragged(reach)
            places = torch.from_numpy(begin[ragged.sequence] + sign * ragged.time)
            read = flat.index_select(0, places.to(flat.device))
            h = ragged_lstm(read, weights, ragged.widths).h
            around.append(
                h.index_select(0, torch.from_numpy(ragged.place(which, steps - 1)).to(h.device))
            )
        return self.contexts(*around)
