"""Open vocabulary: the surprisal of every word of a text, from the distribution over rows.

    p(s) = p(row of s) + (p(<unk>) + p(new entity)) q(s) + sum over known e of p(e) r(s | e)

s is the string of the next token: a word, or the words of a mention. q and r are those of
`spelling`. Free entity rows stand for a new entity. <bos>, which never follows, counts as <unk>, so
that p is a distribution. A known entity has been mentioned and has a slot.

Words are scored from left to right. P(w_1 ... w_j) is the probability that s begins with these
words, a sum over the same terms:

    surprisal(w_j) = -log P(w_1 ... w_j) / P(w_1 ... w_{j-1})
    surprisal(w_1) = -log P(w_1) - log p(s') / P(s')             s': the string before

The second term is the surprisal of the end of s', which is known only when the next word is read.
The surprisal of a word therefore does not depend on later words. The division of the text into
mentions only affects what the model reads next.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dntm.corpus.entity_slots import NOBODY, SentenceStrings
from dntm.corpus.vocabulary import EOS, UNK, entity_rows, is_label, row_of_entity
from dntm.model.spelling import Forms, Spelled, Spelling, Words

_END = Spelled((-np.inf,), -np.inf)
"""The end of a sentence is a row and has no spelling."""


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
        self._rows: dict[str, frozenset[int]] = {}
        """For each word, the rows of known entities whose forms contain it."""
        self._weight = np.ones(entity_rows(entities).stop)
        """The share of each row's probability that is distributed by q."""
        self._weight[EOS] = 0
        self._ends = [0.0] * models
        """For each model, -log(p(s) / P(s)) of the last string."""

    @property
    def rows(self) -> int:
        """The number of special and entity rows."""
        return len(self._weight)

    def copy(self) -> "StringReader":
        """An independent copy, to continue from here more than once."""
        other = StringReader(self.spelling, 0)
        other._entity, other._forms = dict(self._entity), dict(self._forms)
        other._rows, other._weight, other._ends = dict(self._rows), self._weight, self._ends
        return other

    def read(self, sentence: SentenceStrings, models: Sequence[RowScores]) -> list[Surprisals]:
        """The surprisal (nats) of every word of every token, for each model."""
        strings, tokens = [*sentence.strings, ("",)], [*sentence.tokens, ""]
        spelled = [*self.spelling.q(sentence.strings), _END]
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
