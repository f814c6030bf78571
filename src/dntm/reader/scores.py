"""Scores of texts in the manner of minicons' IncrementalLMScorer, for those who know it.

    token_score         every word with its log-probability, or surprisal, or probability
    sequence_score      one number a text: a reduction of its log-probabilities
    conditional_score   the same for the words that follow a prefix

Names and arguments are theirs; what differs is that the first word has a score too, that a mention
is one token, and that ends of sentences, which this model predicts, count only with `eos_token`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument, Document
from dntm.corpus.text import WORD
from dntm.reader.preparing import Kinds, Text
from dntm.reader.reading import Reading, TokenReading, Unit

Reduction = Callable[[Tensor], float]
"""Makes one number of a text's log-probabilities, a vector in reading order."""


def _mean(scores: Tensor) -> float:
    return float(scores.mean())


class Scores(ABC):
    """What can score texts because it can read them."""

    @abstractmethod
    def read_all(
        self,
        texts: Sequence[Text],
        *,
        entities: Kinds = None,
        unit: Unit = "bits",
        meanings: bool = True,
    ) -> Iterator[Reading]:
        """Read texts."""

    def token_score(
        self,
        batch: Text | Sequence[Text],
        surprisal: bool = False,
        prob: bool = False,
        base_two: bool = False,
        *,
        entities: Kinds = None,
        eos_token: bool = False,
    ) -> list[list[tuple[str, float]]]:
        """Each text's words with their log-probability in nats.

        With `surprisal` minus that, with `base_two` in bits, with `prob` the probability.
        """
        _check(surprisal=surprisal, prob=prob, base_two=base_two)
        return [
            [
                (token.word, _value(-token.surprisal, surprisal=surprisal, prob=prob))
                for token in tokens
            ]
            for tokens in self._tokens(batch, entities, base_two=base_two, eos_token=eos_token)
        ]

    def sequence_score(
        self,
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
            _reduced(tokens, reduction, prob=prob)
            for tokens in self._tokens(batch, entities, base_two=base_two, eos_token=eos_token)
        ]

    def conditional_score(
        self,
        prefix: str | Sequence[str],
        stimuli: str | Sequence[str],
        separator: str = " ",
        reduction: Reduction = _mean,
        *,
        prob: bool = False,
        base_two: bool = False,
    ) -> list[float]:
        """Score each stimulus after its prefix (or after the one prefix given for all)."""
        _check(surprisal=False, prob=prob, base_two=base_two)
        ends = [stimuli] if isinstance(stimuli, str) else list(stimuli)
        begins = [prefix] * len(ends) if isinstance(prefix, str) else list(prefix)
        if len(begins) != len(ends):
            raise ValueError(f"{len(begins)} prefixes for {len(ends)} stimuli, expected as many")
        texts = [f"{begin}{separator}{end}" for begin, end in zip(begins, ends, strict=True)]
        found = self._tokens(texts, None, base_two=base_two, eos_token=False)
        return [
            _reduced(_after(begin, tokens), reduction, prob=prob)
            for begin, tokens in zip(begins, found, strict=True)
        ]

    def _tokens(
        self, batch: Text | Sequence[Text], entities: Kinds, *, base_two: bool, eos_token: bool
    ) -> Iterator[list[TokenReading]]:
        one = isinstance(batch, str | Document | AnonymizedDocument)
        texts: Sequence[Text] = [batch] if one else batch  # type: ignore[list-item,assignment]
        unit: Unit = "bits" if base_two else "nats"
        for reading in self.read_all(texts, entities=entities, unit=unit, meanings=False):
            yield [token for token in reading.tokens if eos_token or not token.end]


def _after(prefix: str, tokens: Sequence[TokenReading]) -> list[TokenReading]:
    """The tokens whose words come after those of the prefix."""
    left = len(WORD.findall(prefix))
    for place, token in enumerate(tokens):
        if left <= 0:
            return list(tokens[place:])
        left -= len(WORD.findall(token.word))
    raise ValueError(f"no word comes after the prefix {prefix!r}, expected a stimulus of words")


def _check(*, surprisal: bool, prob: bool, base_two: bool) -> None:
    if prob and (surprisal or base_two):
        other = "surprisal" if surprisal else "base_two"
        raise ValueError(f"prob and {other} are both set, expected one of them")


def _value(log_probability: float, *, surprisal: bool, prob: bool) -> float:
    if prob:
        return math.exp(log_probability)
    return -log_probability if surprisal else log_probability


def _reduced(tokens: Sequence[TokenReading], reduction: Reduction, *, prob: bool) -> float:
    scores = torch.tensor([-token.surprisal for token in tokens], dtype=torch.float64)
    return float(reduction(scores.exp() if prob else scores))
