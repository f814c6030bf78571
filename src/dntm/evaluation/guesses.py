"""Guesses from the words around: at the word hidden in a gap, and at what entities mean.

Sentence completion: every word of a sentence in turn is hidden, and all words of the vocabulary are
ranked by how well they fit the gap. A word's rank is 1 plus the number of others that fit better or
as well; recall at k is the share of hidden words of rank at most k, and the mean reciprocal rank
that of 1 / rank. Unknown words are no targets, since nobody could tell which one was meant, and so
<unk> is not ranked, nor are <bos> and <eos>.

What entities mean (beyond the paper) is guessed as a mean over the mentions read so far:

    bag of context    mean of a / (a + p(c)) x_c over the context words c, less its projection on
                      the first principal component (SIF; Arora et al. 2017)
    a la carte        A u, with u the mean of x_c over the context words c and A the least
                      squares map from the u of words to their x (Khodak et al. 2018)
    encoder           x_hat of a pretrained encoder (`Gaps`)

The context of a mention are the known words of its sentence, up to ten on each side; mentions of
entities are none.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import SPECIALS, Vocabulary, entity_rows
from dntm.evaluation.passages import Passage
from dntm.evaluation.topic import SMOOTHING

Sentence = Int[np.ndarray, " _"]
Contexts = Callable[[Sequence[Sentence]], Float[Tensor, "words dim"]]
"""For sentences the context vector of every word's gap, in reading order."""

SENTENCES = 64
"""Sentences ranked at once."""
CUTS = (1, 10, 100)
FREQUENT = 100
"""So many of the most frequent words are neither hidden nor candidates."""
WINDOW = 10
"""Context words on each side."""
BATCH = 32
"""Passages read at once; what comes out does not depend on it."""


@dataclass(frozen=True)
class Recovery:
    """How well hidden words were recovered."""

    words: int
    recall: dict[int, float]
    """Share of the words among the first 1, 10, 100."""
    reciprocal_rank: float

    @classmethod
    def of(cls, ranks: Int[np.ndarray, " words"]) -> "Recovery":
        """From the rank of each hidden word; nan where there is none."""
        if not len(ranks):
            return cls(0, dict.fromkeys(CUTS, float("nan")), float("nan"))
        recall = {cut: float((ranks <= cut).mean()) for cut in CUTS}
        return cls(len(ranks), recall, float((1 / ranks).mean()))


@torch.no_grad()
def recover(
    sentences: Iterable[Sentence],
    contexts: Contexts,
    x: Float[Tensor, "vocabulary dim"],
    bias: Float[Tensor, " vocabulary"],
    answers: Bool[np.ndarray, " vocabulary"] | None = None,
) -> Recovery:
    """Rank all words by contexts . x + bias for every gap; with `answers` only those, for them."""
    ranks = []
    remaining = iter(sentences)
    bias = bias.to(x.device, copy=True)
    bias[: len(SPECIALS)] = -torch.inf
    if answers is not None:
        bias[torch.from_numpy(~answers).to(x.device)] = -torch.inf
    while batch := list(islice(remaining, SENTENCES)):
        words = torch.from_numpy(np.concatenate(batch)).to(x.device)
        known = (bias.index_select(0, words) != -torch.inf).nonzero().squeeze(1)
        scores = torch.addmm(bias, contexts(batch).index_select(0, known), x.t())
        if not bool((scores.isfinite() | (bias == -torch.inf)).all()):
            raise ValueError(
                "the encoder gives no finite number for some word, so there is nothing to rank: "
                "its training diverged"
            )
        ranks.append(_ranks(scores, words.index_select(0, known)))
    return Recovery.of(np.concatenate([np.zeros(0, dtype=np.int64), *ranks]))


def _ranks(scores: Tensor, words: Tensor) -> Int[np.ndarray, " words"]:
    right = scores.gather(1, words.unsqueeze(1))
    ranks: Int[np.ndarray, " words"] = (scores >= right).sum(1).cpu().numpy()
    return ranks


