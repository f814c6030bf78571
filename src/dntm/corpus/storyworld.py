"""Storyworld: generated stories, and the ideal reader that knows their distribution.

Stories are drawn left to right from the `story_grammar` and depend only on the seed. The hidden
traits are then discarded, and the ideal reader computes the exact probability of every token from
the tokens alone. For each entity e it keeps a belief b_e: the probabilities of all values of all
traits, concatenated, and a final 1 for phrases that are independent of the traits. The probability
of a phrase is linear in b_e, and so is that of every beginning of a phrase, a node of a trie:

    p(phrase | b)     = L_phrase . b
    mass_node         = sum of L_phrase over the phrases that begin with the node's words
    p(word | opening) = sum_e w_e mass_{node word} . b_e / sum_e w_e mass_node . b_e
    p([e] | opening)  = w_e L . b_e                      / sum_e w_e mass_node . b_e
    p(word | clause)  = mass_{node word} . b_e / mass_node . b_e
    b_e              <- b_e L / (b_e . L)                   on the trait that a phrase shows
    b_e              <- (1 - drift) b_e + drift / values    after a sentence that mentions e

where w_e, the weight of being mentioned next, depends on recency alone. This is exact: given the
tokens, traits are independent of each other and entities of each other, since a phrase shows a
single trait and the text states what passes between two entities.
"""

import math
import random
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.dataset import SPLITS, Origin, Split, new_dataset, write_dataset
from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.story_grammar import STORYWORLD, Does, Grammar, Kind, Phrase, Trait
from dntm.corpus.vocabulary import SPECIALS, Vocabulary, load_vocabulary

SENTENCES = 20
"""Sentences per story."""
ENTITIES = 8
"""Maximum number of entities in a story."""
EOS = "<eos>"
_STARTS = "Al Bren Cor Dal El Fen Gar Hes Il Jor Kel Lor Mar Nev Or Per Quil Ros Sel Tam Ul Ver"
_ENDS = "da mir wyn ric ena sk olo bert issa nor iel und ava ox eth"
Choose = Callable[[Sequence[float]], int]
"""Draws an index with probability proportional to its weight."""


def chooser(rng: random.Random) -> Choose:
    """Draw with `random()` only, whose sequence Python guarantees for a seed."""

    def choose(weights: Sequence[float]) -> int:
        totals = list(accumulate(weights))
        return min(bisect(totals, rng.random() * totals[-1]), len(totals) - 1)

    return choose


class Teller:
    """Generates a story sentence by sentence, from the traits of all entities."""

    def __init__(self, entities: int, choose: Choose, grammar: Grammar = STORYWORLD) -> None:
        """Generate at most this many entities; `choose` makes all choices."""
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
        entity = self._mention()
        traits = self._traits[entity]
        yield from self._phrase(self._kind(openings), traits)
        yield entity + 1
        clause = self._kind(clauses)
        yield from self._phrase(clause, traits)
        if clause.does is Does.GIVE:
            receiver = self._mention()
            if traits[clause.trait]:
                self._traits[receiver][clause.trait] = traits[clause.trait]
                traits[clause.trait] = 0
            yield receiver + 1
        return clause

    def _mention(self) -> int:
        entity = self._choose(self.grammar.mention_weights(self._last, self._now, self._entities))
        if entity == len(self._last):
            self._last.append(self._now)
            self._traits.append([self._uniformly(trait.values) for trait in self.grammar.traits])
        self._last[entity] = self._now
        return entity

    def _kind(self, kinds: Sequence[Kind]) -> Kind:
        return kinds[self._choose([kind.weight for kind in kinds])]

    def _phrase(self, kind: Kind, traits: list[int]) -> Phrase:
        shows = kind.does in (Does.SHOW, Does.GIVE)
        if shows and not (kind.slip > 0 and self._happens(kind.slip)):
            value = traits[kind.trait]
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


Belief = NDArray[np.float64]
"""Probabilities of all values of all traits, and a final 1."""
Predict = Callable[[Token], float | None]
"""The probability that a token comes next; None or 0 if it cannot."""


class Ending(NamedTuple):
    """A complete phrase: its kind, L, and the value it states if it changes or gives a trait."""

    kind: Kind
    likelihood: Belief
    value: int


def slices(traits: Sequence[Trait]) -> list[slice]:
    """The slice of each trait in a belief."""
    ends = np.cumsum([trait.values for trait in traits]).tolist()
    return [slice(end - trait.values, end) for end, trait in zip(ends, traits, strict=True)]


def prior(traits: Sequence[Trait]) -> Belief:
    """The belief about a new entity."""
    uniform = [np.full(trait.values, 1 / trait.values) for trait in traits]
    return np.concatenate([*uniform, np.ones(1)])


