"""NGram: an n-gram model with interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998).

    p_n(w | c)  = max(a(c w) - D(a(c w)), 0) / a(c .) + gamma(c) p_{n-1}(w | c')
    gamma(c)    = (D_1 N_1(c .) + D_2 N_2(c .) + D_3 N_3+(c .)) / a(c .)
    Y = n_1 / (n_1 + 2 n_2),   D_k = k - (k + 1) Y n_{k+1} / n_k

c' is c without its first word. If c is unseen, p_n is p_{n-1}; p_0 is uniform over all rows except
<bos>, which is never predicted. a is the count in the highest order; below it, the number of
different words before the n-gram (or its count, if it begins with <bos>). n_k is the number of
n-grams of an order with a = k, and N_k(c .) the number of those that begin with c.

Tokens are the same as for the other models, <eos> and entity rows included; contexts end at the
sentence's <bos>. An n-gram is identified by the number of its last n - 1 words and its first word,
so n-grams are counted by sorting.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import BOS, Vocabulary

ORDER = 5
FALLBACK = (0.5, 1.0, 1.5)
"""Discounts for a text that is too small to estimate them."""

Floats = Float[np.ndarray, " tokens"]
Rows = Int[np.ndarray, " tokens"]
Mask = Bool[np.ndarray, " tokens"]


class _Order(NamedTuple):
    """The n-grams of one length."""

    key: Int[np.ndarray, " ngrams"]
    """Number of the (n-1)-gram after the first word, times the number of rows, plus the first
    word's row. Sorted; the index in here is the n-gram's own number."""
    discounted: Float[np.ndarray, " ngrams"]
    """a - D(a)"""
    total: Float[np.ndarray, " contexts"]
    """a(c .), by the number of the (n-1)-gram c."""
    backoff: Float[np.ndarray, " contexts"]
    """gamma(c) a(c .)"""


class NGram:
    """The n-gram counts of a training text."""

    def __init__(
        self, text: Int[np.ndarray, " tokens"], vocabulary: Vocabulary, order: int = ORDER
    ) -> None:
        """Count a text: sentence after sentence, each from <bos> to <eos>."""
        self.text, self.vocabulary = text, vocabulary
        self._rows = len(vocabulary)
        self._orders: list[_Order] = []
        self._count(order)

    @classmethod
    def of(cls, documents: Iterable[AnonymizedDocument], vocabulary: Vocabulary) -> "NGram":
        """Count documents."""
        encoded = (encode(document, vocabulary) for document in documents)
        rows = chain.from_iterable(s for document in encoded for s in document.sentences)
        return cls(np.fromiter(rows, dtype=np.int64), vocabulary)

    @property
    def parameters(self) -> int:
        """Number of different n-grams."""
        return sum(len(order.key) for order in self._orders)

    def score(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """For each document the log-probability (nats) of every predicted token, in order."""
        for document in documents:
            yield self.score_sentences(encode(document, self.vocabulary).sentences)

    def score_sentences(self, sentences: Sequence[Sequence[int]]) -> Floats:
        """Log-probability of every token after <bos>."""
        rows = np.fromiter(chain.from_iterable(sentences), dtype=np.int64)
        found: Floats = np.log(self.probabilities(rows)[rows != BOS])
        return found

    def _count(self, highest: int) -> None:
        rows, place = self.text, _places(self.text)
        number = np.zeros(len(rows), dtype=np.int64)
        numbers, keys = [number], []
        for n in range(1, highest + 1):
            there = place >= n - 1
            if not there.any():
                break
            key = np.full(len(rows), -1, dtype=np.int64)
            key[there] = number[there] * self._rows + np.roll(rows, n - 1)[there]
            distinct = np.unique(key[there])
            number = np.where(there, np.searchsorted(distinct, key), -1)
            keys.append(distinct)
            numbers.append(number)
        for n in range(1, len(keys) + 1):
            own, there = numbers[n], (numbers[n] >= 0) & (rows != BOS)
            adjusted = np.bincount(own[there], minlength=len(keys[n - 1]))
            if n < len(keys):
                more = np.bincount(keys[n] // self._rows, minlength=len(keys[n - 1]))
                begins = there & (place == n - 1)
                opening = np.zeros(len(adjusted), dtype=bool)
                opening[own[begins]] = True
                adjusted = np.where(opening | (adjusted == 0), adjusted, more)
            context = np.zeros(len(adjusted), dtype=np.int64)
            context[own[there]] = np.roll(numbers[n - 1], 1)[there] if n > 1 else 0
            contexts = len(keys[n - 2]) if n > 1 else 1
            discount = np.array([0.0, *discounts(adjusted)])[np.minimum(adjusted, 3)]
            total = np.bincount(context, adjusted, minlength=contexts)
            backoff = np.bincount(context, discount, minlength=contexts)
            self._orders.append(_Order(keys[n - 1], adjusted - discount, total, backoff))

    def probabilities(
        self, rows: Int[np.ndarray, " tokens"], others: Int[np.ndarray, " tokens"] | None = None
    ) -> Floats:
        """Probability of each token, or of `others` in its place, given the tokens before it."""
        place = _places(rows)
        p = np.full(len(rows), 1 / (self._rows - 1))
        number = np.zeros(len(rows), dtype=np.int64)
        other = number
        for n, order in enumerate(self._orders, start=1):
            there, first = place >= n - 1, np.roll(rows, n - 1)
            context = np.where(there, np.roll(number, 1) if n > 1 else 0, -1)
            number, seen, at = self._find(order, number, first, there)
            if others is not None:
                last = others if n == 1 else first
                other, seen, at = self._find(order, other, last, there)
            total = np.where(context >= 0, order.total[context], 0)
            known = total > 0
            mass = np.where(seen, order.discounted[at], 0) + order.backoff[context] * p
            p = np.where(known, mass / np.where(known, total, 1), p)
        return p

    def _find(
        self, order: _Order, shorter: Rows, first: Rows, there: Mask
    ) -> tuple[Rows, Mask, Rows]:
        """The number of each n-gram (-1: unseen), whether it was seen, and a valid index."""
        wanted = shorter * self._rows + first
        at = np.minimum(np.searchsorted(order.key, wanted), len(order.key) - 1)
        seen = (shorter >= 0) & there & (order.key[at] == wanted)
        return np.where(seen, at, -1), seen, at


def _places(rows: Int[np.ndarray, " tokens"]) -> Int[np.ndarray, " tokens"]:
    """Number of earlier tokens in the same sentence."""
    index = np.arange(len(rows))
    return index - np.maximum.accumulate(np.where(rows == BOS, index, 0))


def discounts(adjusted: Int[np.ndarray, " ngrams"]) -> tuple[float, float, float]:
    """D_1, D_2 and D_3+ of an order from its adjusted counts."""
    n = np.bincount(np.minimum(adjusted, 5), minlength=6).astype(np.float64)
    if not n[1:4].all():
        return FALLBACK
    y = n[1] / (n[1] + 2 * n[2])
    found = tuple(k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))
    fits = all(0 < d <= k for k, d in enumerate(found, start=1))
    return (found[0], found[1], found[2]) if fits else FALLBACK
