"""Storyworld: short stories whose distribution is known exactly.

They are drawn left to right from the `grammar` (the words, the traits of an entity, and the kinds
of phrases that show or change them) and read by the `ideal` reader (phrases as tries, exact
inference over the hidden traits).

The hidden traits are drawn forward and then forgotten: `ideal` comes from the tokens alone. The
text depends on the seed and nothing else, in every process and on every platform.
"""

import random
from bisect import bisect
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dntm.corpus.dataset import SPLITS, Split
from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.storyworld.grammar import (
    NAME_ENDS,
    NAME_STARTS,
    STORYWORLD,
    Does,
    Grammar,
    Kind,
    Phrase,
)
from dntm.corpus.storyworld.ideal import ideal_log_probabilities

Choose = Callable[[Sequence[float]], int]
"""Draws an index with a probability proportional to its weight."""


@dataclass(frozen=True, kw_only=True)
class StoryworldConfig:
    """How many stories each split has, and how long they are."""

    train: int = 3000
    dev: int = 150
    test: int = 150
    sentences: int = 20
    """Sentences a story."""
    entities: int = 8
    """The most entities that a story may have."""
    seed: int = 0

    def __post_init__(self) -> None:
        names = len(NAME_STARTS.split()) * len(NAME_ENDS.split())
        if not 2 <= self.entities <= names:
            raise ValueError(f"{self.entities} entities a story, expected 2 to {names}")
        if self.sentences < 1:
            raise ValueError(f"{self.sentences} sentences a story, expected at least 1")


def stories(config: StoryworldConfig, split: Split) -> Iterator[AnonymizedDocument]:
    """The stories of a split; more of them begin with the same ones."""
    if split not in SPLITS:
        raise ValueError(f"the split {split!r} is unknown, expected one of {SPLITS}")
    for number in range(getattr(config, split)):
        rng = random.Random(f"storyworld {config.seed} {split} {number}")
        sentences = tell(config.sentences, config.entities, chooser(rng))
        names = _names(config.entities, rng)
        yield AnonymizedDocument(
            name=f"storyworld-{split}-{number}",
            sentences=sentences,
            surfaces=[(names[t - 1],) for s in sentences for t in s if isinstance(t, int)],
            ideal=ideal_log_probabilities(sentences, entities=config.entities),
        )


def chooser(rng: random.Random) -> Choose:
    """Draw with `random()` alone, whose sequence Python guarantees for a seed."""

    def choose(weights: Sequence[float]) -> int:
        totals = list(accumulate(weights))
        return min(bisect(totals, rng.random() * totals[-1]), len(totals) - 1)

    return choose


def tell(
    sentences: int, entities: int, choose: Choose, grammar: Grammar = STORYWORLD
) -> list[list[Token]]:
    """Tell one story, leaving every choice to `choose`."""
    teller = Teller(entities, choose, grammar)
    return [list(teller.sentence()) for _ in range(sentences)]


class Teller:
    """Tells a story sentence by sentence; knows the traits of all entities."""

    def __init__(self, entities: int, choose: Choose, grammar: Grammar = STORYWORLD) -> None:
        """Tell of at most this many entities."""
        self.grammar = grammar
        self._choose = choose
        self._entities = entities
        self._traits: list[list[int]] = []
        self._last: list[int] = []
        self._now = -1

    def sentence(self) -> Iterator[Token]:
        """Tell the next sentence, its end mark excluded."""
        self._drift()
        self._now += 1
        clause = yield from self._part(self.grammar.openings, self.grammar.clauses)
        if clause.does is Does.CALL:
            yield from self._part(self.grammar.calls, self.grammar.last_clauses)
        elif clause.does is not Does.GIVE and self._happens(1 - self.grammar.stop):
            yield self.grammar.connectives[self._uniformly(len(self.grammar.connectives))]
            yield from self._part(self.grammar.openings, self.grammar.last_clauses)
        yield "."

    def _part(
        self, openings: Sequence[Kind], clauses: Sequence[Kind]
    ) -> Generator[Token, None, Kind]:
        """Choose who it is about, then tell what leads to the mention and what follows it."""
        entity = self._who()
        traits = self._traits[entity]
        yield from self._phrase(self._kind(openings), traits)
        yield entity + 1
        clause = self._kind(clauses)
        yield from self._phrase(clause, traits)
        if clause.does is Does.GIVE:
            receiver = self._who()
            if traits[clause.trait]:
                self._traits[receiver][clause.trait] = traits[clause.trait]
                traits[clause.trait] = 0
            yield receiver + 1
        return clause

    def _who(self) -> int:
        entity = self._choose(self.grammar.mention_weights(self._last, self._now, self._entities))
        if entity == len(self._last):
            self._last.append(self._now)
            self._traits.append([self._uniformly(trait.values) for trait in self.grammar.traits])
        self._last[entity] = self._now
        return entity

    def _kind(self, kinds: Sequence[Kind]) -> Kind:
        return kinds[self._choose([kind.weight for kind in kinds])]

    def _phrase(self, kind: Kind, traits: list[int]) -> Phrase:
        if kind.does in (Does.SHOW, Does.GIVE):
            slips = kind.slip > 0 and self._happens(kind.slip)
            value = self._uniformly(len(kind.phrases)) if slips else traits[kind.trait]
        else:
            value = self._uniformly(len(kind.phrases))
        if kind.does is Does.CHANGE:
            traits[kind.trait] = value
        return kind.phrases[value][self._uniformly(len(kind.phrases[value]))]

    def _drift(self) -> None:
        """Draw some traits anew of those whom the sentence before mentioned."""
        for traits, last in zip(self._traits, self._last, strict=True):
            for number, trait in enumerate(self.grammar.traits):
                if last == self._now and trait.drift > 0 and self._happens(trait.drift):
                    traits[number] = self._uniformly(trait.values)

    def _happens(self, probability: float) -> bool:
        return self._choose([1 - probability, probability]) == 1

    def _uniformly(self, number: int) -> int:
        return self._choose([1.0] * number)


def _names(number: int, rng: random.Random) -> list[str]:
    names = [start + end for start in NAME_STARTS.split() for end in NAME_ENDS.split()]
    choose = chooser(rng)
    return [names.pop(choose([1.0] * len(names))) for _ in range(number)]