@torch.no_grad()
def fitting(
    context: Float[Tensor, " dim"],
    x: Float[Tensor, "vocabulary dim"],
    bias: Float[Tensor, " vocabulary"],
) -> list[tuple[int, float]]:
    """All rows with their scores, the best fit first."""
    scores = torch.addmv(bias, x, context)
    order = scores.argsort(descending=True)
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class MentionEmbeddings:
    """The embeddings of a document's entities after each of their mentions, in reading order."""

    row: Int[np.ndarray, " mentions"]
    """The entity's."""
    x: Float[Tensor, "mentions embedding_dim"]
    y: Float[Tensor, "mentions hidden_dim"]


@runtime_checkable
class MeaningModel(Protocol):
    """What is asked of a model; `dntm.model.text_model.TextModel` is one."""

    vocabulary: Vocabulary

    def nameable(self) -> Bool[np.ndarray, " vocabulary"]:
        """Which rows an entity can be named by."""

    def word_embeddings(self) -> tuple[Tensor, Tensor]:
        """x_w and y_w of every row."""

    def mention_embeddings(
        self, documents: Iterable[Sequence[Sequence[int]]]
    ) -> Iterator[MentionEmbeddings]:
        """For every mention of every document x_e and y_e after it."""


@runtime_checkable
class Way(Protocol):
    """A guess at what entities mean."""

    @property
    def words(self) -> Float[Tensor, "vocabulary dim"]:
        """What the guesses are compared with, by rows of the model's vocabulary."""

    def __call__(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        """The guess after each mention that is asked for, in reading order."""


@dataclass(frozen=True)
class ContextWords:
    """Guesses from the words around mentions, in any order."""

    words: Float[Tensor, "vocabulary dim"]
    weights: Float[Tensor, " vocabulary"]
    """0 for rows that are no words."""
    projection: Float[Tensor, "dim dim"]
    """What the mean over mentions is multiplied with."""

    def __call__(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        """Means over the mentions so far."""
        sentences, which, entities = _mentioning(passages)
        found = context_vectors(sentences, self.words, self.weights)
        return _running_mean(found.index_select(0, which), entities) @ self.projection.t()


@dataclass(frozen=True)
class Gaps:
    """Guesses of whoever fills gaps in sentences, such as a pretrained encoder."""

    words: Float[Tensor, "vocabulary dim"]
    contexts: Contexts
    rows: Int[np.ndarray, " vocabulary"]
    """The rows of its own vocabulary; that of <unk> for entities."""

    def __call__(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        """Means over the mentions so far."""
        sentences, which, entities = _mentioning(passages)
        inside = [self.rows[np.asarray(sentence[1:-1])] for sentence in sentences]
        # <bos> and <eos> of the sentences before it, and its own <bos>, have no gap.
        ends = np.cumsum([0, *map(len, sentences)])
        sentence = np.searchsorted(ends, which.numpy(), side="right") - 1
        found = self.contexts(inside)
        at = which - torch.from_numpy(2 * sentence + 1)
        return _running_mean(found.index_select(0, at), entities)


def _mentioning(
    passages: Sequence[Passage],
) -> tuple[list[Sequence[int]], Int[Tensor, " mentions"], list[tuple[int, int]]]:
    """The sentences with a mention that is asked for; of each the token among all; who it is."""
    sentences: list[Sequence[int]] = []
    which: list[int] = []
    entities: list[tuple[int, int]] = []
    tokens = 0
    for number, passage in enumerate(passages):
        last = -1
        for s, position, entity in passage.mentions():
            if s != last:
                sentences.append(passage.sentences[s])
                tokens += len(sentences[-1])
            last = s
            which.append(tokens - len(sentences[-1]) + position)
            entities.append((number, entity))
    return sentences, torch.tensor(which, dtype=torch.int64), entities


def _running_mean(
    values: Float[Tensor, "mentions dim"], entities: Sequence[tuple[int, int]]
) -> Float[Tensor, "mentions dim"]:
    """The mean over an entity's mentions up to each of them."""
    means = torch.empty_like(values)
    own: dict[tuple[int, int], list[int]] = {}
    for mention, entity in enumerate(entities):
        own.setdefault(entity, []).append(mention)
    for mentions in own.values():
        count = torch.arange(1, len(mentions) + 1, dtype=values.dtype)
        means[mentions] = values[mentions].cumsum(0) / count.unsqueeze(1)
    return means


def context_vectors(
    sentences: Sequence[Sequence[int]],
    words: Float[Tensor, "vocabulary dim"],
    weights: Float[Tensor, " vocabulary"],
) -> Float[Tensor, "tokens dim"]:
    """For each token the mean of weight times embedding over the words around it.

    Rows of weight 0 are no words; where there is no word around, the mean is 0.
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


def fit(
    texts: Sequence[Sequence[Sequence[int]]], model: MeaningModel, *, counted: bool = True
) -> tuple[ContextWords, ContextWords]:
    """The bag of context and a la carte, both fitted to a text.

    Without `counted`, p(w) is not the text's but Zipf's, by row.
    The principal component is that of the contexts of the words that can be hidden; of the map's
    targets, all words that can be named, each counts by the logarithm of its frequency.
    """
    x, nameable = model.word_embeddings()[0], torch.from_numpy(model.nameable())
    first = entity_rows(model.vocabulary.entities).stop
    is_word = torch.ones(len(x), dtype=x.dtype)
    is_word[:first] = 0
    rows = torch.tensor(
        [r for text in texts for sentence in text for r in sentence], dtype=torch.int64
    )
    frequency = torch.bincount(rows, minlength=len(x)).to(x.dtype) * is_word
    if not counted:
        frequency[first:] = 1 / torch.arange(1, len(x) - first + 1, dtype=x.dtype)
    sif = is_word * SMOOTHING / (SMOOTHING + frequency / frequency.sum().clamp(min=1e-30))
    hidden = nameable.clone()
    hidden[: first + FREQUENT] = False
    sums = torch.zeros(x.shape, dtype=torch.float64)
    counts = torch.zeros(len(x), dtype=torch.float64)
    moments = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    for start in range(0, len(texts), BATCH):
        sentences = [sentence for text in texts[start : start + BATCH] for sentence in text]
        flat = torch.tensor([r for sentence in sentences for r in sentence], dtype=torch.int64)
        targets = nameable[flat].nonzero().squeeze(1)
        means = context_vectors(sentences, x, is_word).index_select(0, targets)
        sums.index_add_(0, flat[targets], means.double())
        counts.index_add_(0, flat[targets], torch.ones(len(targets), dtype=torch.float64))
        bags = context_vectors(sentences, x, sif)[hidden[flat]]
        moments += (bags.t() @ bags).double()
    component = torch.linalg.eigh(moments)[1][:, -1].to(x.dtype)
    same = torch.eye(len(component), dtype=x.dtype)
    removal = same - torch.outer(component, component) if moments.any() else same
    a_la_carte = ContextWords(x, is_word, _least_squares(sums, counts, x))
    return ContextWords(x, sif, removal), a_la_carte


def _least_squares(
    sums: Float[Tensor, "vocabulary dim"],
    counts: Float[Tensor, " vocabulary"],
    x: Float[Tensor, "vocabulary dim"],
) -> Float[Tensor, "dim dim"]:
    """The A of least sum over w of log(count_w) |x_w - A u_w|^2."""
    seen = (counts > 1).nonzero().squeeze(1)
    root = counts[seen].log().sqrt().unsqueeze(1)
    u = sums[seen] / counts[seen].unsqueeze(1)
    found, *_ = np.linalg.lstsq((root * u).numpy(), (root * x[seen].double()).numpy(), rcond=None)
    return torch.from_numpy(found.T.copy()).to(x.dtype)