class PhraseTrie:
    """All phrases that can occupy one position of a sentence; node 0 is the empty beginning."""

    def __init__(self, kinds: Sequence[Kind], traits: Sequence[Trait]) -> None:
        self.children: list[dict[Token, int]] = [{}]
        self.endings: dict[int, Ending] = {}
        self.masses = [np.zeros_like(prior(traits))]
        total = sum(kind.weight for kind in kinds)
        for kind in kinds:
            for phrase, ending in _endings(kind, kind.weight / total, traits).items():
                node = 0
                self.masses[node] += ending.likelihood
                for word in phrase:
                    if word not in self.children[node]:
                        self.children[node][word] = len(self.masses)
                        self.children.append({})
                        self.masses.append(np.zeros_like(self.masses[0]))
                    node = self.children[node][word]
                    self.masses[node] += ending.likelihood
                assert node not in self.endings, f"{phrase} belongs to two kinds"
                self.endings[node] = ending


def _endings(kind: Kind, weight: float, traits: Sequence[Trait]) -> dict[Phrase, Ending]:
    """The phrases of a kind that is chosen with probability `weight`."""
    given: dict[Phrase, NDArray[np.float64]] = {}
    for row, phrases in enumerate(kind.phrases):
        for phrase in phrases:
            given.setdefault(phrase, np.zeros(len(kind.phrases)))[row] += 1 / len(phrases)
    endings = {}
    for phrase, of_row in given.items():
        likelihood = np.zeros_like(prior(traits))
        if kind.does in (Does.SHOW, Does.GIVE):
            slipped = (1 - kind.slip) * of_row + kind.slip * of_row.mean()
            likelihood[slices(traits)[kind.trait]] = weight * slipped
        else:
            likelihood[-1] = weight * of_row.mean()
        stated = np.flatnonzero(of_row)
        assert kind.does not in (Does.CHANGE, Does.GIVE) or len(stated) == 1
        endings[phrase] = Ending(kind, likelihood, int(stated[0]))
    return endings


@lru_cache(maxsize=8)
def _tries(grammar: Grammar) -> list[PhraseTrie]:
    """The openings, calls, clauses and last clauses of a grammar."""
    positions = (grammar.openings, grammar.calls, grammar.clauses, grammar.last_clauses)
    return [PhraseTrie(kinds, grammar.traits) for kinds in positions]


def _among(chances: Mapping[Any, float]) -> Predict:
    return chances.get


