"""Word attention: the context encoder also attends to the words of the mention's sentence.

    d'_e = ReLU(W_hd [h_fwd_{t-1}; h_bwd_{t+1}; a] + b_d)                          instead of Eq. 6
    a    = sum_j softmax_j(w_j + (u + K^T Q [h_fwd_{t-1}; h_bwd_{t+1}]) . x_j + r_{|t-j|}) x_j

over the known words j of the sentence with |t - j| <= 100: no entities, no unknown words. w_j is a
learned weight of word j, initialized to the log of its SIF weight (Arora et al. 2017); r has one
value per distance. A recurrent state keeps the role of a word better than its topic; a bag of word
vectors does the reverse. The vector a gives the encoder the information of a bag from the start.

Departure: the paper's encoder has the two states only.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.context_encoder import ContextEncoder, SentenceWords
from dntm.model.fast.layout import indices

QUERY_DIM = 64
DISTANCES = 40
"""Larger distances share one value."""
SIF = 1e-3
"""The parameter of the SIF weight SIF / (SIF + frequency)."""
_NOT_READ = -1e9


class WordAttention(ContextEncoder):
    """A ContextEncoder with attention over the known words of the sentence."""

    def __init__(
        self, embedding_dim: int, encoder_dim: int, context_dim: int, words: int, first_word: int
    ) -> None:
        """`words` is the number of words in the vocabulary, `first_word` the row of the first."""
        super().__init__(embedding_dim, encoder_dim, context_dim, embedding_dim)
        self.first_word = first_word
        self.w = nn.Parameter(torch.zeros(words))
        self.u = nn.Parameter(torch.zeros(embedding_dim))
        self.Q = nn.Parameter(torch.empty(QUERY_DIM, 2 * encoder_dim))
        self.K = nn.Parameter(torch.empty(QUERY_DIM, embedding_dim))
        self.r = nn.Parameter(torch.zeros(DISTANCES + 1))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; at first all words of a sentence have the same weight."""
        super().reset_parameters(generator)
        nn.init.xavier_uniform_(self.Q, generator=generator)
        nn.init.xavier_uniform_(self.K, generator=generator)

    @torch.no_grad()
    def begin_with_bag(
        self, W_dx: Float[Tensor, "embedding_dim context_dim"], counts: Int[np.ndarray, " words"]
    ) -> None:
        """Start with x_e = W_dx d_e that contains a, weighted by word frequency.

        ReLU(a) - ReLU(-a) = a, so twice as many dimensions of d as a has are set aside for it.
        """
        frequency = torch.from_numpy(counts / max(int(counts.sum()), 1))
        self.w.copy_((SIF / (SIF + frequency)).log())
        dim = len(self.u)
        eye = torch.eye(dim).to(self.w)
        self.W_hd[-2 * dim :] = 0
        self.W_hd[-2 * dim :, -dim:] = torch.cat((eye, -eye))
        self.W_hd[: -2 * dim, -dim:] = 0
        W_dx[:, -2 * dim :] = torch.cat((eye, -eye), 1)

    def contexts(
        self,
        h_forward: Float[Tensor, "mentions encoder_dim"],
        h_backward: Float[Tensor, "mentions encoder_dim"],
        words: Callable[[], SentenceWords],
    ) -> Float[Tensor, "mentions context_dim"]:
        """The equations above."""
        rows, x, distance = words()
        around = torch.cat((h_forward, h_backward), 1)
        query = torch.addmm(self.u, around @ self.Q.t(), self.K)
        known = torch.from_numpy((rows >= self.first_word) & (distance > 0)).to(x.device)
        word = indices(np.maximum(rows - self.first_word, 0).ravel(), x)
        apart = indices(np.minimum(distance, DISTANCES).ravel(), x)
        w, r = self.w.index_select(0, word), self.r.index_select(0, apart)
        scores = torch.bmm(x, query.unsqueeze(2)).squeeze(2) + (w + r).view(rows.shape)
        shares = scores.masked_fill(~known, _NOT_READ).softmax(1) * known
        a = torch.bmm(shares.unsqueeze(1), x).squeeze(1)
        return self.project(torch.cat((around, a), 1))


def encoder_of(
    sizes: tuple[int, int, int], rows: int, first_word: int, *, attention: bool
) -> ContextEncoder:
    """The encoder for a vocabulary, with or without word attention.

    `sizes` are those of embeddings, encoder and contexts.
    """
    if attention:
        return WordAttention(*sizes, rows - first_word, first_word)
    return ContextEncoder(*sizes)
