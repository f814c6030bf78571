"""Baselines for the meaning of entities, computed from the words around their mentions.

    bag of context    mean of a / (a + p(c)) x_c over the context words c, minus its projection on
                      the first principal component (SIF; Arora et al. 2017)
    a la carte        A u, with u the mean of x_c over the context words c and A the least
                      squares map from the u of words to their x (Khodak et al. 2018)
    encoder           context vectors of a pretrained encoder

Each is a mean over the mentions read so far. The context of a mention consists of the known words
of its sentence, up to ten on each side; mentions of entities do not count.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import entity_rows
from dntm.evaluation.passages import Passage
from dntm.evaluation.ranks import Contexts
from dntm.model.extensions.naming import infrequent, nameable
from dntm.model.scorer import Scorer

WINDOW = 10
"""Context words on each side."""
BATCH = 32
"""Documents processed at once."""
SMOOTHING = 1e-3
"""SIF's a."""


@dataclass(frozen=True)
class WordBaseline:
    """Predicts a vector for an entity: the mean of the context vectors of its mentions so far."""

    words: Float[Tensor, "vocabulary dim"]
    """The word vectors that predictions are compared with, by rows of the model."""
    contexts: Callable[[Sequence[Sequence[int]]], Float[Tensor, "tokens dim"]]
    """Maps sentences to one context vector per token, <bos> and <eos> included."""
    projection: Float[Tensor, "dim dim"] | None = None
    """A linear map that is applied to the mean."""

    def __call__(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        """The prediction after each mention of a hidden word, in reading order."""
        sentences, tokens, entities = _mentions(passages)
        means = _running_mean(self.contexts(sentences).index_select(0, tokens), entities)
        return means if self.projection is None else means @ self.projection.t()


def encoder_baseline(
    words: Float[Tensor, "vocabulary dim"],
    contexts: Contexts,
    rows: Int[np.ndarray, " vocabulary"],
) -> WordBaseline:
    """The baseline of a pretrained encoder, given its row for each row of the model."""

    def of_tokens(sentences: Sequence[Sequence[int]]) -> Float[Tensor, "tokens dim"]:
        found = contexts([rows[np.asarray(sentence[1:-1])] for sentence in sentences])
        inside = [0 < t < len(s) - 1 for s in sentences for t in range(len(s))]
        padded = found.new_zeros(len(inside), found.shape[1])
        padded[torch.tensor(inside)] = found
        return padded

    return WordBaseline(words, of_tokens)


def _mentions(
    passages: Sequence[Passage],
) -> tuple[list[Sequence[int]], Int[Tensor, " mentions"], list[tuple[int, int]]]:
    """The sentences that mention a hidden word, and each mention's token and entity in them."""
    sentences: list[Sequence[int]] = []
    tokens: list[int] = []
    entities: list[tuple[int, int]] = []
    end = 0
    for number, passage in enumerate(passages):
        last = -1
        for s, position, entity in passage.mentions():
            if s != last:
                sentences.append(passage.sentences[s])
                end += len(sentences[-1])
            last = s
            tokens.append(end - len(sentences[-1]) + position)
            entities.append((number, entity))
    return sentences, torch.tensor(tokens, dtype=torch.int64), entities


def _running_mean(
    values: Float[Tensor, "mentions dim"], entities: Sequence[tuple[int, int]]
) -> Float[Tensor, "mentions dim"]:
    """The mean over an entity's mentions up to each of them."""
    means = torch.empty_like(values)
    mentions_of: dict[tuple[int, int], list[int]] = {}
    for mention, entity in enumerate(entities):
        mentions_of.setdefault(entity, []).append(mention)
    for mentions in mentions_of.values():
        count = torch.arange(1, len(mentions) + 1, dtype=values.dtype)
        means[mentions] = values[mentions].cumsum(0) / count.unsqueeze(1)
    return means


def context_vectors(
    sentences: Sequence[Sequence[int]],
    words: Float[Tensor, "vocabulary dim"],
    weights: Float[Tensor, " vocabulary"],
) -> Float[Tensor, "tokens dim"]:
    """The mean of weight times embedding over the context words of each token.

    Rows of weight 0 are not words. The mean of no words is 0.
    """
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    rows = torch.tensor([row for sentence in sentences for row in sentence], dtype=torch.int64)
    end = np.repeat(np.cumsum(lengths), lengths)
    start = end - np.repeat(lengths, lengths)
    here = np.arange(len(rows))
    low = torch.from_numpy(np.maximum(start, here - WINDOW))
    high = torch.from_numpy(np.minimum(end, here + WINDOW + 1))
    weight = weights[rows].double()
    values = torch.cat((weight.unsqueeze(1) * words[rows].double(), (weight > 0).unsqueeze(1)), 1)
    sums = torch.cat((torch.zeros_like(values[:1]), values.cumsum(0)))
    around = sums[high] - sums[low] - values
    return (around[:, :-1] / around[:, -1:].clamp(min=1)).to(words.dtype)


def zipf(words: Float[Tensor, "words dim"]) -> Float[Tensor, " words"]:
    """Zipf's law: the share of each word in texts, for words in order of frequency."""
    frequency = 1 / torch.arange(1, len(words) + 1, dtype=words.dtype, device=words.device)
    return torch.div(frequency, frequency.sum())


def sif_weights(share: Float[Tensor, " words"]) -> Float[Tensor, " words"]:
    """The weight a / (a + p(w)) of words with these shares p(w)."""
    return SMOOTHING / torch.add(share, SMOOTHING)


def principal_component(moments: Float[Tensor, "dim dim"]) -> Float[Tensor, " dim"]:
    """The first principal component of vectors, given the sum of their outer products."""
    component: Tensor = torch.linalg.eigh(moments.double())[1][:, -1]
    return component


def fit_context_baselines(
    texts: Sequence[Sequence[Sequence[int]]], model: Scorer, *, counted: bool = True
) -> tuple[WordBaseline, WordBaseline]:
    """Fit the bag of context and a la carte to documents, as rows.

    p(w) is the word's share of the text or, unless `counted`, Zipf's law. The principal component
    is that of the contexts of words that can be hidden. The least squares map is fitted to all
    nameable words, weighted by their log frequency.
    """
    x = model.model.x.weight.detach()
    able = torch.from_numpy(nameable(model.vocabulary))
    first = entity_rows(model.vocabulary.entities).stop
    is_word = (torch.arange(len(x)) >= first).to(x.dtype)
    share = zipf(x[first:])
    if counted:
        rows = torch.tensor([r for text in texts for sentence in text for r in sentence])
        frequency = torch.bincount(rows, minlength=len(x))[first:].to(x.dtype)
        share = frequency / frequency.sum().clamp(min=1e-30)
    sif = torch.cat((x.new_zeros(first), sif_weights(share)))
    hidden = torch.from_numpy(infrequent(model.vocabulary))
    sums = torch.zeros(x.shape, dtype=torch.float64)
    counts = torch.zeros(len(x), dtype=torch.float64)
    moments = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    for start in range(0, len(texts), BATCH):
        sentences = [sentence for text in texts[start : start + BATCH] for sentence in text]
        flat = torch.tensor([r for sentence in sentences for r in sentence], dtype=torch.int64)
        targets = able[flat].nonzero().squeeze(1)
        means = context_vectors(sentences, x, is_word).index_select(0, targets)
        sums.index_add_(0, flat[targets], means.double())
        counts.index_add_(0, flat[targets], torch.ones(len(targets), dtype=torch.float64))
        bags = context_vectors(sentences, x, sif)[hidden[flat]]
        moments += (bags.t() @ bags).double()
    component = principal_component(moments).to(x.dtype)
    same = torch.eye(len(component), dtype=x.dtype)
    removal = same - torch.outer(component, component) if moments.any() else same
    bag = WordBaseline(x, partial(context_vectors, words=x, weights=sif), removal)
    unweighted = partial(context_vectors, words=x, weights=is_word)
    return bag, WordBaseline(x, unweighted, _least_squares(sums, counts, x))


def _least_squares(
    sums: Float[Tensor, "vocabulary dim"],
    counts: Float[Tensor, " vocabulary"],
    x: Float[Tensor, "vocabulary dim"],
) -> Float[Tensor, "dim dim"]:
    """The A that minimizes the sum over w of log(count_w) |x_w - A u_w|^2."""
    seen = (counts > 1).nonzero().squeeze(1)
    root = counts[seen].log().sqrt().unsqueeze(1)
    u = sums[seen] / counts[seen].unsqueeze(1)
    found, *_ = np.linalg.lstsq((root * u).numpy(), (root * x[seen].double()).numpy(), rcond=None)
    return torch.from_numpy(found.T.copy()).to(x.dtype)
