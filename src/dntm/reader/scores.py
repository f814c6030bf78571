"""Scores of texts in the manner of minicons' IncrementalLMScorer, for those who know it.

    token_score         every word with its log-probability, or surprisal, or probability
    sequence_score      one number a text: a reduction of its log-probabilities
    conditional_score   the same for the words that follow a prefix

Names and arguments are theirs; what differs is that the first word has a score too, that a mention
is one token, and that ends of sentences, which this model predicts, count only with `eos_token`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol, overload

import torch
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument, Document
from dntm.reader.reading import Reading, TokenReading, Unit
from dntm.reader.text import Kinds, PreparedText, Text

Reduction = Callable[[Tensor], float]
"""Makes one number of a text's log-probabilities, a vector in reading order."""


def _mean(scores: Tensor) -> float:
    return float(scores.mean())


class Reads(Protocol):
    """What can score texts because it can read them."""

    def prepare(self, text: Text, entities: Kinds = None, *, border: int = 0) -> PreparedText:
        """Find the entities of a text."""

    def read_all(
        self, texts: Sequence[Text], *, unit: Unit = "bits", meanings: bool = True
    ) -> Iterator[Reading]:
        """Read texts."""

    def ranks(self, text: Text) -> list[list[int]]:
        """The rank of every token of each sentence."""


class TextScores:
    """The scores of whatever can read."""

    @overload
    def token_score(
        self: Reads,
        batch: Text | Sequence[Text],
        surprisal: bool = False,
        prob: bool = False,
        base_two: bool = False,
        rank: Literal[False] = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[list[tuple[str, float]]]: ...

    @overload
    def token_score(
        self: Reads,
        batch: Text | Sequence[Text],
        surprisal: bool = False,
        prob: bool = False,
        base_two: bool = False,
        *,
        rank: Literal[True],
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[list[tuple[str, float, int]]]: ...

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
    ) -> list[list[tuple[str, float]]] | list[list[tuple[str, float, int]]]:
        """Each text's words with their log-probability in nats.

        With `surprisal` minus that, with `base_two` in bits, with `prob` the probability. With
        `rank` a third value: the word's rank among all rows of the vocabulary, 1 the likeliest.
        """
        _check(surprisal=surprisal, prob=prob, base_two=base_two)
        texts = _prepared(self, batch, entities)
        scored = [
            [(token, _value(token, surprisal=surprisal, prob=prob)) for token in tokens]
            for tokens in _tokens(self, texts, base_two=base_two)
        ]
        if not rank:
            return [[(t.word, v) for t, v in tokens if eos_token or not t.end] for tokens in scored]
        ranks = [sum(self.ranks(text), start=list[int]()) for text in texts]
        return [
            [(t.word, v, r) for (t, v), r in zip(*both, strict=True) if eos_token or not t.end]
            for both in zip(scored, ranks, strict=True)
        ]

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
        """One number a text: the reduction (the mean unless told) of its log-probabilities."""
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
        """Score each stimulus after its prefix (or after the one prefix given for all).

        No mention spans the two: what would be one stays words.
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
    if isinstance(batch, str | Document | AnonymizedDocument | PreparedText):
        return [reader.prepare(batch, entities)]
    return [reader.prepare(text, entities) for text in batch]


def _tokens(
    reader: Reads, texts: Sequence[PreparedText], *, base_two: bool
) -> Iterator[list[TokenReading]]:
    unit: Unit = "bits" if base_two else "nats"
    return (reading.tokens for reading in reader.read_all(texts, unit=unit, meanings=False))


def _after(prefix: str, tokens: Sequence[TokenReading]) -> Sequence[TokenReading]:
    """The tokens that come after the prefix."""
    for place, token in enumerate(tokens):
        if token.span[0] >= len(prefix) and not token.end:
            return tokens[place:]
    raise ValueError(f"no word comes after the prefix {prefix!r}, expected a stimulus of words")


def _check(*, surprisal: bool, prob: bool, base_two: bool) -> None:
    if prob and (surprisal or base_two):
        other = "surprisal" if surprisal else "base_two"
        raise ValueError(f"prob and {other} are both set, expected one of them")


def _value(token: TokenReading, *, surprisal: bool, prob: bool) -> float:
    if prob:
        return math.exp(-token.surprisal)
    return token.surprisal if surprisal else -token.surprisal


def _reduced(
    tokens: Sequence[TokenReading], reduction: Reduction, *, prob: bool, eos_token: bool
) -> float:
    counted = [-token.surprisal for token in tokens if eos_token or not token.end]
    scores = torch.tensor(counted, dtype=torch.float64)
    return float(reduction(scores.exp() if prob else scores))
