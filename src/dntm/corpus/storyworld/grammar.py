"""The grammar: what an entity is, and how its traits show in a sentence.

    sentence  -> part "."  |  part connective last part "."
    part      -> opening [e] clause
    last part -> opening [e] last clause
    clause    -> ... | gift [receiver]  |  "called for" call [e] last clause

An opening or a call comes before the mention and shows a trait of the entity that is mentioned
next, so traits tell who comes; a clause comes after the mention, so traits tell what follows. Who
is mentioned depends on how many sentences ago it last was. The entities of a sentence differ, so
nothing that a sentence says about an entity matters again before the sentence ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

Phrase = tuple[str, ...]


class Does(Enum):
    """What a kind of phrase has to do with the trait it is about."""

    NOTHING = auto()
    """The phrase has nothing to do with any trait."""
    SHOW = auto()
    """The phrase is drawn given the trait."""
    CHANGE = auto()
    """The phrase tells the trait's new value, drawn uniformly."""
    GIVE = auto()
    """The phrase shows the trait, which then passes to an entity mentioned next."""
    CALL = auto()
    """The phrase calls for another entity, whose traits come next."""


@dataclass(frozen=True, kw_only=True)
class Trait:
    """A hidden property of an entity, drawn uniformly when it is first mentioned."""

    values: int
    drift: float = 0.0
    """Probability that it is drawn anew after a sentence that mentions the entity."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Phrases for each value of a trait; given the value, they are equally likely."""

    weight: float
    phrases: Sequence[Sequence[Phrase]]
    does: Does = Does.NOTHING
    trait: int = -1
    slip: float = 0.0
    """Probability that the phrase is drawn as for a value drawn uniformly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Grammar:
    """Everything that determines the probability of a story."""

    traits: Sequence[Trait]
    openings: Sequence[Kind]
    clauses: Sequence[Kind]
    calls: Sequence[Kind]
    connectives: Sequence[str]
    stop: float
    """Probability that a sentence ends after its first part."""
    recency: Sequence[float] = (0.0, 3.0, 2.0, 1.0)
    """Weight of an entity last mentioned 0, 1, 2, and 3 or more sentences ago."""
    newcomer: float = 2.0
    """Weight of an entity not yet mentioned."""

    @property
    def last_clauses(self) -> Sequence[Kind]:
        """The clauses after which no other entity comes."""
        return [kind for kind in self.clauses if kind.does not in (Does.GIVE, Does.CALL)]

    @property
    def words(self) -> list[str]:
        """Every word of the grammar, sorted."""
        kinds = (*self.openings, *self.clauses, *self.calls)
        spoken = {w for kind in kinds for row in kind.phrases for phrase in row for w in phrase}
        return sorted({*spoken, *self.connectives, "."})

    def mention_weights(self, last: Sequence[int], now: int, entities: int) -> list[float]:
        """Weights of all known entities and, last, of a new one, in sentence `now`.

        `last` holds the sentence of each entity's last mention; there are at most `entities`.
        """
        oldest = len(self.recency) - 1
        known = [self.recency[min(now - then, oldest)] for then in last]
        return [*known, self.newcomer if len(last) < entities else 0.0]
