"""Vectors for unknown words from the words around them.

    bag of words    mean of a / (a + p(c)) x_c over the context words c, minus its projection on the
                    first principal component of such words (SIF; Arora et al. 2017); the mean of
                    all words is subtracted from x
    a la carte      A u, with u the mean of x_c over the context words c (Khodak et al. 2018);
                    A minimizes the sum over words w of log(count_w) |x_w - A u_w|^2

Both are means over the mentions read so far. The context of a mention consists of the known words
of its sentence, up to ten on each side; mentions of entities do not count.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.vocabulary import entity_rows
from dntm.evaluation.passages import Passage
from dntm.model.extensions.naming import nameable
from dntm.model.scorer import Scorer

WINDOW = 10
"""Context words on each side."""
SMOOTHING = 1e-3
"""SIF's a."""
_BATCH = 2000
"""Sentences whose contexts are computed at once."""


def context_vectors(
    sentences: Sequence[Sequence[int]],
    x: Float[Tensor, "vocabulary dim"],
    weights: Float[Tensor, " vocabulary"],
) -> Float[Tensor, "tokens dim"]:
    """The mean of weight times x over the context words of each token.

    Rows of weight 0 are not words. The mean of no words is 0.
    """
    lengths = np.array([len(sentence) for sentence in sentences])
    rows = torch.tensor([row for sentence in sentences for row in sentence])
    end = np.repeat(np.cumsum(lengths), lengths)
    start = end - np.repeat(lengths, lengths)
    here = np.arange(len(rows))
    low = torch.from_numpy(np.maximum(start, here - WINDOW))
    high = torch.from_numpy(np.minimum(end, here + WINDOW + 1))
    weight = weights[rows].double().unsqueeze(1)
    values = torch.cat((weight * x[rows].double(), weight > 0), 1)
    sums = torch.cat((torch.zeros_like(values[:1]), values.cumsum(0)))
    around = sums[high] - sums[low] - values
    return (around[:, :-1] / around[:, -1:].clamp(min=1)).to(x.dtype)


class WordBaseline:
    """A linear map of the mean context vector of the mentions read so far."""

    def __init__(
        self,
        words: Float[Tensor, "vocabulary dim"],
        weights: Float[Tensor, " vocabulary"],
        projection: Float[Tensor, "dim dim"],
    ) -> None:
        self.words, self.weights, self.projection = words, weights, projection

    def __call__(self, passage: Passage) -> Float[Tensor, "mentions dim"]:
        """The prediction after each mention, to be compared with `words`."""
        starts = np.cumsum([0, *map(len, passage.sentences)])
        tokens = [int(starts[s]) + t for s, t in passage.mentions()]
        means = context_vectors(passage.sentences, self.words, self.weights)[tokens].cumsum(0)
        means /= torch.arange(1, len(tokens) + 1, dtype=means.dtype).unsqueeze(1)
        return means @ self.projection.t()


def bag_of_words(model: Scorer) -> WordBaseline:
    """The SIF bag; p(w) is the word's share of the training text or, if not known, Zipf's law."""
    x, first = model.model.x.weight.detach(), entity_rows(model.vocabulary.entities).stop
    words = x - x[first:].mean(0)
    counts = 1 / torch.arange(1, 1 + len(x) - first, dtype=torch.float64)
    if model.vocabulary.counts:
        counts = torch.tensor(model.vocabulary.counts[first:], dtype=torch.float64)
    share = counts / counts.sum().clamp(min=1)
    weights = SMOOTHING / (SMOOTHING + share)
    weighted = weights.unsqueeze(1) * words[first:].double()
    directions = torch.linalg.eigh((share.unsqueeze(1) * weighted).t() @ weighted)[1].to(x)
    removal = torch.eye(x.shape[1]) - torch.outer(directions[:, -1], directions[:, -1])
    return WordBaseline(words, torch.cat((x.new_zeros(first), weights.to(x))), removal)


def a_la_carte(sentences: Iterable[Sequence[int]], model: Scorer) -> WordBaseline:
    """Fit the map A to sentences, as rows."""
    x, first = model.model.x.weight.detach(), entity_rows(model.vocabulary.entities).stop
    is_word = (torch.arange(len(x)) >= first).to(x.dtype)
    able = torch.from_numpy(nameable(model.vocabulary))
    sums = torch.zeros(x.shape, dtype=torch.float64)
    counts = torch.zeros(len(x), dtype=torch.float64)
    remaining = iter(sentences)
    while batch := list(islice(remaining, _BATCH)):
        rows = torch.tensor([row for sentence in batch for row in sentence])
        named = able[rows]
        sums.index_add_(0, rows[named], context_vectors(batch, x, is_word)[named].double())
        counts += torch.bincount(rows[named], minlength=len(counts))
    seen = counts > 1
    root = counts[seen].log().sqrt().unsqueeze(1)
    u = sums[seen] / counts[seen].unsqueeze(1)
    found, *_ = np.linalg.lstsq((root * u).numpy(), (root * x[seen].double()).numpy(), rcond=None)
    return WordBaseline(x, is_word, torch.from_numpy(found.T.copy()).to(x.dtype))
