"""Storyworld: generated stories, and the ideal reader that knows their distribution.

Stories are drawn left to right from the `story_grammar` and depend only on the seed. The hidden
traits are then discarded, and the ideal reader computes the exact probability of every
token from the tokens alone. For each entity e it keeps a belief b_e: the probabilities of all
values of all traits, concatenated, and a final 1 for phrases that are independent of the traits.
The probability of a phrase is linear in b_e, and so is that of every beginning of a phrase:

    p(phrase | b)     = L_phrase . b
    M_begin           = sum of L_phrase over the phrases with this beginning
    p(word | opening) = sum_e w_e M_{begin word} . b_e / sum_e w_e M_begin . b_e
    p([e] | opening)  = w_e L . b_e                    / sum_e w_e M_begin . b_e
    p(word | clause)  = M_{begin word} . b_e / M_begin . b_e
    b_e              <- b_e L / (b_e . L)                   on the trait that a phrase shows
    b_e              <- (1 - drift) b_e + drift / values    after a sentence that mentions e

where w_e, the weight of being mentioned next, depends on recency alone. This is exact: given the
tokens, traits are independent of each other and entities of each other, since a phrase shows a
single trait and the text states what passes between two entities.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.dataset import SPLITS, Origin, new_dataset, write_dataset
from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.story_grammar import STORYWORLD, Does, Grammar, Kind, Phrase, Trait
from dntm.corpus.vocabulary import SPECIALS, Vocabulary, load_vocabulary

SENTENCES = 20
"""Sentences per story."""
EOS = "<eos>"
_STARTS = "Al Bren Cor Dal El Fen Gar Hes Il Jor Kel Lor Mar Nev Or Per Quil Ros Sel Tam Ul Ver"
_ENDS = "da mir wyn ric ena sk olo bert issa nor iel und ava ox eth"
Choose = Callable[[Sequence[float]], int]
"""Draws an index with probability proportional to its weight."""


def chooser(seed: str) -> Choose:
    """Random choices that depend only on the seed."""
    rng = random.Random(seed)
    return lambda weights: rng.choices(range(len(weights)), weights)[0]


class _Story:
    """A grammar, and when each entity was last mentioned."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._now = 0
        self._last: list[int] = []

    def _weights(self) -> list[float]:
        """Weights of the known entities and, last, of a new one to be mentioned next."""
        recency = self.grammar.recency
        known = [recency[min(self._now - then, len(recency) - 1)] for then in self._last]
        return [*known, self.grammar.unseen if len(known) < self.grammar.entities else 0.0]

    def _mark(self, entity: int) -> None:
        """Mark an entity as mentioned now; a slice, because it appends if the entity is new."""
        self._last[entity : entity + 1] = [self._now]

    def _end_sentence(self) -> list[int]:
        """Begin the next sentence; return the entities mentioned in this one."""
        self._now += 1
        return [entity for entity, then in enumerate(self._last) if then == self._now - 1]


class Teller(_Story):
    """Generates a story sentence by sentence, from the traits of all entities."""

    def __init__(self, choose: Choose, grammar: Grammar = STORYWORLD) -> None:
        """`choose` makes all choices."""
        super().__init__(grammar)
        self._choose = choose
        self._traits: list[list[int]] = []

    def sentence(self) -> Iterator[Token]:
        """Generate the next sentence, without <eos>."""
        for entity in self._end_sentence():
            for number, trait in enumerate(self.grammar.traits):
                if trait.drift > 0 and self._happens(trait.drift):
                    self._traits[entity][number] = self._uniformly(trait.values)
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
        yield from self._phrase(openings, traits)
        yield entity + 1
        clause = yield from self._phrase(clauses, traits)
        if clause.does is Does.GIVE:
            receiver = self._mention()
            if traits[clause.trait]:
                self._traits[receiver][clause.trait] = traits[clause.trait]
                traits[clause.trait] = 0
            yield receiver + 1
        return clause

    def _mention(self) -> int:
        entity = self._choose(self._weights())
        self._mark(entity)
        if entity == len(self._traits):
            self._traits.append([self._uniformly(trait.values) for trait in self.grammar.traits])
        return entity

    def _phrase(self, kinds: Sequence[Kind], traits: list[int]) -> Generator[Token, None, Kind]:
        """Generate a phrase and return its kind."""
        kind = kinds[self._choose([kind.weight for kind in kinds])]
        if kind.shows and not (kind.slip > 0 and self._happens(kind.slip)):
            value = traits[kind.trait]
        else:
            value = self._uniformly(len(kind.phrases))
        if kind.does is Does.CHANGE:
            traits[kind.trait] = value
        yield from kind.phrases[value][self._uniformly(len(kind.phrases[value]))]
        return kind

    def _happens(self, probability: float) -> bool:
        return self._choose([1 - probability, probability]) == 1

    def _uniformly(self, number: int) -> int:
        return self._choose([1.0] * number)


