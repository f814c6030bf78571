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

If a pretrained core divides words into pieces s = v_1 ... v_m,

    p(s) = p(v_1) ... p(v_m) + p(new entity) q(s) + sum over known e of p(e) r(s | e)
    q(s) = b(v_1) (1 - c) b(v_2) ... (1 - c) b(v_m) c

b is p without the rows of entities, and c (`Spelling.ends`) is the probability that a new name ends
after a piece. Words have no such end: any piece can follow. Each factor is conditional on what was
read so far. For a mention, the pieces are read instead of the entity.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entity_slots import (
    NOBODY,
    DocumentRows,
    SentenceStrings,
    SlotAllocator,
    encode_sentences,
    with_strings,
)
from dntm.corpus.vocabulary import EOS, UNK, Vocabulary, entity_rows, is_label, row_of_entity
from dntm.model.language_model import (
    BlockScores,
    DynamicTextModel,
    PieceScores,
    RowScores,
    score_block,
)
from dntm.model.parameters import State
from dntm.model.scorer import first_rows
from dntm.model.spelling import Forms, Spelled, Spelling, Words, fit_shares, string_of

FITTED = 2000
"""Mentions on which the weights of strings are fitted."""
_ROUNDING = 1e-6
"""All entities together have at most the probability 1 - _ROUNDING."""
Surprisals = list[list[float]]
"""The surprisal of every word of every token of a sentence."""


class _Events(NamedTuple):
    """Events of a sentence: for each string, one per beginning w_1 ... w_j and one for its end."""

    counts: list[int]
    """The number of words of each string."""
    weights: list[Float[np.ndarray, " rows"]]
    """The share of each row's probability that is distributed by q, before each string."""
    position: list[int]
    log_q: list[float]
    is_row: list[bool]
    """Whether the row of the first word contributes to the event."""
    copies: list[tuple[int, int, float]]
    """Event, row of an entity, and share of its probability."""


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
        events, found, ends = self._events(sentence), list[Surprisals](), list[float]()
        for scores, before in zip(models, self._ends, strict=True):
            values, end = iter(self._log_p(events, scores)), before
            found.append([])
            for count in events.counts:
                *begins, whole = islice(values, count + 1)
                found[-1].append([a - b for a, b in zip([end, *begins], begins, strict=False)])
                end = begins[-1] - whole
            ends.append(end)
        self._ends = ends
        return found

    def _events(self, sentence: SentenceStrings) -> "_Events":
        """The events of a sentence; its mentions are added to the forms of their entities."""
        strings, tokens = list(sentence.strings), list(sentence.tokens)
        if self.spelling.ends is None:  # the end of a sentence is a row and has no spelling
            strings, tokens = [*strings, ("",)], [*tokens, ""]
            spelled = [*self.spelling.q(sentence.strings), Spelled((-np.inf,), -np.inf)]
        else:  # the pieces of each model are added in `_log_p`
            spelled = [Spelled((0.0,) * len(words), 0.0) for words in strings]
        freed = {e.position: e.slot for e in sentence.evictions if e.entity == NOBODY}
        events = _Events([len(words) for words in strings], [], [], [], [], [])
        for t, (words, token) in enumerate(zip(strings, tokens, strict=True)):
            if t in freed:
                self._change(row_of_entity(freed[t]), None, 1.0)
            events.weights.append(self._weight)
            row, known = sentence.rows[t + 1], self._known_forms(words)
            log_q = [*spelled[t].begins, spelled[t].whole]
            has_label = row != UNK or self.spelling.ends is None  # no model of pieces has <unk>
            label = isinstance(token, int) and has_label and is_label(" ".join(words))
            if label:  # [1] is no string: its surprisal is that of its row
                log_q, known = [-np.inf] * len(log_q), [(row, [1.0] * len(log_q))]
            for n, value in enumerate(log_q):
                events.copies.extend((len(events.log_q), other, r[n]) for other, r in known)
                events.position.append(t)
                events.log_q.append(value)
                # A row is one word: it begins with the first word and ends after it
                is_word = n == 0 or n == len(words) == 1
                has_row = self.spelling.ends is not None or (sentence.words[t] != UNK and is_word)
                events.is_row.append(has_row and not label)
            if label and row != UNK:
                self._change(row, None, 0.0)
            elif isinstance(token, int) and row != UNK:
                self._mention(row, token, words)
        if len(strings) in freed:  # by the last token of a sentence without <eos>
            self._change(row_of_entity(freed[len(strings)]), None, 1.0)
        return events

    def _log_p(self, events: "_Events", scores: RowScores) -> list[float]:
        """The log-probability of each event under one model."""
        if not events.position:
            return []
        first, position = np.exp(scores.first.astype(np.float64)), events.position
        copied = np.zeros(len(position))
        for event, row, share in events.copies:
            copied[event] += first[position[event], row] * share
        log_word, log_q = scores.word[position], np.array(events.log_q)
        if self.spelling.ends is not None:
            log_word = np.concatenate([pieces.words() for pieces in scores.pieces])
            log_q += np.concatenate([pieces.q(self.spelling.ends) for pieces in scores.pieces])
        with np.errstate(divide="ignore"):
            log_q += np.log((first * events.weights).sum(1))[position]
            word = np.where(events.is_row, log_word, -np.inf)
            found: list[float] = np.logaddexp.reduce([word, log_q, np.log(copied)]).tolist()
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


