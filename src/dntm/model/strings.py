"""Strings: the surprisal of every word of a text.

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
"""

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dntm.corpus.entity_slots import NOBODY, SentenceStrings
from dntm.corpus.vocabulary import EOS, UNK, entity_rows, is_label, row_of_entity
from dntm.model.spelling import Forms, Spelled, Spelling, Words

Surprisals = list[list[float]]
"""The surprisal of every word of every token of a sentence."""


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
        self._own: set[int] = set()
        """The entities whose forms no copy of this reader shares."""
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
        self._own, other._own = set(), set()
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
            known = self._known_forms(words)
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
                copies += [(len(position), other, shares[n - 1]) for other, shares in known]
                position.append(t)
                log_q.append(value)
                is_row.append(sentence.words[t] != UNK and (n == 1 or (whole and n == 2)))
            if isinstance(token, int) and row != UNK:
                self._mention(row, token, words)
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

    def _known_forms(self, words: Words) -> list[tuple[int, list[float]]]:
        """For known entities, r of each beginning of these words and of all, without d_n q(s).

        Entities that have no form with the first word are left out.
        """
        found = []
        for row, entity in self._entity.items():
            if words[0] in (forms := self._forms[entity]).words:
                a, b, c, _ = self.spelling.shares_after(forms.mentions)
                found.append((row, [a * f + b * last + c * w for f, last, w in forms.parts(words)]))
        return found

    def _mention(self, row: int, entity: int, words: Words) -> None:
        """Add a form of the entity of a row."""
        if entity not in self._own:
            self._forms[entity] = self._forms[entity].copy() if entity in self._forms else Forms()
            self._own.add(entity)
        self._forms[entity].add(words)
        self._change(row, entity, self.spelling.shares_after(self._forms[entity].mentions).new)

    def _change(self, row: int, entity: int | None, weight: float) -> None:
        """Set the entity of a row (or none), and the share of the row that q distributes."""
        if entity is None:
            self._entity.pop(row, None)
        else:
            self._entity[row] = entity
        self._weight = self._weight.copy()
        self._weight[row] = weight