Belief = NDArray[np.float64]
"""Probabilities of all values of all traits, and a final 1."""
Predict = Callable[[Token], float | None]
"""The probability that a token comes next; None or 0 if it cannot."""


class Ending(NamedTuple):
    """A complete phrase: its kind, its trait in a belief, L, and the value that it states."""

    kind: Kind
    trait: slice
    likelihood: Belief
    value: int


class Phrases:
    """All phrases that can occupy one position of a sentence."""

    def __init__(self, kinds: Sequence[Kind], traits: Sequence[Trait]) -> None:
        self.endings: dict[tuple[Token, ...], Ending] = {}
        ends = [0, *accumulate(trait.values for trait in traits)]
        self.masses: dict[tuple[Token, ...], Belief] = defaultdict(lambda: np.zeros(ends[-1] + 1))
        """M of every beginning of a phrase."""
        total = sum(kind.weight for kind in kinds)
        for kind in kinds:
            trait = slice(ends[kind.trait], ends[kind.trait + 1])
            given: dict[Phrase, Belief] = defaultdict(lambda: np.zeros(len(kind.phrases)))  # noqa: B023
            for value, phrases in enumerate(kind.phrases):
                for phrase in phrases:
                    given[phrase][value] += 1 / len(phrases)
            for phrase, of_value in given.items():
                likelihood = np.zeros(ends[-1] + 1)
                if kind.shows:
                    slipped = (1 - kind.slip) * of_value + kind.slip * of_value.mean()
                    likelihood[trait] = kind.weight / total * slipped
                else:
                    likelihood[-1] = kind.weight / total * of_value.mean()
                self.endings[phrase] = Ending(kind, trait, likelihood, int(of_value.argmax()))
                for length in range(len(phrase) + 1):
                    self.masses[phrase[:length]] += likelihood

    def next_word(self, belief: Belief, begin: tuple[Token, ...], word: Token) -> float:
        """The probability that a word follows the beginning of a phrase."""
        if (longer := (*begin, word)) not in self.masses:
            return 0.0
        return float(self.masses[longer] @ belief) / float(self.masses[begin] @ belief)


@lru_cache(maxsize=8)
def _positions(grammar: Grammar) -> list[Phrases]:
    positions = (grammar.openings, grammar.calls, grammar.clauses, grammar.last_clauses)
    return [Phrases(kinds, grammar.traits) for kinds in positions]


