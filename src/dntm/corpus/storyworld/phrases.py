"""PhraseTrie: phrases predicted word by word from what is believed about an entity.

Let b be an entity's belief: the probabilities of all values of all its traits, one trait after the
other, and a final 1 for phrases that have to do with none. The probability of every phrase is
linear in it, so it is for every beginning of a phrase:

    p(phrase | b)     = L_phrase . b
    mass_node         = sum of L_phrase over the phrases that begin with the node's words
    p(word | node, b) = (mass_{node word} . b) / (mass_node . b)

A complete phrase belongs to one kind and so is about one trait: the traits stay independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from dntm.corpus.storyworld.grammar import Does, Grammar, Kind, Phrase, Trait

Belief = Float[np.ndarray, " values"]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A complete phrase: its kind, L, and the one value it tells when it changes or gives."""

    phrase: Phrase
    kind: Kind
    likelihood: Belief
    value: int | None


def slices(traits: Sequence[Trait]) -> list[slice]:
    """Where each trait stands in a belief."""
    ends = np.cumsum([trait.values for trait in traits]).tolist()
    return [slice(end - trait.values, end) for end, trait in zip(ends, traits, strict=True)]


def prior(traits: Sequence[Trait]) -> Belief:
    """The belief about an entity of which nothing is known."""
    uniform = [np.full(trait.values, 1 / trait.values) for trait in traits]
    return np.concatenate([*uniform, np.ones(1)])


class PhraseTrie:
    """All phrases that can stand in one place of a sentence; node 0 is the empty beginning."""

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
                if node in self.endings:
                    raise ValueError(f"the phrase {' '.join(phrase)!r} belongs to two kinds")
                self.endings[node] = ending
        self.masses: Float[np.ndarray, "nodes values"] = np.stack(masses)


def _endings(kind: Kind, weight: float, traits: Sequence[Trait]) -> dict[Phrase, Ending]:
    """The distinct phrases of a kind that is chosen with probability `weight`."""
    rows = range(len(kind.phrases))
    given: dict[Phrase, Float[np.ndarray, " rows"]] = {}
    for row, phrases in enumerate(kind.phrases):
        for phrase in phrases:
            given.setdefault(phrase, np.zeros(len(rows)))[row] += 1 / len(phrases)
    endings = {}
    for phrase, of_row in given.items():
        likelihood = np.zeros_like(prior(traits))
        if kind.does in (Does.SHOW, Does.GIVE):
            slipped = (1 - kind.slip) * of_row + kind.slip * of_row.mean()
            likelihood[slices(traits)[kind.trait]] = weight * slipped
        else:
            likelihood[-1] = weight * of_row.mean()
        value = None
        if kind.does in (Does.CHANGE, Does.GIVE):
            told = np.flatnonzero(of_row)
            if len(told) > 1 or kind.slip:
                raise ValueError(f"the phrase {' '.join(phrase)!r} must tell one value for certain")
            value = int(told[0])
        endings[phrase] = Ending(phrase=phrase, kind=kind, likelihood=likelihood, value=value)
    return endings


class Tries:
    """The phrases of a grammar, by where they stand."""

    def __init__(self, grammar: Grammar) -> None:
        self.opening = PhraseTrie(grammar.openings, grammar.traits)
        self.call = PhraseTrie(grammar.calls, grammar.traits)
        self.clause = PhraseTrie(grammar.clauses, grammar.traits)
        self.last_clause = PhraseTrie(grammar.last_clauses, grammar.traits)
        for node, ending in self.clause.endings.items():
            if self.clause.children[node]:
                raise ValueError(f"a clause goes on after {ending.phrase}: its end cannot be told")


@lru_cache(maxsize=8)
def tries(grammar: Grammar) -> Tries:
    """The tries of a grammar, made once."""
    return Tries(grammar)
