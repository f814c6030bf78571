"""The ideal reader: the exact probability of every token of an anonymized story.

It knows the grammar and reads the tokens, never the traits. For each entity e it keeps a belief
b_e: the probabilities of all values of all traits, concatenated, and a final 1 for phrases that are
independent of the traits. The probability of a phrase is linear in it, and so is that of every
beginning of a phrase, a node of a trie:

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
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from dntm.corpus.document import Token
from dntm.corpus.storyworld.grammar import STORYWORLD, Does, Grammar, Kind, Phrase, Trait

EOS = "<eos>"
Belief = Float[np.ndarray, " values"]


@dataclass(frozen=True)
class Ending:
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
    """All phrases that can stand in one position of a sentence; node 0 is the empty beginning."""

    def __init__(self, kinds: Sequence[Kind], traits: Sequence[Trait]) -> None:
        self.children: list[dict[str, int]] = [{}]
        self.endings: dict[int, Ending] = {}
        masses = [np.zeros_like(prior(traits))]
        total = sum(kind.weight for kind in kinds)
        for kind in kinds:
            for phrase, ending in _endings(kind, kind.weight / total, traits).items():
                node = 0
                masses[node] += ending.likelihood
                for word in phrase:
                    if word not in self.children[node]:
                        self.children[node][word] = len(masses)
                        self.children.append({})
                        masses.append(np.zeros_like(masses[0]))
                    node = self.children[node][word]
                    masses[node] += ending.likelihood
                assert node not in self.endings, f"{phrase} belongs to two kinds"
                self.endings[node] = ending
        self.masses: Float[np.ndarray, "nodes values"] = np.stack(masses)


def _endings(kind: Kind, weight: float, traits: Sequence[Trait]) -> dict[Phrase, Ending]:
    """The phrases of a kind that is chosen with probability `weight`."""
    given: dict[Phrase, Float[np.ndarray, " rows"]] = {}
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


class Tries:
    """The phrases of a grammar, by position in the sentence."""

    def __init__(self, grammar: Grammar) -> None:
        self.opening = PhraseTrie(grammar.openings, grammar.traits)
        self.call = PhraseTrie(grammar.calls, grammar.traits)
        self.clause = PhraseTrie(grammar.clauses, grammar.traits)
        self.last_clause = PhraseTrie(grammar.last_clauses, grammar.traits)
        assert not any(self.clause.children[node] for node in self.clause.endings)


@lru_cache(maxsize=8)
def tries(grammar: Grammar) -> Tries:
    """The tries of a grammar."""
    return Tries(grammar)


class _Place(Enum):
    """The reader's position in a sentence."""

    OPENING = auto()
    CLAUSE = auto()
    RECEIVER = auto()
    AFTER_CLAUSE = auto()
    AFTER_STOP = auto()


