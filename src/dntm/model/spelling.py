"""Open vocabulary: a probability for every string, and the surprisal of every word of a text.

`Spelling` has strings of one or more words:

    q(s)     = lambda U(s) + (1 - lambda) C(s)                           a new string
    r(s | e) = a_n F(s | e) + b_n [s = last(e)] + c_n W(s | e) + d_n q(s)     another mention of e

U is the relative frequency of s among the first mentions and unknown words of the training text. C
is a character n-gram model of these strings (`NGram`): a blank ends a word, <eos> ends the string.
n is the number of mentions of e so far, F the relative frequency of its forms, last(e) its last
form, and W the uniform distribution over the single words of its forms (*Brandt* after *Anna
Brandt*). lambda and the shares a, b, c, d (for a few ranges of n) maximize the likelihood of the
dev split, whose strings are not counted in U (expectation maximization). `spelling.json` holds the
strings, their words joined by blanks, with their counts, and the weights.

`StringReader` derives surprisals from the distribution over rows:

    p(s) = p(row of s) + (p(<unk>) + p(new entity)) q(s) + sum over known e of p(e) r(s | e)

s is the string of the next token: a word, or the words of a mention. Free entity rows stand for a
new entity. <bos>, which never follows, counts as <unk>, so that p is a distribution. A known entity
has been mentioned and has a slot. P(w_1 ... w_j) is the probability that s begins with these words,
a sum over the same terms:

    surprisal(w_j) = -log P(w_1 ... w_j) / P(w_1 ... w_{j-1})
    surprisal(w_1) = -log P(w_1) - log p(s') / P(s')             s': the string before

The second term is the surprisal of the end of s', which is known only when the next word is read.
The surprisal of a word therefore does not depend on later words.

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
from jaxtyping import Float, Int

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entity_slots import NOBODY, SentenceStrings
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary, entity_rows, is_label, row_of_entity
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
Surprisals = list[list[float]]
"""The surprisal of every word of every token of a sentence."""


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


class Forms(NamedTuple):
    """The strings that have mentioned an entity so far."""

    counts: Mapping[Words, int] = {}
    last: Words = ()

    @property
    def mentions(self) -> int:
        """The number of mentions."""
        return sum(self.counts.values())

    def after(self, words: Words) -> "Forms":
        """The forms after one more mention."""
        return Forms({**self.counts, words: self.counts.get(words, 0) + 1}, words)

    def strings(self, shares: FormShares) -> dict[Words, float]:
        """r(s | e) of each string, without the term d_n q(s)."""
        found = {form: shares.frequent * n / self.mentions for form, n in self.counts.items()}
        found[self.last] += shares.last
        single = {(word,) for form in self.counts for word in form}
        for words in single:
            found[words] = found.get(words, 0) + shares.word / len(single)
        return found


class Spelling:
    """The strings of a training text, and the fitted weights."""

    def __init__(
        self, counts: Mapping[str, int], known: float, shares: Sequence[FormShares]
    ) -> None:
        """`known` is lambda; `shares` has one item for each range of n."""
        self.counts, self.known, self.shares = counts, known, tuple(shares)
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
        events = [event for document in dev for event in mentions_of(document, vocabulary)]
        unseen = [words for words, forms in events if not forms.mentions]
        parts = []
        for words, spelled in zip(unseen, found._spell(unseen) if unseen else (), strict=True):
            share = found.counts.get(" ".join(words), 0) / max(found._total, 1)
            parts.append([share, math.exp(max(spelled.whole, _LOWEST))])
        found.known = _maximize(parts, 2)[0]
        ranges: list[list[list[float]]] = [[] for _ in equal]
        each = [FormShares(*row) for row in np.eye(4)[:3].tolist()]
        for (words, forms), spelled in zip(events, found.q(w for w, _ in events), strict=True):
            if n := forms.mentions:
                own = [forms.strings(share).get(words, 0.0) for share in each]
                own.append(math.exp(max(spelled.whole, _LOWEST)))
                ranges[bisect_right(MENTIONS, n)].append(own)
        found.shares = tuple(FormShares(*_maximize(own, 4)) for own in ranges)
        return found

    def save(self, folder: Path) -> None:
        """Write `spelling.json`."""
        values = {"format_version": FORMAT_VERSION, "known": self.known, "shares": self.shares}
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
            assert 0 < known < 1 <= min(counts.values(), default=1)
            assert len(shares) == 1 + len(MENTIONS)
            assert all(min(share) > 0 and math.isclose(sum(share), 1) for share in shares)
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
            raise ValueError(f"{path} is damaged: {error!r:.200}") from None
        return cls(counts, known, shares)


def mentions_of(
    document: AnonymizedDocument, vocabulary: Vocabulary
) -> Iterator[tuple[Words, Forms]]:
    """Every mention and unknown word, with the earlier forms of its entity (none: a new string).

    Mentions whose words are not known are left out.
    """
    surfaces, known = iter(document.surfaces), dict[int, Forms]()
    for token in (token for sentence in document.sentences for token in sentence):
        if isinstance(token, int):
            words = string_of(next(surfaces, ()), vocabulary)
            if not words or is_label(words[0]):
                continue
            forms = known.get(token, Forms())
            yield words, forms
            known[token] = forms.after(words)
        elif token not in vocabulary:
            yield string_of([token], vocabulary), Forms()


def _maximize(events: Sequence[Sequence[float]], parts: int) -> list[float]:
    """The mixture weights that maximize the likelihood of events, given that of each part.

    One additional event for each part keeps its weight above zero.
    """
    p, weights = np.array([*np.eye(parts).tolist(), *events]), np.full(parts, 1 / parts)
    for _ in range(_STEPS):
        each = p * weights
        weights = (each / each.sum(1, keepdims=True)).mean(0)
    return [float(weight) for weight in weights]


class RowScores(NamedTuple):
    """Log-probabilities that a model assigns before each token of a sentence."""

    first: Float[np.ndarray, "tokens rows"]
    """Of the rows of special tokens and entities."""
    word: Float[np.ndarray, " tokens"]
    """Of the row of the token's first word."""


