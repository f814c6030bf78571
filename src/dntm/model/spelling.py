"""Spelling: a probability for every string of one or more words (open vocabulary).

    q(s)     = lambda U(s) + (1 - lambda) C(s)                           a new string
    r(s | e) = a_n F(s | e) + b_n [s = last(e)] + c_n W(s | e) + d_n q(s)     another mention of e

U is the relative frequency of s among the first mentions and unknown words of the training text. C
is a character n-gram model of these strings (`NGram`): a space ends a word, <eos> ends the string.
n is the number of mentions of e so far, F the relative frequency of its forms, last(e) its last
form, and W the uniform distribution over the single words of its forms (*Brandt* after *Anna
Brandt*). lambda and the shares a, b, c, d (for a few ranges of n) maximize the likelihood of the
dev split, whose strings are not counted in U (expectation maximization). `spelling.json` holds the
weights, and the strings (words joined by spaces) with their counts. `strings` derives the surprisal
of every word of a text.

Departure: the paper's model predicts entities and <unk>, not their words.
"""

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary, is_label
from dntm.files import write_text
from dntm.model.baselines.ngram import NGram
from dntm.settings import read_json

FILE = "spelling.json"
FORMAT_VERSION = 1
ORDER = 6
"""Order of the character n-gram model."""
STRINGS = 30_000
"""Number of strings that are kept, the most frequent ones."""
MENTIONS = (2, 3, 5, 9)
"""The ranges of n begin at 1 and at these numbers."""
_CODE_POINTS = 0x110000
"""The code points of Unicode. A character outside the alphabet can be any other code point."""
_STEPS = 100
"""Steps of expectation maximization."""
_CACHED = 200_000
"""Strings whose q is cached."""
_LOWEST = -700.0
"""Lower log-probabilities are raised to this value, since their exponential is zero."""

Words = tuple[str, ...]
"""A string, as the vocabulary spells its words."""


def string_of(words: Iterable[str], vocabulary: Vocabulary) -> Words:
    """The string of these words. Only blanks between words end one: `10 000` can be a word."""
    return tuple(vocabulary.spelled(word).replace(" ", "\u00a0") for word in words)


class Spelled(NamedTuple):
    """Log-probabilities of a string under q."""

    begins: tuple[float, ...]
    """That a string begins with its first word, its first two words, ..."""
    whole: float
    """That the whole string is this one."""


class FormShares(NamedTuple):
    """The weights a, b, c and d of r."""

    frequent: float
    last: float
    word: float
    new: float


class Forms:
    """The strings that have mentioned an entity so far."""

    def __init__(self) -> None:
        self.mentions = 0
        self.words: set[str] = set()
        """The words of all forms."""
        self._counts: Counter[Words] = Counter()
        self._begins: Counter[Words] = Counter()
        """The number of mentions that begin with some words."""
        self._last: Words = ()

    def add(self, words: Words) -> None:
        """Add a mention."""
        self.mentions += 1
        self.words.update(words)
        self._counts[words] += 1
        self._begins.update(words[:n] for n in range(1, len(words) + 1))
        self._last = words

    def copy(self) -> "Forms":
        """An independent copy."""
        other = copy(self)
        other.words, other._counts = set(self.words), self._counts.copy()
        other._begins = self._begins.copy()
        return other

    def parts(self, words: Words) -> list[tuple[float, float, float]]:
        """F, [s = last(e)] and W that s begins with these words, from the first one to all of them.

        The last item is that s is the whole string. There is at least one mention.
        """
        found = []
        for n in range(1, len(words) + 1):
            word = (n == 1 and words[0] in self.words) / len(self.words)
            count, last = self._begins[words[:n]], self._last[:n] == words[:n]
            found.append((count / self.mentions, float(last), word))
        word = found[0][2] if len(words) == 1 else 0.0
        return [*found, (self._counts[words] / self.mentions, float(self._last == words), word)]


