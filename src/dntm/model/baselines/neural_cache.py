"""NeuralCache: the continuous cache of Grave et al. (2017) around a trained model.

    p_cache(w_{t+1} = w) ~ sum over i < t with w_{i+1} = w of exp(theta h_t . h_i)
    p(w_{t+1})           = (1 - lambda) p_model(w_{t+1}) + lambda p_cache(w_{t+1})

Every document starts with an empty cache, and p is p_model for its first token. Entities are cached
like words. theta and lambda are tuned on the dev split.

Departure: the paper has no cache. `dntm evaluate --cache` scores with one.
"""

from collections.abc import Iterable, Iterator
from itertools import tee

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import EOS, Vocabulary
from dntm.model.scorer import Floats, Scorer

THETAS = (0.0, *(2.0 ** (k / 2) for k in range(-10, 13)))
"""The values of theta that `tune` tries, from flat to sharp."""
SIZE = 10_000
"""Number of tokens in the cache."""
CHUNK = 512
"""Positions that are looked up at once."""


class NeuralCache:
    """A model with a cache."""

    def __init__(self, scorer: Scorer, *, theta: float, weight: float) -> None:
        self.scorer, self.theta, self.weight = scorer, theta, weight
        self.vocabulary: Vocabulary = scorer.vocabulary

    @classmethod
    def tune(cls, scorer: Scorer, documents: Iterable[AnonymizedDocument]) -> "NeuralCache":
        """The cache under which these documents are most likely.

        For each theta the likelihood is concave in lambda; theta rises until it falls.
        """
        found = []
        first, second = tee(documents)
        for document, (log_p, h) in zip(first, scorer.states(second), strict=True):
            found.append((log_p[1:], h, _values(document, scorer.vocabulary)))
        model = np.concatenate([log_p for log_p, _, _ in found])
        best: tuple[float, float, float] | None = None
        for theta in THETAS:
            cached = np.concatenate([_recall(h, values, theta)[1:] for _, h, values in found])
            weight = best_weight(model, cached)
            likelihood = float(np.log((1 - weight) * np.exp(model) + weight * cached).sum())
            if best is not None and likelihood <= best[0]:
                break
            best = (likelihood, theta, weight)
        assert best is not None
        return cls(scorer, theta=best[1], weight=best[2])

    def score(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """For each document the log-probability (nats) of every predicted token, in order."""
        first, second = tee(documents)
        for document, (log_p, h) in zip(first, self.scorer.states(second), strict=True):
            cached = _recall(h, _values(document, self.vocabulary), self.theta)
            mixed = np.log((1 - self.weight) * np.exp(log_p) + self.weight * cached)
            mixed[:1] = log_p[:1]
            yield mixed


def best_weight(model: Float[np.ndarray, " tokens"], cached: Float[np.ndarray, " tokens"]) -> float:
    """The lambda of the most likely mixture of log-probabilities and cached probabilities."""
    ratio = cached * np.exp(-model)
    low, high = 0.0, 1.0
    for _ in range(40):
        weight = (low + high) / 2
        if ((ratio - 1) / (1 - weight + weight * ratio)).sum() > 0:
            low = weight
        else:
            high = weight
    return low


def _values(document: AnonymizedDocument, vocabulary: Vocabulary) -> Int[np.ndarray, " tokens"]:
    """The predicted tokens: the row of a word, -k for entity k."""
    found: list[int] = []
    for sentence in document.sentences:
        found += (vocabulary.row(t) if isinstance(t, str) else -t for t in sentence)
        found.append(EOS)
    return np.array(found, dtype=np.int64)


def _recall(
    h: Float[Tensor, "tokens hidden_dim"], values: Int[np.ndarray, " tokens"], theta: float
) -> Floats:
    """p_cache of every token of a document; 0 for the first."""
    keys, labels = h.double(), torch.from_numpy(values).to(h.device)
    found = np.zeros(len(values))
    for start in range(1, len(values), CHUNK):
        positions = torch.arange(start, min(start + CHUNK, len(values)), device=h.device)
        entries = torch.arange(int(positions[-1]), device=h.device)
        age = positions.unsqueeze(1) - entries
        logits = theta * keys[positions] @ keys[: len(entries)].t()
        shares = logits.masked_fill((age < 1) | (age > SIZE), -torch.inf).softmax(1)
        same = labels[: len(entries)] == labels[positions].unsqueeze(1)
        found[start : start + CHUNK] = torch.where(same, shares, 0).sum(1).cpu().numpy()
    return found