class StringReader:
    """Reads the sentences of one text with the scores of one or more models.

    It keeps the forms of all entities mentioned so far, and which of them have a slot.
    """

    def __init__(self, spelling: Spelling, entities: int, models: int = 1) -> None:
        self.spelling = spelling
        self._entity: dict[int, int] = {}
        """The known entity of each row."""
        self._forms: dict[int, Forms] = {}
        """The forms of every mentioned entity, including evicted entities."""
        self._rows: dict[str, frozenset[int]] = {}
        """For each word, the rows of known entities whose forms contain it."""
        self.rows = entity_rows(entities).stop
        """The number of special and entity rows."""
        self._weight = np.ones(self.rows)
        """The share of each row's probability that is distributed by q."""
        self._weight[EOS] = 0
        self._ends = [0.0] * models
        """For each model, -log(p(s) / P(s)) of the last string."""

    def copy(self) -> "StringReader":
        """An independent copy, to continue from here more than once."""
        other = copy(self)
        other._entity, other._forms = dict(self._entity), dict(self._forms)
        other._rows = dict(self._rows)
        return other

    def read(self, sentence: SentenceStrings, models: Sequence[RowScores]) -> list[Surprisals]:
        """The surprisal (nats) of every word of every token, for each model."""
        strings, tokens = [*sentence.strings, ("",)], [*sentence.tokens, ""]
        # The end of a sentence is a row and has no spelling.
        spelled = [*self.spelling.q(sentence.strings), Spelled((-np.inf,), -np.inf)]
        freed = {e.position: e.slot for e in sentence.evictions if e.entity == NOBODY}
        weights, position, log_q, is_row = [], list[int](), list[float](), list[bool]()
        copies: list[tuple[int, int, float]] = []  # event, row of an entity, share of a form
        for t, words in enumerate(strings):
            if t in freed:
                self._change(row_of_entity(freed[t]), None, 1.0)
            weights.append(self._weight)
            forms = self._known_forms(words[0])
            row, token = sentence.rows[t + 1], tokens[t]
            if isinstance(token, int) and is_label(words[0]):
                # A label such as [1] is no string: its surprisal is that of its row.
                copies += [(len(position), row, 1.0), (len(position) + 1, row, 1.0)]
                position += [t, t]
                log_q += [-np.inf, -np.inf]
                is_row += [False, False]
                self._change(row, None, 0.0)
                continue
            for n, value in enumerate((*spelled[t].begins, spelled[t].whole), start=1):
                whole = n > len(words)
                for row, form, share in forms:
                    if form == words if whole else form[:n] == words[:n]:
                        copies.append((len(position), row, share))
                position.append(t)
                log_q.append(value)
                is_row.append(sentence.words[t] != UNK and (n == 1 or (whole and n == 2)))
            if isinstance(token, int) and row != UNK:
                self._forms[token] = own = self._forms.get(token, Forms()).after(words)
                self._change(row, token, self.spelling.shares_after(own.mentions).new)
        found, ends = list[Surprisals](), list[float]()
        for scores, end in zip(models, self._ends, strict=True):
            first = np.exp(scores.first.astype(np.float64))
            copied = np.zeros(len(position))
            for event, row, share in copies:
                copied[event] += first[position[event], row] * share
            with np.errstate(divide="ignore"):
                q = np.log((first * weights).sum(1))[position] + log_q
                word = np.where(is_row, scores.word[position], -np.inf)
                values = iter(np.logaddexp.reduce([word, q, np.log(copied)]).tolist())
            found.append([])
            before = end
            for words in strings:
                *begins, whole_p = (next(values) for _ in range(1 + len(words)))
                found[-1].append([a - b for a, b in zip([before, *begins], begins, strict=False)])
                before = begins[-1] - whole_p
            ends.append(before)
        self._ends = ends
        return found

    def _known_forms(self, word: str) -> list[tuple[int, Words, float]]:
        """The row, form and share of every known form that begins with this word."""
        found = []
        for row in self._rows.get(word, ()):
            forms = self._forms[self._entity[row]]
            strings = forms.strings(self.spelling.shares_after(forms.mentions))
            found += [(row, form, share) for form, share in strings.items() if form[0] == word]
        return found

    def _change(self, row: int, entity: int | None, weight: float) -> None:
        """Set the entity of a row (or none), or update the forms of its entity."""
        if (before := self._entity.pop(row, None)) is not None:
            for word in {word for form in self._forms[before].counts for word in form}:
                self._rows[word] = self._rows.get(word, frozenset()) - {row}
        if entity is not None:
            self._entity[row] = entity
            for word in {word for form in self._forms[entity].counts for word in form}:
                self._rows[word] = self._rows.get(word, frozenset()) | {row}
        self._weight = self._weight.copy()
        self._weight[row] = weight
