"""Naming: which word an entity's embedding is (beyond the paper).

A known word that is hidden behind an entity has an answer key. After each of its mentions

    p(w | e, i) = softmax_w( s cos(x_e, x_w) ),   x_e = W_dx d_{e,i} + b_e^x (Eq. 9)

over the words of the vocabulary; s is learned. Training that asks for it makes x_e what the word's
own embedding would have been, so that the words near an unknown word say what it means.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import Vocabulary, entity_rows

START = 10.0
"""s before training; also where a model was never asked to name anything."""


class Naming(nn.Module):
    """The scale s of the cosines."""

    def __init__(self) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.tensor(START))

    def forward(
        self, x_e: Float[Tensor, "named dim"], x: Float[Tensor, "vocabulary dim"]
    ) -> Float[Tensor, "named vocabulary"]:
        """S cos(x_e, x_w): the logits of every word."""
        return (self.s * nn.functional.normalize(x_e, dim=1)) @ nn.functional.normalize(
            x, dim=1
        ).t()

    def loss(
        self,
        x_e: Float[Tensor, "named dim"],
        x: Float[Tensor, "candidates dim"],
        answers: Int[Tensor, " named"],
        log_included: Float[Tensor, " candidates"] | None = None,
    ) -> Float[Tensor, ""]:
        """The sum of -log p(answer), in nats, over candidates of which answers are numbers.

        A candidate that was drawn with some probability counts for all that were not:
        `log_included` is the logarithm of that probability.
        """
        logits = self(x_e, x)
        if log_included is not None:
            logits = logits - log_included
        return nn.functional.cross_entropy(logits, answers, reduction="sum")


def nameable(vocabulary: Vocabulary) -> Bool[np.ndarray, " vocabulary"]:
    """Which rows can be an answer: words of two letters or more, no numbers or signs."""
    first = entity_rows(vocabulary.entities).stop
    return np.array(
        [
            row >= first and len(w) > 1 and w[0].isalpha()
            for row, w in enumerate(vocabulary.labels())
        ]
    )
