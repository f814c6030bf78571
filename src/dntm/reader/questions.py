"""Questions about a text, and their answers as plain values.

Which token comes next (Eq. 1); which word or entity fits a gap, by the probability of the whole
sentence, as in the paper's cloze test (Section 5); and how the text continues, sampled:

    p_T(w) ~ p(w)^(1/T)      restricted to the most likely words with total probability top_p

Each sampled sentence is read like any other, so that it changes the entities it mentions. <unk>,
<bos> and entities without a slot, which have no name, are never sampled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.document import Token
from dntm.corpus.entity_slots import Eviction
from dntm.corpus.text import as_prose
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary, entity_rows
from dntm.reader.engine import Engine, ModelPair, next_token
from dntm.reader.meaning import content_words
from dntm.reader.reading import NATS, Plain, Unit
from dntm.reader.streaming import ReadingPosition
from dntm.reader.text import GAP, tokens_of

Choose = Literal["both", "words", "entities"]
_AT_ONCE = 64
"""Sentences scored in one batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate(Plain):
    """A possible next token."""

    word: str
    """The word, an entity's name ([k] if it has not been mentioned), <eos> or <unk>."""
    entity: int
    """The entity's number, else 0."""
    probability: float
    static_probability: float
    """The probability under the static model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Predictions(Plain):
    """The next token under both models."""

    dynamic: Sequence[Candidate]
    """The most likely tokens of the dynamic model, best first."""
    static: Sequence[Candidate]
    """The most likely tokens of the static model, best first."""

    def __repr__(self) -> str:
        words = ([c.word for c in some[:5]] for some in (self.dynamic, self.static))
        return "Predictions(dynamic={}, static={})".format(*words)


@dataclass(frozen=True, kw_only=True, slots=True)
class Filling(Plain):
    """A word or an entity in a gap."""

    word: str
    entity: int
    """The entity's number, else 0."""
    surprisal: float
    """Of the whole sentence with the gap filled, including its end."""
    static_surprisal: float
    """The surprisal under the static model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation(Plain):
    """A sampled continuation of a text."""

    sentences: Sequence[Sequence[str]] = field(repr=False)
    """Its words, entities by name."""
    entities: Sequence[Sequence[int]] = field(repr=False)
    """The entity that each word mentions, else 0."""
    text: str
    """The words as running text."""


class _Labels:
    """Entities and words of the model's rows at a position."""

    def __init__(self, position: ReadingPosition, vocabulary: Vocabulary) -> None:
        self._position = position
        self._vocabulary = vocabulary

    def entity(self, row: int) -> int:
        """The entity in a row's slot, or the slot's number if it is free; 0 for words."""
        slot = self._vocabulary.entity_at(row)
        return self._position.slots.occupant(slot) or slot

    def word(self, row: int) -> str:
        """The word of a row; an entity's name once it has been mentioned."""
        if (entity := self.entity(row)) in self._position.occurrences:
            return self._position.names[entity]
        return self._vocabulary.label(row)


class _Next(NamedTuple):
    """A sentence that continues a text."""

    rows: list[int]
    """Of its tokens."""
    evictions: list[Eviction]
    """Reassigned slots, all before its first word, so that slots are fixed within the sentence."""
    position: ReadingPosition
    """The position before it, with the slots after it."""


def _next(engine: Engine, position: ReadingPosition, tokens: Sequence[Token]) -> _Next:
    slots = position.slots.copy()
    encoded = engine.encode([tokens], slots)
    evictions = [found._replace(position=0) for found in encoded.evictions[0]]
    return _Next(list(encoded.sentences[0][1:-1]), evictions, replace(position, slots=slots))


def predict(
    engine: Engine, position: ReadingPosition, tokens: Sequence[Token], k: int
) -> Predictions:
    """The k most likely tokens of each model, with the probabilities of both."""
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    models = engine.models
    sentence = _next(engine, position, tokens)
    dynamic, static = (
        next_token(model, state, [BOS, *sentence.rows], sentence.evictions)
        for model, state in zip((models.dynamic, models.static), position.states, strict=True)
    )
    labels = _Labels(sentence.position, models.vocabulary)

    def best(by: Tensor) -> list[Candidate]:
        return [
            Candidate(
                word=labels.word(row),
                entity=labels.entity(row),
                probability=float(dynamic[row].exp()),
                static_probability=float(static[row].exp()),
            )
            for row in by.topk(min(k, len(by))).indices.tolist()
        ]

    return Predictions(dynamic=best(dynamic), static=best(static))


