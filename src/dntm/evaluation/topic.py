"""Topic vectors: the content of the sentences that mention an entity (beyond the paper).

d_e encodes the position of an entity among the words of its sentences. A topic vector c_e encodes
which words these are:

    c_e = sum over the sentences that mention e, and their words w, of a / (a + p(w)) x_w,
          minus its projection on the first principal component of such words
    g_e = x_e + t |x_e| c_e / |c_e|

The weights are those of SIF (Arora et al. 2017), with p(w) by Zipf's law: rows are in order of
frequency. Nothing here is learned, and the language model does not use it. g_e replaces x_e only
where an unknown word is compared with known words.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows

TOPIC = 0.2
"""The weight t."""
SMOOTHING = 1e-3
"""SIF's a."""


class Topic:
    """Computes the topic vectors of sentences."""

    def __init__(self, x: Float[Tensor, "vocabulary dim"], entities: int) -> None:
        first = entity_rows(entities).stop
        frequency = 1 / torch.arange(1, len(x) - first + 1, dtype=x.dtype, device=x.device)
        frequency /= frequency.sum()
        self._x = x.detach()
        self._weight = x.new_zeros(len(x))
        self._weight[first:] = SMOOTHING / (SMOOTHING + frequency)
        words = self._weight[first:].unsqueeze(1) * self._x[first:]
        moments = (frequency.unsqueeze(1) * words).t() @ words
        self._common = torch.linalg.eigh(moments.double())[1][:, -1].to(x)

    def of(self, sentence: Sequence[int]) -> Float[Tensor, " dim"]:
        """The contribution of a sentence, as rows of the vocabulary, to c_e of its entities."""
        rows = torch.tensor(sentence, dtype=torch.long, device=self._x.device)
        found: Tensor = self._weight[rows] @ self._x[rows]
        return torch.sub(found, (found @ self._common) * self._common)


def with_topic(
    x_e: Float[Tensor, "entities dim"], c_e: Float[Tensor, "entities dim"]
) -> Float[Tensor, "entities dim"]:
    """g_e; equal to x_e where c_e is zero."""
    lengths: Tensor = x_e.norm(dim=1, keepdim=True)
    return torch.add(x_e, TOPIC * lengths * nn.functional.normalize(c_e.to(x_e), dim=1))
