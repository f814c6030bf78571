"""Scores of texts with the interface of minicons' IncrementalLMScorer.

    token_score         every word with its log-probability, surprisal or probability
    sequence_score      one number per text: a reduction of its log-probabilities
    conditional_score   the same for the words that follow a prefix

Names and arguments are those of minicons. Three things differ: the first word has a score too, a
mention is one token, and the ends of sentences, which this model predicts, count only with
`eos_token`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from dntm.corpus.document import Document
from dntm.reader.reading import Reading, TokenReading, Unit
from dntm.reader.text import Kinds, PreparedText, Text

Reduction = Callable[[Tensor], float]
"""Reduces a text's log-probabilities, a vector in reading order, to one number."""


def _mean(scores: Tensor) -> float:
    return float(scores.mean())


class Reads(Protocol):
    """A reader, as far as scores need one."""

    def prepare(self, text: Text, entities: Kinds = None, *, border: int = 0) -> PreparedText:
        """Find the entities of a text."""

    def read_all(
        self, texts: Sequence[Text], *, unit: Unit = "bits", meanings: bool = True
    ) -> Iterator[Reading]:
        """Read texts."""

    def ranks(self, text: Text) -> list[int]:
        """The rank of every token."""


class TextScores:
    """The scores of a reader."""

    def token_score(
        self: Reads,
        batch: Text | Sequence[Text],
        surprisal: bool = False,
        prob: bool = False,
        base_two: bool = False,
        rank: bool = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[list[tuple[Any, ...]]]:
        """The pair (word, log-probability in nats) for each word of each text.

        `surprisal` negates it, `base_two` converts it to bits, `prob` gives the probability. With
        `rank` a third value is the word's rank among all rows of the vocabulary, 1 for the most
        likely.
        """
        _check(surprisal=surprisal, prob=prob, base_two=base_two)
        texts = _prepared(self, batch, entities)
        scored: list[list[tuple[Any, ...]]] = []
        for text, tokens in zip(texts, _tokens(self, texts, base_two=base_two), strict=True):
            sign = 1 if surprisal else -1
            values = [math.exp(-t.surprisal) if prob else sign * t.surprisal for t in tokens]
            ranks = [(r,) for r in self.ranks(text)] if rank else [()] * len(tokens)
            scored.append(
                [
                    (token.word, value, *ranked)
                    for token, value, ranked in zip(tokens, values, ranks, strict=True)
                    if eos_token or not token.end
                ]
            )
        return scored

    def sequence_score(
        self: Reads,
        batch: Text | Sequence[Text],
        reduction: Reduction = _mean,
        prob: bool = False,
        base_two: bool = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[float]:
        """One number per text: the reduction (by default the mean) of its log-probabilities."""
        _check(surprisal=False, prob=prob, base_two=base_two)
        return [
            _reduced(tokens, reduction, prob=prob, eos_token=eos_token)
            for tokens in _tokens(self, _prepared(self, batch, entities), base_two=base_two)
        ]

    def conditional_score(  # noqa: PLR0917 (minicons' own order)
        self: Reads,
        prefix: str | Sequence[str],
        stimuli: str | Sequence[str],
        separator: str = " ",
        reduction: Reduction = _mean,
        prob: bool = False,
        base_two: bool = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[float]:
        """Score each stimulus after its prefix, or after one prefix for all.

        No mention spans prefix and stimulus.
        """
        _check(surprisal=False, prob=prob, base_two=base_two)
        ends = [stimuli] if isinstance(stimuli, str) else list(stimuli)
        begins = [prefix] * len(ends) if isinstance(prefix, str) else list(prefix)
        if len(begins) != len(ends):
            raise ValueError(f"{len(begins)} prefixes for {len(ends)} stimuli, expected as many")
        texts = [
            self.prepare(f"{begin}{separator}{end}", entities, border=len(begin))
            for begin, end in zip(begins, ends, strict=True)
        ]
        return [
            _reduced(_after(begin, tokens), reduction, prob=prob, eos_token=eos_token)
            for begin, tokens in zip(begins, _tokens(self, texts, base_two=base_two), strict=True)
        ]


def _prepared(reader: Reads, batch: Text | Sequence[Text], entities: Kinds) -> list[PreparedText]:
    if isinstance(batch, str | Document | PreparedText):
        return [reader.prepare(batch, entities)]
    return [reader.prepare(text, entities) for text in batch]


def _tokens(
    reader: Reads, texts: Sequence[PreparedText], *, base_two: bool
) -> Iterator[list[TokenReading]]:
    unit: Unit = "bits" if base_two else "nats"
    return (reading.tokens for reading in reader.read_all(texts, unit=unit, meanings=False))


def _after(prefix: str, tokens: Sequence[TokenReading]) -> Sequence[TokenReading]:
    """The tokens after the prefix."""
    for place, token in enumerate(tokens):
        if token.span[0] >= len(prefix) and not token.end:
            return tokens[place:]
    raise ValueError(f"no word follows the prefix {prefix!r}, expected a stimulus of words")


def _check(*, surprisal: bool, prob: bool, base_two: bool) -> None:
    if prob and (surprisal or base_two):
        other = "surprisal" if surprisal else "base_two"
        raise ValueError(f"prob and {other} are both set, expected one of them")


def _reduced(
    tokens: Sequence[TokenReading], reduction: Reduction, *, prob: bool, eos_token: bool
) -> float:
    counted = [-token.surprisal for token in tokens if eos_token or not token.end]
    scores = torch.tensor(counted, dtype=torch.float64)
    return float(reduction(scores.exp() if prob else scores))