def fill_gap(
    engine: Engine,
    position: ReadingPosition,
    sentence: str,
    *,
    choose: Choose,
    candidates: int,
    function_words: bool,
    unit: Unit,
) -> list[Filling]:
    """Words and entities for the gap of a sentence, the most likely sentence first.

    Candidates are all entities with a slot, and the words that one of the models finds most likely
    at the gap (0: all words).
    """
    if candidates < 0:
        raise ValueError(f"candidates is {candidates}, expected 0 (all words) or more")
    _check_rows(engine.models.vocabulary)
    tokens = tokens_of(sentence, position.names, position.surfaces, engine.lexicon)
    if (gaps := tokens.count(GAP)) != 1:
        raise ValueError(f"the sentence has {gaps} gaps, expected one: {GAP}")
    gap = tokens.index(GAP)
    placed = _next(engine, position, [*tokens[:gap], *tokens[gap + 1 :]])
    before, rest = [BOS, *placed.rows[:gap]], [*placed.rows[gap:], EOS]
    tried = [] if choose == "words" else _entity_rows(placed.position, engine.models.vocabulary)
    if choose != "entities":
        tried += _likely_words(engine, placed, before, candidates, function_words=function_words)
    nats: list[tuple[float, float]] = []
    for start in range(0, len(tried), _AT_ONCE):
        filled = [[*before, row, *rest] for row in tried[start : start + _AT_ONCE]]
        nats += engine.sentence_nats(filled, placed.evictions, position.states)
    labels = _Labels(placed.position, engine.models.vocabulary)
    fillings = [
        Filling(
            word=labels.word(row),
            entity=labels.entity(row),
            surprisal=dynamic / NATS[unit],
            static_surprisal=static / NATS[unit],
        )
        for row, (dynamic, static) in zip(tried, nats, strict=True)
    ]
    return sorted(fillings, key=lambda filling: filling.surprisal)


def _entity_rows(position: ReadingPosition, vocabulary: Vocabulary) -> list[int]:
    return [vocabulary.entity_row(slot) for slot in sorted(position.slots.occupied())]


def _likely_words(
    engine: Engine, sentence: _Next, before: Sequence[int], count: int, *, function_words: bool
) -> list[int]:
    """The rows of the most likely next words of each model."""
    models, words = engine.models, engine.models.vocabulary.words
    places = range(len(words)) if function_words else content_words(words)
    first = entity_rows(models.vocabulary.entities).stop
    rows = torch.tensor([first + place for place in places])
    found: dict[int, None] = {}
    for model, state in zip((models.dynamic, models.static), sentence.position.states, strict=True):
        log_p = next_token(model, state, before, sentence.evictions)[rows]
        best = log_p.topk(min(count, len(rows)) or len(rows)).indices
        found |= dict.fromkeys(rows[best].tolist())
    return list(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Settings of a sampled continuation."""

    sentences: int = 3
    tokens: int = 60
    """Maximum length of a sentence."""
    temperature: float = 0.7
    """Below 1 likely words become more likely; 0 always takes the most likely word."""
    top_p: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sentences < 1 or self.tokens < 1:
            raise ValueError(
                f"{self.sentences} sentences of {self.tokens} tokens, expected at least 1 of each"
            )
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}, expected 0 or more")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}, expected above 0 and at most 1")
        if not -(2**63) <= self.seed < 2**64:
            raise ValueError(f"seed is {self.seed}, expected a 64-bit number")


def sample(models: ModelPair, position: ReadingPosition, sampling: Sampling) -> Continuation:
    """Sample sentences that follow a position."""
    _check_rows(models.vocabulary)
    generator = torch.Generator().manual_seed(sampling.seed)
    model, state = models.dynamic, position.states.dynamic
    forbidden = _forbidden(position, models.vocabulary)
    sentences: list[list[int]] = []
    for _ in range(sampling.sentences):
        rows = [BOS]
        while len(rows) <= sampling.tokens:
            # From the sentence's beginning, because a pointer looks back at it.
            scores = next_token(model, state, rows).masked_fill(forbidden, -torch.inf)
            if rows == [BOS]:
                scores[EOS] = -torch.inf
            if (row := _draw(scores, sampling, generator)) == EOS:
                break
            rows.append(row)
        _, state = model.score(model.plan([[[*rows, EOS]]]), state)
        sentences.append(rows[1:])
    labels = _Labels(position, models.vocabulary)
    words = [[labels.word(row) for row in rows] for rows in sentences]
    return Continuation(
        sentences=words,
        entities=[[labels.entity(row) for row in rows] for rows in sentences],
        text=" ".join(as_prose(sentence) for sentence in words),
    )


def _check_rows(vocabulary: Vocabulary) -> None:
    if not vocabulary.ends:
        raise ValueError("gaps and continuations need one row per word, not pieces of words")


def _forbidden(position: ReadingPosition, vocabulary: Vocabulary) -> Tensor:
    """The rows that are never sampled."""
    rows = torch.zeros(len(vocabulary), dtype=torch.bool)
    rows[[UNK, BOS]] = True
    rows[entity_rows(vocabulary.entities)] = True
    rows[_entity_rows(position, vocabulary)] = False
    return rows


def _draw(
    scores: Float[Tensor, " vocabulary"], sampling: Sampling, generator: torch.Generator
) -> int:
    if sampling.temperature == 0:
        return int(scores.argmax())
    below = scores - scores.max()  # first, so that no temperature makes the maximum overflow
    p, rows = (below / sampling.temperature).softmax(0).sort(descending=True, stable=True)
    higher = p.cumsum(0) - p
    p = p.masked_fill(higher >= sampling.top_p, 0)
    return int(rows[torch.multinomial(p, 1, generator=generator)])
