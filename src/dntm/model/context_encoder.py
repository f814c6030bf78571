"""ContextEncoder: what one sentence says about an entity (Section 3).

It reads the words on both sides of a mention, never the mention itself:

    d'_e    = ReLU(W_hd [h_fwd_{t-1}; h_bwd_{t+1}] + b_d)     Eq. 6
    h_fwd_t = LSTM(x_{w_t}, h_fwd_{t-1})                      Eq. 7
    h_bwd_t = LSTM(x_{w_t}, h_bwd_{t+1})                      Eq. 8

Each direction stops at the last mention it has to reach.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.lstm import LSTM
from dntm.model.ragged_lstm import ragged_layout


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
        flat = words.flatten(0, 1)
        first = torch.arange(len(lengths), device=words.device) * words.shape[1]
        left = _reach(position, sentence, len(lengths))
        forward = ragged_layout(left)
        h_forward = self.forward_lstm.ragged(
            flat.index_select(0, first[forward.sequence] + forward.time), forward
        )
        from_end = lengths[sentence] - 1 - position
        last = first + lengths - 1
        backward = ragged_layout(_reach(from_end, sentence, len(lengths)))
        h_backward = self.backward_lstm.ragged(
            flat.index_select(0, last[backward.sequence] - backward.time), backward
        )
        around = (
            h_forward.index_select(0, forward.place(sentence, position - 1)),
            h_backward.index_select(0, backward.place(sentence, from_end - 1)),
        )
        return torch.relu(torch.addmm(self.b_d, torch.cat(around, 1), self.W_hd.t()))


def _reach(
    steps: Int[Tensor, " mentions"], sentence: Int[Tensor, " mentions"], sentences: int
) -> Int[Tensor, " sentences"]:
    """How many words of each sentence one direction reads: up to its furthest mention."""
    return steps.new_zeros(sentences).scatter_reduce_(0, sentence, steps, "amax")
