"""ContextEncoder: what one sentence says about an entity (Section 3).

It reads the words on both sides of a mention, never the mention itself:

    d'_e    = ReLU(W_hd [h_fwd_{t-1}; h_bwd_{t+1}] + b_d)     Eq. 6
    h_fwd_t = LSTM(x_{w_t}, h_fwd_{t-1})                      Eq. 7
    h_bwd_t = LSTM(x_{w_t}, h_bwd_{t+1})                      Eq. 8

`entity_memory` and `sentence_completion` run the two LSTMs. <bos> and <eos> surround every
sentence, so t - 1 and t + 1 always exist.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.model.core import LSTM

REACH = 100
"""Encoders that look at a sentence again see this many tokens on each side of a mention."""


class SentenceWords(NamedTuple):
    """The tokens around each mention in its sentence, for encoders that look at them again."""

    rows: Int[np.ndarray, "mentions time"]
    """Vocabulary rows; <unk> for tokens out of reach."""
    x: Float[Tensor, "mentions time embedding_dim"]
    """Their static embeddings."""
    distance: Int[np.ndarray, "mentions time"]
    """From the mention, which itself has 0."""


def around(
    position: Int[np.ndarray, " mentions"], lengths: Int[np.ndarray, " mentions"]
) -> tuple[Int[np.ndarray, "mentions time"], Bool[np.ndarray, "mentions time"]]:
    """Positions near each mention in a sentence of this length, and whether they are in reach."""
    width = min(int(lengths.max(initial=0)), 2 * REACH + 1)
    first = np.clip(position - REACH, 0, np.maximum(lengths - width, 0))
    time = first[:, None] + np.arange(width)
    return time, (time < lengths[:, None]) & (np.abs(time - position[:, None]) <= REACH)


class ContextEncoder(nn.Module):
    """Turns each mention's sentence into a context vector d'_e."""

    def __init__(
        self, embedding_dim: int, encoder_dim: int, context_dim: int, further_dim: int = 0
    ) -> None:
        """`further_dim` is the size of what an extension reads in addition to the two states."""
        super().__init__()
        self.forward_lstm = LSTM(embedding_dim, encoder_dim)
        self.backward_lstm = LSTM(embedding_dim, encoder_dim)
        self.W_hd = nn.Parameter(torch.empty(context_dim, 2 * encoder_dim + further_dim))
        self.b_d = nn.Parameter(torch.zeros(context_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; W_hd preserves the variance of its input through the ReLU."""
        self.forward_lstm.reset_parameters(generator)
        self.backward_lstm.reset_parameters(generator)
        nn.init.kaiming_uniform_(self.W_hd, nonlinearity="relu", generator=generator)

    def contexts(
        self,
        h_forward: Float[Tensor, "mentions encoder_dim"],
        h_backward: Float[Tensor, "mentions encoder_dim"],
        words: Callable[[], SentenceWords],  # noqa: ARG002 (for extensions)
    ) -> Float[Tensor, "mentions context_dim"]:
        """Eq. 6 from the h before and after each mention."""
        return self.project(torch.cat((h_forward, h_backward), 1))

    def project(self, around: Float[Tensor, "mentions _"]) -> Float[Tensor, "mentions context_dim"]:
        """The last step of Eq. 6."""
        return torch.relu(torch.addmm(self.b_d, around, self.W_hd.t()))
