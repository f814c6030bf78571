"""Questions about a text, and their answers as plain values.

The questions: which token comes next (Eq. 1); which word or entity fits a gap, by the probability
of the whole sentence, as in the cloze test (Section 5); and how the text continues, by sampling:

    p_T(w) ~ p(w)^(1/T)      restricted to the most likely words with total probability top_p

Each sampled sentence is read like any other, so that it changes the entities it mentions. <unk>,
<bos> and entities without a slot, which have no name, are never sampled.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.document import Token
from dntm.corpus.entity_slots import Eviction
from dntm.corpus.text import as_prose
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary, entity_rows
from dntm.reader.engine import Engine, ModelPair, States, next_token
from dntm.reader.meaning import content_words
from dntm.reader.reading import NATS, Plain, Unit
from dntm.reader.streaming import ReadingPosition
from dntm.reader.text import GAP, tokens_of

Choose = Literal["both", "words", "entities"]
_AT_ONCE = 64
"""Sentences scored in one batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate(Plain):
    """A possible next token, with its probability under both models."""

    word: str
    """The word, an entity's name ([k] if it has not been mentioned), <eos> or <unk>."""
    entity: int
    """The entity's number, else 0."""
    probability: float
    static_probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Predictions(Plain):
    """The most likely next tokens of both models, best first."""

    dynamic: Sequence[Candidate]
    static: Sequence[Candidate]

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Continuation(Plain):
    """A sampled continuation of a text."""

    sentences: Sequence[Sequence[str]] = field(repr=False)
    """Its words, entities by name."""
    entities: Sequence[Sequence[int]] = field(repr=False)
    """The entity that each word mentions, else 0."""
    text: str
    """The words as running text."""


def _label(row: int, position: ReadingPosition, vocabulary: Vocabulary) -> tuple[str, int]:
    """The word of a row, an entity's name once it has been mentioned; and the entity, else 0.

    A free slot has the number of an entity that has not been mentioned: its own, if possible.
    """
    seen, slot = position.occurrences, vocabulary.entity_at(row)
    if (occupant := position.slots.occupant(slot)) in seen:
        return position.names[occupant], occupant
    return vocabulary.label(row), occupant or (1 + max(seen) if slot in seen else slot)


def _next(
    engine: Engine, position: ReadingPosition, tokens: Sequence[Token]
) -> tuple[list[int], list[Eviction], ReadingPosition]:
    """The rows of a sentence that continues a text; the evictions, all before its first word, so
    that slots are fixed within it; and the position before it, with the slots after it.
    """
    slots = position.slots.copy()
    encoded = engine.encode([tokens], slots)
    evictions = [found._replace(position=0) for found in encoded.evictions[0]]
    rows = [row for row in encoded.sentences[0][1:] if row != EOS]  # pieces have no <eos>
    return rows, evictions, replace(position, slots=slots)


def _next_tokens(
    models: ModelPair, states: States, rows: Sequence[int], evictions: Sequence[Eviction]
) -> list[Float[Tensor, " vocabulary"]]:
    """The next token's log-probabilities under both models."""
    pairs = zip((models.dynamic, models.static), states, strict=True)
    return [next_token(model, state, rows, evictions) for model, state in pairs]


def predict(
    engine: Engine, position: ReadingPosition, tokens: Sequence[Token], k: int
) -> Predictions:
    """The k most likely tokens of each model, with the probabilities of both."""
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    models = engine.models
    begun, evictions, after = _next(engine, position, tokens)
    dynamic, static = _next_tokens(models, position.states, [BOS, *begun], evictions)

    def candidate(row: int) -> Candidate:
        word, entity = _label(row, after, models.vocabulary)
        p, static_p = (float(log_p[row].exp()) for log_p in (dynamic, static))
        return Candidate(word=word, entity=entity, probability=p, static_probability=static_p)

    best = (log_p.topk(min(k, len(log_p))).indices.tolist() for log_p in (dynamic, static))
    ours, theirs = (list(map(candidate, rows)) for rows in best)
    return Predictions(dynamic=ours, static=theirs)


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
    """Words and entities for the gap of a sentence (see `Reader.fill`)."""
    if candidates < 0:
        raise ValueError(f"candidates is {candidates}, expected 0 (all words) or more")
    _check_rows(engine.models.vocabulary)
    tokens = tokens_of(sentence, position.names, position.surfaces, engine.lexicon)
    if (gaps := tokens.count(GAP)) != 1:
        raise ValueError(f"the sentence has {gaps} gaps, expected one: {GAP}")
    gap = tokens.index(GAP)
    rows, evictions, after = _next(engine, position, [*tokens[:gap], *tokens[gap + 1 :]])
    before, rest = [BOS, *rows[:gap]], [*rows[gap:], EOS]
    tried = [] if choose == "words" else _entity_rows(after, engine.models.vocabulary)
    if choose != "entities":
        likely = _next_tokens(engine.models, position.states, before, evictions)
        tried += _best_words(engine.models, likely, candidates, function_words=function_words)
    nats: list[tuple[float, float]] = []
    for start in range(0, len(tried), _AT_ONCE):
        filled = [[*before, row, *rest] for row in tried[start : start + _AT_ONCE]]
        nats += engine.sentence_nats(filled, evictions, position.states)
    fillings = []
    for row, both in zip(tried, nats, strict=True):
        word, entity = _label(row, after, engine.models.vocabulary)
        ours, static = (value / NATS[unit] for value in both)
        fillings.append(Filling(word=word, entity=entity, surprisal=ours, static_surprisal=static))
    return sorted(fillings, key=lambda filling: filling.surprisal)