class StoryReader(_Story):
    """The ideal reader. It reads a story token by token, `<eos>` after every sentence."""

    def __init__(self, grammar: Grammar = STORYWORLD) -> None:
        super().__init__(grammar)
        self._openings, self._calls, self._clauses, self._last_clauses = _positions(grammar)
        values = [trait.values for trait in grammar.traits]
        self._prior: Belief = np.append(1 / np.repeat(values, values), 1.0)
        self._drift: Belief = np.append(np.repeat([t.drift for t in grammar.traits], values), 0.0)
        self._beliefs = np.tile(self._prior, (grammar.entities + 1, 1))
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
        """Yield the distribution of each token and receive the token, as `_part` does."""
        connectives = self.grammar.connectives
        while True:
            clause = yield from self._part(self._openings, self._clauses)
            if clause.does is Does.CALL:
                yield from self._part(self._calls, self._last_clauses)
            stop = 1.0 if clause.does in (Does.CALL, Does.GIVE) else self.grammar.stop
            after: dict[Token, float] = dict.fromkeys(connectives, (1 - stop) / len(connectives))
            if (yield {**after, ".": stop}.get) != ".":
                yield from self._part(self._openings, self._last_clauses)
                yield lambda token: float(token == ".")
            yield lambda token: float(token == EOS)
            mentioned = self._end_sentence()
            drifted = self._drift * self._prior + (1.0 - self._drift) * self._beliefs[mentioned]
            self._beliefs[mentioned] = drifted

    def _part(self, openings: Phrases, clauses: Phrases) -> Generator[Predict, Token, Kind]:
        weights = self._probabilities()
        expected = weights @ self._beliefs[: len(weights)]
        opening: tuple[Token, ...] = ()
        clause: tuple[Token, ...] = ()

        def opens(token: Token) -> float:
            if isinstance(token, str):
                return openings.next_word(expected, opening, token)
            if opening not in openings.endings or not 1 <= token <= len(weights):
                return 0.0
            shown = float(openings.endings[opening].likelihood @ self._beliefs[token - 1])
            return float(weights[token - 1]) * shown / float(openings.masses[opening] @ expected)

        while isinstance(token := (yield opens), str):
            opening = (*opening, token)
        self._mark(entity := token - 1)
        self._learn(entity, openings.endings[opening])
        while clause not in clauses.endings:
            word = yield partial(clauses.next_word, self._beliefs[entity], clause)
            clause = (*clause, word)
        kind, trait, _, value = ending = clauses.endings[clause]
        self._learn(entity, ending)
        if kind.does is Does.GIVE:
            chances: dict[Token, float] = dict(enumerate(self._probabilities().tolist(), 1))
            self._mark(receiver := int((yield chances.get)) - 1)
            if value:
                self._become(receiver, trait, value)
                self._become(entity, trait, 0)
        return kind

    def _probabilities(self) -> NDArray[np.float64]:
        weights = self._weights()
        return np.array(weights) / sum(weights)

    def _learn(self, entity: int, ending: Ending) -> None:
        if ending.kind.shows:
            posterior = self._beliefs[entity, ending.trait] * ending.likelihood[ending.trait]
            self._beliefs[entity, ending.trait] = posterior / posterior.sum()
        elif ending.kind.does is Does.CHANGE:
            self._become(entity, ending.trait, ending.value)

    def _become(self, entity: int, trait: slice, value: int) -> None:
        self._beliefs[entity, trait] = 0.0
        self._beliefs[entity, trait.start + value] = 1.0


def ideal_log_probabilities(
    sentences: Sequence[Sequence[Token]], grammar: Grammar = STORYWORLD
) -> list[list[float]]:
    """Log-probability (nats) of each token and of the end of each sentence."""
    reader = StoryReader(grammar)
    return [[math.log(reader.read(token)) for token in (*s, EOS)] for s in sentences]


def stories(
    split: str, count: int, *, seed: int, grammar: Grammar = STORYWORLD
) -> Iterator[AnonymizedDocument]:
    """The stories of a split; a larger split begins with those of a smaller one."""
    for number in range(count):
        choose = chooser(f"storyworld {seed} {split} {number}")
        teller = Teller(choose, grammar)
        sentences = [list(teller.sentence()) for _ in range(SENTENCES)]
        left = [start + end for start in _STARTS.split() for end in _ENDS.split()]
        names = [left.pop(choose([1.0] * len(left))) for _ in range(grammar.entities)]
        yield AnonymizedDocument(
            name=f"storyworld-{split}-{number}",
            sentences=sentences,
            surfaces=[(names[t - 1],) for s in sentences for t in s if isinstance(t, int)],
            ideal=ideal_log_probabilities(sentences, grammar),
        )


def build_storyworld(
    target: Path,
    counts: Sequence[int] = (3000, 150, 150),
    *,
    seed: int,
    grammar: Grammar = STORYWORLD,
    vocabulary_of: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Write stories for train, dev and test; every word has a row, so the reader stays ideal."""
    sizes: dict[str, int] = dict(zip(SPLITS, counts, strict=True))
    made = [
        (s, story) for s, n in sizes.items() for story in stories(s, n, seed=seed, grammar=grammar)
    ]
    words = Counter(word for _, story in made for word in story.words())
    entities = grammar.entities
    size = len(SPECIALS) + entities + len(words)
    vocabulary = Vocabulary.from_counts(words, size=size, entities=entities)
    if vocabulary_of:
        vocabulary = load_vocabulary(vocabulary_of, entities=entities)
        if vocabulary.entities < entities or set(words) - set(vocabulary.words):
            raise ValueError(f"the vocabulary of {vocabulary_of} lacks words or entities")
    settings = {**sizes, "seed": seed, "vocabulary_of": str(vocabulary_of or "") or None}
    origin = Origin(corpus="storyworld", license="MIT (generated by this program)")
    with new_dataset(target, overwrite=overwrite) as folder:
        write_dataset(folder, made, vocabulary, settings=settings, origin=origin)