class StoryReader:
    """The ideal reader. It reads a story token by token, `<eos>` after every sentence."""

    _belief: Belief
    """The belief about the entity of the current phrase; before its mention, the expected one."""
    _weights: NDArray[np.float64]
    """The probability of each known entity, and of a new one, to be mentioned next."""

    def __init__(self, entities: int, grammar: Grammar = STORYWORLD) -> None:
        """Expect a story of `grammar` with at most this many entities."""
        self.grammar = grammar
        self._openings, self._calls, self._clauses, self._last_clauses = _tries(grammar)
        self._slices = slices(grammar.traits)
        drift = np.repeat([t.drift for t in grammar.traits], [t.values for t in grammar.traits])
        self._drift: Belief = np.append(drift, 0.0)
        self._prior = prior(grammar.traits)
        self._beliefs = np.tile(self._prior, (entities + 1, 1))
        self._entities = entities
        self._last: list[int] = []
        self._now = 0
        self._story = self._sentences()
        self._predict = next(self._story)

    def probability(self, token: Token) -> float:
        """The probability that `token` comes next."""
        return self._predict(token) or 0.0

    def read(self, token: Token) -> float:
        """Read `token`; return the probability it had."""
        probability = self.probability(token)
        if probability <= 0.0:
            raise ValueError(f"found {token!r}, which no story has here")
        self._predict = self._story.send(token)
        return probability

    def _sentences(self) -> Generator[Predict, Token, None]:
        """Yield the distribution of each token and receive the token, as do the next methods."""
        connectives = self.grammar.connectives
        while True:
            clause = yield from self._part(self._openings, self._clauses)
            if clause.does is Does.CALL:
                yield from self._part(self._calls, self._last_clauses)
            stop = 1.0 if clause.does in (Does.CALL, Does.GIVE) else self.grammar.stop
            after = {c: (1 - stop) / len(connectives) for c in connectives}
            if (yield _among({**after, ".": stop})) != ".":
                yield from self._part(self._openings, self._last_clauses)
                yield _among({".": 1.0})
            yield _among({EOS: 1.0})
            mentioned = [e for e, last in enumerate(self._last) if last == self._now]
            drifted = self._drift * self._prior + (1.0 - self._drift) * self._beliefs[mentioned]
            self._beliefs[mentioned] = drifted
            self._now += 1

    def _part(self, openings: PhraseTrie, clauses: PhraseTrie) -> Generator[Predict, Token, Kind]:
        self._weigh_mentions()
        self._belief = self._weights @ self._beliefs[: len(self._weights)]
        node = 0
        while isinstance(token := (yield partial(self._opening, openings, node)), str):
            node = openings.children[node][token]
        entity = self._mention(token)
        self._learn(entity, openings.endings[node])
        self._belief = self._beliefs[entity]
        node = 0
        while node not in clauses.endings:
            node = clauses.children[node][(yield partial(self._next_word, clauses, node))]
        kind, _, value = ending = clauses.endings[node]
        self._learn(entity, ending)
        if kind.does is Does.GIVE:
            self._weigh_mentions()
            chances = dict(enumerate(self._weights.tolist(), start=1))
            receiver = self._mention((yield _among(chances)))
            if value:
                self._become(receiver, kind.trait, value)
                self._become(entity, kind.trait, 0)
        return kind

    def _opening(self, openings: PhraseTrie, node: int, token: Token) -> float:
        """The probability of a word of an opening, or of the mention after it."""
        if isinstance(token, str):
            return self._next_word(openings, node, token)
        if node not in openings.endings or not 1 <= token <= len(self._weights):
            return 0.0
        shown = float(openings.endings[node].likelihood @ self._beliefs[token - 1])
        total = float(openings.masses[node] @ self._belief)
        return float(self._weights[token - 1]) * shown / total

    def _next_word(self, phrases: PhraseTrie, node: int, word: Token) -> float:
        child = phrases.children[node].get(word)
        if child is None:
            return 0.0
        total = float(phrases.masses[node] @ self._belief)
        return float(phrases.masses[child] @ self._belief) / total

    def _weigh_mentions(self) -> None:
        weights = np.array(self.grammar.mention_weights(self._last, self._now, self._entities))
        self._weights = weights / weights.sum()

    def _mention(self, token: Token) -> int:
        entity = int(token) - 1
        if entity == len(self._last):
            self._last.append(self._now)
        self._last[entity] = self._now
        return entity

    def _learn(self, entity: int, ending: Ending) -> None:
        if ending.kind.does in (Does.SHOW, Does.GIVE):
            where = self._slices[ending.kind.trait]
            posterior = self._beliefs[entity, where] * ending.likelihood[where]
            self._beliefs[entity, where] = posterior / posterior.sum()
        elif ending.kind.does is Does.CHANGE:
            self._become(entity, ending.kind.trait, ending.value)

    def _become(self, entity: int, trait: int, value: int) -> None:
        self._beliefs[entity, self._slices[trait]] = 0.0
        self._beliefs[entity, self._slices[trait].start + value] = 1.0


def ideal_log_probabilities(
    sentences: Sequence[Sequence[Token]], *, entities: int = ENTITIES, grammar: Grammar = STORYWORLD
) -> list[list[float]]:
    """Log-probability (nats) of each token and of the end of each sentence.

    `entities` is the maximum number of entities in a story.
    """
    reader = StoryReader(entities, grammar)
    return [[math.log(reader.read(token)) for token in (*s, EOS)] for s in sentences]


@dataclass(frozen=True, kw_only=True)
class StoryworldConfig:
    """The number of stories of each split, and the seed."""

    train: int = 3000
    dev: int = 150
    test: int = 150
    seed: int = 0


def stories(config: StoryworldConfig, split: Split) -> Iterator[AnonymizedDocument]:
    """The stories of a split; a larger split begins with those of a smaller one."""
    for number in range(getattr(config, split)):
        choose = chooser(random.Random(f"storyworld {config.seed} {split} {number}"))
        teller = Teller(ENTITIES, choose)
        sentences = [list(teller.sentence()) for _ in range(SENTENCES)]
        left = [start + end for start in _STARTS.split() for end in _ENDS.split()]
        names = [left.pop(choose([1.0] * len(left))) for _ in range(ENTITIES)]
        yield AnonymizedDocument(
            name=f"storyworld-{split}-{number}",
            sentences=sentences,
            surfaces=[(names[t - 1],) for s in sentences for t in s if isinstance(t, int)],
            ideal=ideal_log_probabilities(sentences),
        )


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
    size = len(SPECIALS) + ENTITIES + len(words)
    vocabulary = Vocabulary.from_counts(words, size=size, entities=ENTITIES)
    if vocabulary_of:
        vocabulary = load_vocabulary(vocabulary_of, entities=ENTITIES)
        if vocabulary.entities < ENTITIES or set(words) - set(vocabulary.words):
            raise ValueError(f"the vocabulary of {vocabulary_of} lacks words or entities")
    settings = asdict(config) | {"vocabulary_of": str(vocabulary_of) if vocabulary_of else None}
    origin = Origin(corpus="storyworld", licence="MIT (generated by this program)")
    with new_dataset(target, overwrite=overwrite) as folder:
        return write_dataset(folder, made, vocabulary, settings=settings, origin=origin)