def _entity_rows(position: ReadingPosition, vocabulary: Vocabulary) -> list[int]:
    return [vocabulary.entity_row(slot) for slot in sorted(position.slots.occupied())]


def _best_words(
    models: ModelPair,
    both: Sequence[Float[Tensor, " vocabulary"]],
    count: int,
    *,
    function_words: bool,
) -> list[int]:
    """The rows of the most likely words of each model."""
    words = models.vocabulary.words
    places = range(len(words)) if function_words else content_words(words)
    first = entity_rows(models.vocabulary.entities).stop
    rows = torch.tensor([first + place for place in places])
    best = (log_p[rows].topk(min(count, len(rows)) or len(rows)).indices for log_p in both)
    return list(dict.fromkeys(row for own in best for row in rows[own].tolist()))


def sample(
    models: ModelPair,
    position: ReadingPosition,
    *,
    sentences: int,
    tokens: int,
    temperature: float,
    top_p: float,
    seed: int,
) -> Continuation:
    """Sample sentences that follow a position (see `Reader.continue_text`)."""
    if sentences < 1 or tokens < 1:
        raise ValueError(f"{sentences} sentences of {tokens} tokens, expected at least 1 of each")
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature is {temperature}, expected 0 or more")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}, expected above 0 and at most 1")
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"seed is {seed}, expected a 64-bit number")
    _check_rows(models.vocabulary)
    generator = torch.Generator().manual_seed(seed)
    model, state = models.dynamic, position.states.dynamic
    forbidden = torch.zeros(len(models.vocabulary), dtype=torch.bool)
    forbidden[[UNK, BOS]] = True
    forbidden[entity_rows(models.vocabulary.entities)] = True
    forbidden[_entity_rows(position, models.vocabulary)] = False
    sampled: list[list[int]] = []
    for _ in range(sentences):
        rows = [BOS]
        while len(rows) <= tokens:
            # From the sentence's beginning, because a pointer looks back at it.
            scores = next_token(model, state, rows).masked_fill(forbidden, -torch.inf)
            if rows == [BOS]:
                scores[EOS] = -torch.inf
            if (row := _draw(scores, temperature, top_p, generator)) == EOS:
                break
            rows.append(row)
        _, state = model.score(model.plan([[[*rows, EOS]]]), state)
        sampled.append(rows[1:])
    labels = [[_label(row, position, models.vocabulary) for row in rows] for rows in sampled]
    words = [[word for word, _ in sentence] for sentence in labels]
    return Continuation(
        sentences=words,
        entities=[[entity for _, entity in sentence] for sentence in labels],
        text=" ".join(as_prose(sentence) for sentence in words),
    )


def _check_rows(vocabulary: Vocabulary) -> None:
    if not vocabulary.ends:
        raise ValueError("gaps and continuations need one row per word, not pieces of words")


def _draw(
    scores: Float[Tensor, " vocabulary"],
    temperature: float,
    top_p: float,
    generator: torch.Generator,
) -> int:
    if temperature == 0:
        return int(scores.argmax())
    below = scores - scores.max()  # first, so that no temperature makes the maximum overflow
    p, rows = (below / temperature).softmax(0).sort(descending=True, stable=True)
    higher = p.cumsum(0) - p
    p = p.masked_fill(higher >= top_p, 0)
    return int(rows[torch.multinomial(p, 1, generator=generator)])