class Spelling:
    """The strings of a training text, and the fitted weights."""

    def __init__(
        self,
        counts: Mapping[str, int],
        known: float,
        shares: Sequence[FormShares],
        ends: float | None = None,
    ) -> None:
        """`known` is lambda; `shares` has one item for each range of n.

        With a pretrained core, q is that of its pieces, and a new name ends after a piece with the
        probability `ends` (`strings`).
        """
        self.counts, self.known, self.shares, self.ends = counts, known, tuple(shares), ends
        characters = Counter(character for string in counts for character in string)
        ranked = sorted({*characters, " "}, key=lambda c: (-characters[c], c))
        self._alphabet = Vocabulary(tuple(ranked), entities=0)
        self._characters = NGram(self._rows(counts or [""]), self._alphabet, ORDER)
        self._begins: Counter[Words] = Counter()
        for string, count in counts.items():
            words = tuple(string.split(" "))
            self._begins.update({words[: n + 1]: count for n in range(len(words))})
        self._total = sum(counts.values())
        self._cache: dict[Words, Spelled] = {}

    def q(self, strings: Iterable[Words]) -> list[Spelled]:
        """Log-probabilities of strings under q; uncached strings are computed together."""
        strings = list(strings)
        if len(self._cache) > _CACHED:
            self._cache.clear()
        new = [words for words in dict.fromkeys(strings) if words not in self._cache]
        if new:
            self._cache.update(zip(new, map(self._mixed, new, self._spell(new)), strict=True))
        return [self._cache[words] for words in strings]

    def shares_after(self, mentions: int) -> FormShares:
        """The shares of an entity with this number of mentions."""
        return self.shares[bisect_right(MENTIONS, mentions)]

    def _rows(self, strings: Iterable[str]) -> Int[np.ndarray, " characters"]:
        row = self._alphabet.row
        rows = (r for string in strings for r in (BOS, *map(row, string), EOS))
        return np.fromiter(rows, dtype=np.int64)

    def _spell(self, strings: Sequence[Words]) -> Iterator[Spelled]:
        """Log-probabilities of strings under C. A word has at least one character."""
        rows, blank = self._rows(map(" ".join, strings)), self._alphabet.row(" ")
        p, *ends = (
            self._characters.probabilities(rows, others)
            for others in (rows, np.full_like(rows, blank), np.full_like(rows, EOS))
        )
        outside = _CODE_POINTS - len(self._alphabet.words)
        begins_word = np.isin(np.roll(rows, 1), (BOS, blank))
        log_p = np.log(p) - np.where(rows == UNK, math.log(outside), 0)
        log_p -= np.where(begins_word, np.log1p(-sum(ends)), 0)
        log_p[rows == BOS] = 0
        log_ends, is_end = np.log(sum(ends)), np.isin(rows, (blank, EOS))
        starts = np.flatnonzero(rows == BOS)
        for own in np.split(np.arange(len(rows)), starts[1:]):
            until, last = np.cumsum(log_p[own]), np.flatnonzero(is_end[own])
            begins = until[last - 1] + log_ends[own[last]]
            yield Spelled(tuple(begins.tolist()), float(until[-1]))

    def _mixed(self, words: Words, spelled: Spelled) -> Spelled:
        """Turn log-probabilities under C into log-probabilities under q."""

        def mixed(count: int, log_c: float) -> float:
            log_c += math.log1p(-self.known)
            if not count:
                return log_c
            return float(np.logaddexp(math.log(self.known * count / self._total), log_c))

        if not self._total:
            return spelled
        begins = (self._begins[words[: n + 1]] for n in range(len(words)))
        whole = mixed(self.counts.get(" ".join(words), 0), spelled.whole)
        return Spelled(tuple(map(mixed, begins, spelled.begins)), whole)

    @classmethod
    def fit(
        cls,
        train: Iterable[AnonymizedDocument],
        dev: Iterable[AnonymizedDocument],
        vocabulary: Vocabulary,
    ) -> "Spelling":
        """Count the strings of `train` and fit the weights on `dev`."""
        new = Counter(
            " ".join(words)
            for document in train
            for words, forms in mentions_of(document, vocabulary)
            if not forms.mentions
        )
        ranked = sorted(new.items(), key=lambda item: (-item[1], item[0]))
        equal = [FormShares(0.25, 0.25, 0.25, 0.25)] * (1 + len(MENTIONS))
        found = cls(dict(ranked[:STRINGS]), 0.5, equal)
        events = [
            (words, forms.mentions, forms.parts(words)[-1] if forms.mentions else ())
            for document in dev
            for words, forms in mentions_of(document, vocabulary)
        ]
        unseen = [words for words, n, _ in events if not n]
        parts = []
        for words, spelled in zip(unseen, found._spell(unseen) if unseen else (), strict=True):
            share = found.counts.get(" ".join(words), 0) / max(found._total, 1)
            parts.append([share, math.exp(max(spelled.whole, _LOWEST))])
        found.known = _maximize(parts, 2)[0]
        known = [(words, n, own) for words, n, own in events if n]
        each = found.q(words for words, *_ in known)
        found.shares = fit_shares(
            (n, own, q.whole) for (_, n, own), q in zip(known, each, strict=True)
        )
        return found

    def save(self, folder: Path) -> None:
        """Write `spelling.json`."""
        values = {"format_version": FORMAT_VERSION, "known": self.known, "shares": self.shares}
        values |= {} if self.ends is None else {"ends": self.ends}
        text = json.dumps({**values, "strings": self.counts}, ensure_ascii=False, indent=0)
        write_text(folder / FILE, text + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Spelling | None":
        """Read `spelling.json`; None if the folder has none."""
        path = folder / FILE
        if not path.is_file():
            return None
        found = read_json(path)
        if (version := found.get("format_version")) != FORMAT_VERSION:
            raise ValueError(f"{path}: format_version {version!r:.40}, expected {FORMAT_VERSION}")
        try:
            shares = [FormShares(*map(float, share)) for share in found["shares"]]
            counts = {str(string): int(count) for string, count in found["strings"].items()}
            known = float(found["known"])
            ends = float(found["ends"]) if "ends" in found else None
            assert ends is None or 0 < ends < 1
            assert 0 < known < 1 <= min(counts.values(), default=1)
            assert len(shares) == 1 + len(MENTIONS)
            assert all(min(share) > 0 and math.isclose(sum(share), 1) for share in shares)
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
            raise ValueError(f"{path} is damaged: {error!r:.200}") from None
        return cls(counts, known, shares, ends)


def mentions_of(
    document: AnonymizedDocument, vocabulary: Vocabulary
) -> Iterator[tuple[Words, Forms]]:
    """Every mention and unknown word, with the earlier forms of its entity (none: a new string).

    The forms change with the next mention. Mentions whose words are not known are left out.
    """
    surfaces, known = iter(document.surfaces), dict[int, Forms]()
    for token in (token for sentence in document.sentences for token in sentence):
        if isinstance(token, int):
            words = string_of(next(surfaces, ()), vocabulary)
            if not words or is_label(words[0]):
                continue
            yield words, known.setdefault(token, Forms())
            known[token].add(words)
        elif token not in vocabulary:
            yield string_of([token], vocabulary), Forms()


def fit_shares(
    mentions: Iterable[tuple[int, Sequence[float], float]],
) -> tuple[FormShares, ...]:
    """The shares that maximize the likelihood of mentions of known entities.

    Each has the number of earlier mentions, F, [s = last(e)] and W of its string, and log q.
    """
    ranges: list[list[list[float]]] = [[] for _ in range(1 + len(MENTIONS))]
    for n, parts, log_q in mentions:
        ranges[bisect_right(MENTIONS, n)].append([*parts, math.exp(max(log_q, _LOWEST))])
    return tuple(FormShares(*_maximize(own, 4)) for own in ranges)


def _maximize(events: Sequence[Sequence[float]], parts: int) -> list[float]:
    """The mixture weights that maximize the likelihood of events, given that of each part.

    One additional event for each part keeps its weight above zero.
    """
    p, weights = np.array([*np.eye(parts).tolist(), *events]), np.full(parts, 1 / parts)
    for _ in range(_STEPS):
        each = p * weights
        weights = (each / each.sum(1, keepdims=True)).mean(0)
    return [float(weight) for weight in weights]