class StoryReader:
    """Reads a story token by token, `<eos>` after every sentence."""

    _place: _Place
    _trie: PhraseTrie
    _node: int
    """The words of the current phrase read so far."""
    _belief: Belief
    """The belief about the entity of the current phrase, already mentioned or not."""
    _weights: Float[np.ndarray, " entities"]
    """The probability of each known entity, and of a new one, to be mentioned next."""
    _may_continue: bool
    """Whether another part may follow the clause."""

    def __init__(self, entities: int, grammar: Grammar = STORYWORLD) -> None:
        """Expect a story of `grammar` with at most this many entities."""
        self.grammar = grammar
        self._tries = tries(grammar)
        self._slices = slices(grammar.traits)
        drift = np.repeat([t.drift for t in grammar.traits], [t.values for t in grammar.traits])
        self._drift: Belief = np.append(drift, 0.0)
        self._prior = prior(grammar.traits)
        self._beliefs = np.tile(self._prior, (entities + 1, 1))
        self._entities = entities
        self._last: list[int] = []
        self._now = 0
        self._start(self._tries.opening, first=True)

    def probability(self, token: Token) -> float:
        """The probability that `token` comes next."""
        if isinstance(token, int):
            return self._probability_of_entity(token - 1)
        match self._place:
            case _Place.OPENING | _Place.CLAUSE:
                child = self._trie.children[self._node].get(token)
                if child is None:
                    return 0.0
                return float(self._trie.masses[child] @ self._belief) / self._total()
            case _Place.RECEIVER:
                return 0.0
            case _Place.AFTER_CLAUSE:
                stop = self.grammar.stop if self._may_continue else 1.0
                if token == ".":
                    return stop
                continued = (1.0 - stop) / len(self.grammar.connectives)
                return continued if token in self.grammar.connectives else 0.0
            case _Place.AFTER_STOP:
                return float(token == EOS)

    def read(self, token: Token) -> float:
        """Read `token`; return the probability it had."""
        probability = self.probability(token)
        if probability <= 0.0:
            raise ValueError(f"found {token!r}, which no story has here")
        if isinstance(token, int):
            self._read_entity(token - 1)
            return probability
        match self._place:
            case _Place.OPENING | _Place.CLAUSE:
                self._node = self._trie.children[self._node][token]
                if self._place is _Place.CLAUSE and self._node in self._trie.endings:
                    self._end_clause(self._trie.endings[self._node])
            case _Place.AFTER_CLAUSE if token == ".":
                self._place = _Place.AFTER_STOP
            case _Place.AFTER_CLAUSE:
                self._start(self._tries.opening, first=False)
            case _Place.AFTER_STOP:
                self._end_sentence()
        return probability

    def _total(self) -> float:
        return float(self._trie.masses[self._node] @ self._belief)

    def _probability_of_entity(self, entity: int) -> float:
        if not 0 <= entity < len(self._weights):
            return 0.0
        if self._place is _Place.RECEIVER:
            return float(self._weights[entity])
        ending = self._trie.endings.get(self._node)
        if self._place is not _Place.OPENING or ending is None:
            return 0.0
        shown = float(ending.likelihood @ self._beliefs[entity])
        return float(self._weights[entity]) * shown / self._total()

    def _start(self, trie: PhraseTrie, *, first: bool) -> None:
        """Begin an opening or a call, which may be about any entity."""
        self._place = _Place.OPENING
        self._trie = trie
        self._node = 0
        self._may_continue = first
        self._weigh_mentions()
        self._belief = self._weights @ self._beliefs[: len(self._weights)]

    def _weigh_mentions(self) -> None:
        weights = np.array(self.grammar.mention_weights(self._last, self._now, self._entities))
        self._weights = weights / weights.sum()

    def _read_entity(self, entity: int) -> None:
        if entity == len(self._last):
            self._last.append(self._now)
        self._last[entity] = self._now
        if self._place is _Place.RECEIVER:
            self._receive(entity)
            return
        self._learn(entity, self._trie.endings[self._node])
        self._who, self._belief = entity, self._beliefs[entity]
        self._trie = self._tries.clause if self._may_continue else self._tries.last_clause
        self._place, self._node = _Place.CLAUSE, 0

    def _end_clause(self, ending: Ending) -> None:
        self._learn(self._who, ending)
        self._place = _Place.AFTER_CLAUSE
        if ending.kind.does is Does.CALL:
            self._start(self._tries.call, first=False)
        elif ending.kind.does is Does.GIVE:
            self._place, self._gift = _Place.RECEIVER, ending
            self._weigh_mentions()

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

    def _receive(self, entity: int) -> None:
        self._place, self._may_continue = _Place.AFTER_CLAUSE, False
        if self._gift.value:
            self._become(entity, self._gift.kind.trait, self._gift.value)
            self._become(self._who, self._gift.kind.trait, 0)

    def _end_sentence(self) -> None:
        mentioned = [e for e, last in enumerate(self._last) if last == self._now]
        drifted = self._drift * self._prior + (1.0 - self._drift) * self._beliefs[mentioned]
        self._beliefs[mentioned] = drifted
        self._now += 1
        self._start(self._tries.opening, first=True)


def ideal_log_probabilities(
    sentences: Sequence[Sequence[Token]], *, entities: int = 8, grammar: Grammar = STORYWORLD
) -> list[list[float]]:
    """Log-probability (nats) of each token and of the end of each sentence.

    `entities` is the maximum number of entities in a story.
    """
    reader = StoryReader(entities, grammar)
    story = []
    for number, sentence in enumerate(sentences):
        try:
            story.append([math.log(reader.read(token)) for token in (*sentence, EOS)])
        except ValueError as error:
            raise ValueError(f"sentence {number}, {list(sentence)}: {error}") from None
    return story
