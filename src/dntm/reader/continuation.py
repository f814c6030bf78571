"""Continuation: a text goes on, its entities with it (Eq. 1, sampled).

    p_T(w) ~ p(w)^(1/T)      then only the likeliest words that together have probability top_p

Each sampled sentence is read like any other, so the entities it mentions mean something else in
the next one. <unk> and <bos> are never drawn, nor entities that the text has not mentioned: they
would have no name.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.vocabulary import BOS, EOS, SPECIALS, UNK, Vocabulary
from dntm.reader.answers import Continuation
from dntm.reader.pair import ModelPair
from dntm.reader.position import ReadingPosition
from dntm.reader.predicting import entity_of, label, next_token
from dntm.reader.prose import as_prose


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How to draw, and how much."""

    sentences: int = 3
    tokens: int = 60
    """The longest a sentence may become."""
    temperature: float = 1.0
    """Below 1 the likely becomes likelier; 0 always takes the likeliest."""
    top_p: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sentences < 1 or self.tokens < 1:
            raise ValueError(
                f"{self.sentences} sentences of {self.tokens} tokens, expected at least 1 of each"
            )
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}, expected a number from 0 on")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}, expected above 0 and at most 1")
        if not -(2**63) <= self.seed < 2**64:
            raise ValueError(f"seed is {self.seed}, expected a number of 64 bits")


def sample(models: ModelPair, position: ReadingPosition, sampling: Sampling) -> Continuation:
    """Draw sentences after a position."""
    generator = torch.Generator().manual_seed(sampling.seed)
    model, vocabulary, state = models.dynamic, models.vocabulary, position.dynamic
    forbidden = _forbidden(position, vocabulary)
    sentences: list[list[int]] = []
    for _ in range(sampling.sentences):
        rows, now = [BOS], state
        while len(rows) <= sampling.tokens:
            scores, now = next_token(model, now, rows[-1:])
            scores = scores.masked_fill(forbidden, -torch.inf)
            if rows == [BOS]:
                scores[EOS] = -torch.inf
            if (row := _draw(scores, sampling, generator)) == EOS:
                break
            rows.append(row)
        _, state = model.score(model.plan([[[*rows, EOS]]]), state)
        sentences.append(rows[1:])
    words = [[label(row, position, vocabulary) for row in rows] for rows in sentences]
    return Continuation(
        sentences=words,
        entities=[[entity_of(row, vocabulary) for row in rows] for rows in sentences],
        text=" ".join(as_prose(sentence) for sentence in words),
    )


def _forbidden(position: ReadingPosition, vocabulary: Vocabulary) -> Tensor:
    rows = torch.zeros(len(vocabulary), dtype=torch.bool)
    rows[[UNK, BOS]] = True
    rows[len(SPECIALS) : len(SPECIALS) + vocabulary.entities] = True
    rows[[vocabulary.entity_row(entity) for entity in position.occurrences]] = False
    return rows


def _draw(
    scores: Float[Tensor, " vocabulary"], sampling: Sampling, generator: torch.Generator
) -> int:
    if sampling.temperature == 0:
        return int(scores.argmax())
    below = scores - scores.max()  # first: whatever the temperature, the likeliest stays at 0
    p, rows = (below / sampling.temperature).softmax(0).sort(descending=True, stable=True)
    likelier = p.cumsum(0) - p
    p = p.masked_fill(likelier >= sampling.top_p, 0)
    return int(rows[torch.multinomial(p, 1, generator=generator)])
