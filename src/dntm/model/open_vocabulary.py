"""Open vocabulary: the surprisal of every word of a text, from the distribution over rows.

    p(s) = p(row of s) + (p(<unk>) + p(new entity)) q(s) + sum over known e of p(e) r(s | e)

s is the string of the next token: a word, or the words of a mention. q and r are those of
`spelling`. Free entity rows stand for a new entity. <bos>, which never follows, counts as <unk>, so
that p is a distribution. A known entity has been mentioned and has a slot.

Words are scored from left to right. P(w_1 ... w_j) is the probability that s begins with these
words, the sum over the same routes:

    surprisal(w_j) = -log P(w_1 ... w_j) / P(w_1 ... w_{j-1})
    surprisal(w_1) = -log P(w_1) - log p(s') / P(s')             s': the string before

The second part is the end of s', which becomes known with the next word. So a word costs the same
whatever follows it. How the text is divided into mentions decides only what the model reads next.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dntm.corpus.document import Token
from dntm.corpus.entity_slots import Eviction
from dntm.corpus.vocabulary import EOS, UNK, entity_rows, row_of_entity
from dntm.model.spelling import Forms, Spelled, Spelling, Words

_END = Spelled((-np.inf,), -np.inf)
"""The end of a sentence is a row and has no spelling."""


Surprisals = list[list[float]]
"""Of every word of every token of a sentence."""


class RowScores(NamedTuple):
    """What a model says before each token of a sentence."""

    first: Float[np.ndarray, "tokens rows"]
    """Log-probability of the rows of special tokens and entities."""
    word: Float[np.ndarray, " tokens"]
    """Log-probability of the row of the token's first word."""


class SentenceStrings(NamedTuple):
    """A sentence with its strings."""

    tokens: Sequence[Token]
    strings: Sequence[Words]
    """The words of every token, as the vocabulary spells them."""
    rows: Sequence[int]
    """<bos>, the row of every token, <eos>."""
    words: Sequence[int]
    """The row of each token's first word, <unk> if it has none; <eos>."""
    evictions: Sequence[Eviction]


class StringReader:
    """Reads the sentences of one text with the scores of one or more models.

    It keeps the forms of all entities mentioned so far, and which of them have a slot.
    """

    def __init__(self, spelling: Spelling, entities: int, models: int = 1) -> None:
        self.spelling = spelling
        self._entity: dict[int, int] = {}
        """The known entity of each row."""
        self._forms: dict[int, Forms] = {}
        """Of every entity mentioned, evicted ones included."""
        self._rows: dict[str, frozenset[int]] = {}
        """The rows of known entities with a word in their forms."""
        self._weight = np.ones(entity_rows(entities).stop)
        """How much of each row's probability q spells."""
        self._weight[EOS] = 0
        self._ends = [0.0] * models
        """For each model, -log p(s) / P(s) of the last string."""

    def copy(self) -> "StringReader":
        """An independent copy, to continue from here more than once."""
        other = StringReader(self.spelling, 0)
        other._entity, other._forms = dict(self._entity), dict(self._forms)
        other._rows, other._weight, other._ends = dict(self._rows), self._weight, self._ends
        return other

    def read(self, sentence: SentenceStrings, models: Sequence[RowScores]) -> list[Surprisals]:
        """The surprisal (nats) of every word of every token, for each model."""
        strings, events = [*sentence.strings, ("",)], _Events()
        spelled = [*self.spelling.q(sentence.strings), _END]
        tokens = [*sentence.tokens, ""]
        evicted = {eviction.position: eviction.slot for eviction in sentence.evictions}
        for t, words in enumerate(strings):
            if t in evicted:
                self._forget(row_of_entity(evicted[t]))
            events.weights.append(self._weight)
            forms = self._known_forms(words[0])
            for n, log_q in enumerate((*spelled[t].begins, spelled[t].whole), start=1):
                whole = n > len(words)
                is_row = sentence.words[t] != UNK and (n == 1 or (whole and len(words) == 1))
                events.add(t, log_q, is_row=is_row)
                for row, form, share in forms:
                    if form == words if whole else form[:n] == words[:n]:
                        events.copies.append((len(events.position) - 1, row, share))
            token = tokens[t]
            if isinstance(token, int) and sentence.rows[t + 1] != UNK:
                self._mention(sentence.rows[t + 1], token, words)
        found = []
        for m, scores in enumerate(models):
            values, before = iter(events.log_p(scores).tolist()), self._ends[m]
            found.append(own := list[list[float]]())
            for words in strings:
                *begins, whole = (next(values) for _ in range(1 + len(words)))
                own.append([a - b for a, b in zip([before, *begins], begins, strict=False)])
                before = begins[-1] - whole
            self._ends = [*self._ends[:m], before, *self._ends[m + 1 :]]
        return found

    def _known_forms(self, word: str) -> list[tuple[int, Words, float]]:
        """The row, form and share of every known form that begins with a word."""
        found = []
        for row in self._rows.get(word, ()):
            forms = self._forms[self._entity[row]]
            strings = forms.strings(self.spelling.shares_after(forms.mentions))
            found += [(row, form, share) for form, share in strings.items() if form[0] == word]
        return found

    def _mention(self, row: int, entity: int, words: Words) -> None:
        self._entity[row] = entity
        self._forms[entity] = forms = self._forms.get(entity, Forms()).after(words)
        for word in {word for form in forms.counts for word in form}:
            self._rows[word] = self._rows.get(word, frozenset()) | {row}
        self._weight = self._weight.copy()
        self._weight[row] = self.spelling.shares_after(forms.mentions).new

    def _forget(self, row: int) -> None:
        """A slot is free again."""
        if (entity := self._entity.pop(row, None)) is not None:
            for word in {word for form in self._forms[entity].counts for word in form}:
                self._rows[word] -= {row}
            self._weight = self._weight.copy()
            self._weight[row] = 1


class _Events:
    """Probabilities to compute, each at the position of a token."""

    def __init__(self) -> None:
        self.weights: list[Float[np.ndarray, " rows"]] = []
        """At every position, how much of each row's probability q spells."""
        self.position: list[int] = []
        self.log_q: list[float] = []
        self.is_row: list[bool] = []
        """Whether the row of the first word is a route."""
        self.copies: list[tuple[int, int, float]] = []
        """Event, row of a known entity, and the share of one of its forms."""

    def add(self, position: int, log_q: float, *, is_row: bool) -> None:
        """Add an event."""
        self.position.append(position)
        self.log_q.append(log_q)
        self.is_row.append(is_row)

    def log_p(self, scores: RowScores) -> Float[np.ndarray, " events"]:
        """The log-probability of every event."""
        first = np.exp(scores.first.astype(np.float64))
        word = np.where(self.is_row, scores.word[self.position], -np.inf)
        copied = np.zeros(len(self.position))
        for event, row, share in self.copies:
            copied[event] += first[self.position[event], row] * share
        with np.errstate(divide="ignore"):
            spelled = np.log((first * np.array(self.weights)).sum(1))[self.position] + self.log_q
            routes = (word, spelled, np.log(copied))
        found: Float[np.ndarray, " events"] = np.logaddexp.reduce(routes)
        return found