def score_strings(
    model: DynamicTextModel, texts: Sequence[DocumentRows], state: State
) -> BlockScores:
    """Read some sentences of each text, with the scores from which strings are scored.

    If words are divided into pieces, each text has one sentence. It is read again for each mention,
    up to the mention and then with the pieces of its words.
    """
    found = _score(model, texts, state)
    if not found.rows or not texts[0].widths:
        return found
    copies = [(number, copy) for number, text in enumerate(texts) for copy in _spelled(text)]
    mentions: Iterator[RowScores] = iter(())
    if copies:
        before = state.select([number for number, _ in copies])
        mentions = iter(_score(model, [copy for _, copy in copies], before).rows)
    rows = [_by_token(t, own, mentions) for t, own in zip(texts, found.rows, strict=True)]
    return found._replace(rows=rows)


def _score(model: DynamicTextModel, texts: Sequence[DocumentRows], state: State) -> BlockScores:
    window = model.plan([t.sentences for t in texts], evictions=[t.evictions for t in texts])
    words = [row for text in texts for sentence in text.strings for row in sentence.words]
    given = np.array(words, dtype=np.int64) if texts[0].strings else None
    return score_block(model, window, state, given)


def _spelled(text: DocumentRows) -> Iterator[DocumentRows]:
    """For each mention, the sentence up to it and the pieces of its words."""
    [rows], [evictions], [strings] = text.sentences, text.evictions, text.strings
    places = first_rows(text.widths[0]).tolist()
    for token, place, pieces in zip(strings.tokens, places, strings.pieces, strict=False):
        if isinstance(token, int):
            copy = [*rows[: place + 1], *chain.from_iterable(pieces)]
            here = [eviction for eviction in evictions if eviction.position <= place]
            yield DocumentRows([copy], [here], strings=[strings._replace(words=copy[1:])])


def _by_token(text: DocumentRows, scores: RowScores, mentions: Iterator[RowScores]) -> RowScores:
    """The scores of the tokens of a sentence, given those of its rows and of its mentions."""
    [widths], [strings] = text.widths, text.strings
    if not widths:
        return scores
    first, found = first_rows(widths), list[PieceScores]()
    for token, place, pieces in zip(strings.tokens, first, strings.pieces, strict=True):
        counts = [len(word) for word in pieces]
        own = next(mentions) if isinstance(token, int) else scores
        here = slice(place, place + sum(counts))
        rows = own.word[here].astype(np.float64)
        entities = np.exp(own.first[here].astype(np.float64)).sum(1)
        base = rows - np.log1p(-np.minimum(entities, 1 - _ROUNDING))
        rows, base = np.add.reduceat([rows, base], first_rows(counts), axis=1)
        found.append(PieceScores(rows, base, counts))
    return RowScores(scores.first[first], scores.word[first], found)


def fit_pieces(
    model: DynamicTextModel, vocabulary: Vocabulary, dev: Iterable[AnonymizedDocument]
) -> Spelling:
    """The weights of strings for a model of pieces, fitted on the mentions of some documents."""
    events: list[tuple[int, Sequence[float], PieceScores]] = []
    names = pieces = 0
    for document in dev:
        if names + len(events) >= FITTED:
            break
        allocator = SlotAllocator(vocabulary.entities, evicts=True)
        state, known = model.initial_state(1), dict[int, Forms]()
        surfaces = iter(document.surfaces)
        for tokens in document.sentences:
            spelled = [
                (t, string_of([t] if isinstance(t, str) else next(surfaces, ["[1]"]), vocabulary))
                for t in tokens
            ]
            encoded = encode_sentences([tokens], vocabulary, allocator)
            text = with_strings(encoded, [spelled], vocabulary)
            found = score_strings(model, [text], state)
            state = found.state
            for (token, words), own in zip(spelled, found.rows[0].pieces, strict=False):
                if not isinstance(token, int) or is_label(words[0]):
                    continue
                forms = known.setdefault(token, Forms())
                if forms.mentions:
                    events.append((forms.mentions, forms.parts(words)[-1], own))
                else:
                    names, pieces = names + 1, pieces + sum(own.lengths)
                forms.add(words)
    ends = (names + 1) / (pieces + 2)
    shares = fit_shares((n, parts, float(own.q(ends)[-1])) for n, parts, own in events)
    return Spelling({}, 0.5, shares, ends)
