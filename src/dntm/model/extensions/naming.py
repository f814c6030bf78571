"""Naming: predicts the word that an entity stands for from the entity's embedding.

If a known word is hidden in some sentences, the correct word is known. After each of them

    p(w | e, i) = softmax_w( s_n cos(g_e, x_w) ),   g_e = W d_{e,i} + b

over the words of the vocabulary. The scale s_n = s exp(t_n) after the n-th mention is learned: with
more contexts, predictions are more certain. This loss trains g_e to resemble the embedding of the
hidden word, so that the words nearest to an unknown word indicate its meaning. g_e is computed like
x_e of Eq. 9; whether the core reads it depends on the variant.

Departure: the paper has no such loss. Pretraining learns the memory and the scales with it
(`sentence_completion.GapNaming`); `--model.extensions naming` keeps W, b and the scales in a
language model, to predict words for its entities. The language model does not train them.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import Vocabulary, entity_rows
from dntm.model.term import Term

START = 10.0
"""The scale s before training."""
FREQUENT = 100
"""This many of the most frequent words are never hidden."""
MENTIONS = 6
"""From this mention on the scale is the same."""
HELD_OUT = 20
"""Of the other words, one in this many is held out."""


class Naming(Term):
    """W, b and the scales of the cosines; they do not change the query."""

    def __init__(self, embedding_dim: int = 0, context_dim: int = 0) -> None:
        """Pretraining has W and b elsewhere."""
        super().__init__()
        self.W = nn.Parameter(torch.zeros(embedding_dim, context_dim)) if embedding_dim else None
        self.b = nn.Parameter(torch.zeros(embedding_dim)) if embedding_dim else None
        self.s = nn.Parameter(torch.tensor(START))
        self.t = nn.Parameter(torch.zeros(MENTIONS))

    def named(self, d: Float[Tensor, "named context_dim"]) -> Float[Tensor, "named dim"]:
        """g_e of these states."""
        assert self.W is not None
        assert self.b is not None
        return torch.addmm(self.b, d, self.W.t()).detach()

    def scale(self, mentions: Int[Tensor, "*named"]) -> Float[Tensor, "*named"]:
        """The scale s_n after each number of mentions."""
        return self.s * self.t[mentions.clamp(1, MENTIONS) - 1].exp()

    def loss(
        self,
        x_e: Float[Tensor, "named dim"],
        x: Float[Tensor, "candidates dim"],
        answers: Int[Tensor, " named"],
        log_included: Float[Tensor, " candidates"],
        mentions: Int[Tensor, " named"],
    ) -> Float[Tensor, ""]:
        """The sum of -log p(answer) in nats; answers are indices of candidates.

        `log_included` is the log of the probability with which each candidate was drawn: a drawn
        candidate stands for those that were not.
        """
        scaled = self.scale(mentions).unsqueeze(1) * nn.functional.normalize(x_e, dim=1)
        logits = scaled @ nn.functional.normalize(x, dim=1).t() - log_included
        return nn.functional.cross_entropy(logits, answers, reduction="sum")


def naming_term(terms: nn.ModuleDict) -> Naming | None:
    """The naming term of a model; None if it has none."""
    found = terms["naming"] if "naming" in terms else None  # noqa: SIM401 (a ModuleDict has no get)
    assert found is None or isinstance(found, Naming)
    return found


def nameable(vocabulary: Vocabulary) -> Bool[np.ndarray, " vocabulary"]:
    """Which rows can be an answer: words of at least two characters that start with a letter."""
    able = [len(word) > 1 and word[0].isalpha() for word in vocabulary.words]
    return np.array([False] * entity_rows(vocabulary.entities).stop + able)


def held_out_types(vocabulary: Vocabulary) -> Bool[np.ndarray, " vocabulary"]:
    """Every twentieth word: it is never hidden in training, so that it can be tested."""
    chosen = slice(entity_rows(vocabulary.entities).stop + FREQUENT, None, HELD_OUT)
    found = np.zeros(len(vocabulary), dtype=np.bool_)
    found[chosen] = nameable(vocabulary)[chosen]
    return found
