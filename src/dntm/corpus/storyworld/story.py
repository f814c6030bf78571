"""Storyworld: generated stories whose distribution is known exactly.

Stories are drawn left to right from the `grammar`; the hidden traits are then discarded, and the
`ideal` reader computes the exact probability of every token from the tokens alone. The text depends
only on the seed.
"""

import random
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from dntm.corpus.dataset import (
    SPLITS,
    LeftOut,
    Origin,
    Split,
    new_dataset,
    write_documents,
    write_information,
)
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
from dntm.corpus.vocabulary import SPECIALS, Vocabulary, load_vocabulary

Choose = Callable[[Sequence[float]], int]
"""Draws an index with probability proportional to its weight."""


@dataclass(frozen=True, kw_only=True)
class StoryworldConfig:
    """The number of stories of each split, and their size."""

    train: int = 3000
    dev: int = 150
    test: int = 150
    sentences: int = 20
    """Sentences per story."""
    entities: int = 8
    """Maximum entities of a story."""
    seed: int = 0

    def __post_init__(self) -> None:
        names = len(NAME_STARTS.split()) * len(NAME_ENDS.split())
        if not 2 <= self.entities <= names:
            raise ValueError(f"{self.entities} entities per story, expected 2 to {names}")
        if self.sentences < 1:
            raise ValueError(f"{self.sentences} sentences per story, expected at least 1")


def stories(config: StoryworldConfig, split: Split) -> Iterator[AnonymizedDocument]:
    """The stories of a split; a larger split begins with those of a smaller one."""
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
    """Draw with `random()` only, whose sequence Python guarantees for a seed."""

    def choose(weights: Sequence[float]) -> int:
        totals = list(accumulate(weights))
        return min(bisect(totals, rng.random() * totals[-1]), len(totals) - 1)

    return choose


def tell(
    sentences: int, entities: int, choose: Choose, grammar: Grammar = STORYWORLD
) -> list[list[Token]]:
    """Generate one story; `choose` makes all choices."""
    teller = Teller(entities, choose, grammar)
    return [list(teller.sentence()) for _ in range(sentences)]


class Teller:
    """Generates a story sentence by sentence, from the traits of all entities."""

    def __init__(self, entities: int, choose: Choose, grammar: Grammar = STORYWORLD) -> None:
        """Generate at most this many entities."""
        self.grammar = grammar
        self._choose = choose
        self._entities = entities
        self._traits: list[list[int]] = []
        self._last: list[int] = []
        self._now = -1

    def sentence(self) -> Iterator[Token]:
        """Generate the next sentence, without <eos>."""
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
        """Choose an entity, then generate the phrases before and after its mention."""
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
        """Redraw some traits of the entities mentioned in the previous sentence."""
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


def build_storyworld(
    target: Path,
    config: StoryworldConfig,
    *,
    vocabulary_of: Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write a dataset of stories; every word has a row, so the ideal reader stays ideal."""
    made = [(str(split), story) for split in SPLITS for story in stories(config, split)]
    words = Counter(
        word for _, d in made for s in d.sentences for word in s if isinstance(word, str)
    )
    size = len(SPECIALS) + config.entities + len(words)
    vocabulary = Vocabulary.from_counts(words, size=size, entities=config.entities)
    if vocabulary_of:
        vocabulary = load_vocabulary(vocabulary_of, entities=config.entities)
        if vocabulary.entities < config.entities or set(words) - set(vocabulary.words):
            raise ValueError(f"the vocabulary of {vocabulary_of} lacks words or entities")
    settings = asdict(config) | {"vocabulary_of": str(vocabulary_of) if vocabulary_of else None}
    origin = Origin(corpus="storyworld", licence="MIT (generated by this program)")
    with new_dataset(target, overwrite=overwrite) as folder:
        statistics = write_documents(folder, made, vocabulary)
        return write_information(
            folder, vocabulary, statistics, settings=settings, origin=origin, left_out=LeftOut()
        )
