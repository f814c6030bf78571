"""Topic: what the sentences that mention an entity speak of (beyond the paper).

d_e is made of the place of an entity among the words of its sentences. What these words are about
is another witness: where there are nests, feathers and beaks, a bird is not far.

    c_e = sum over the sentences that mention e, and their words w, of a / (a + p(w)) x_w,
          less its projection on the first principal component of such words
    g_e = x_e + t |x_e| c_e / |c_e|

The weights are those of SIF (Arora et al. 2017), with p(w) by Zipf's law: rows stand in order of
frequency. Nothing of it is learned, and nothing is predicted with it: g_e takes the place of x_e
where it is asked which word an unknown one is taken for.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows

TOPIC = 0.2
"""The share t."""
SMOOTHING = 1e-3
"""SIF's a."""


class Topic:
    """The words of a vocabulary, as far as they tell a topic."""

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
        """What a sentence, as rows of the vocabulary, adds to the c_e of those it mentions."""
        rows = torch.tensor(sentence, dtype=torch.long, device=self._x.device)
        found: Tensor = self._weight[rows] @ self._x[rows]
        return torch.sub(found, (found @ self._common) * self._common)


def with_topic(
    x_e: Float[Tensor, "entities dim"], c_e: Float[Tensor, "entities dim"]
) -> Float[Tensor, "entities dim"]:
    """g_e; where nothing known stands around an entity it is x_e."""
    lengths: Tensor = x_e.norm(dim=1, keepdim=True)
    return torch.add(x_e, TOPIC * lengths * nn.functional.normalize(c_e.to(x_e), dim=1))
