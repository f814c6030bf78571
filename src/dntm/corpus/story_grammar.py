"""The grammar of storyworld: hidden traits of entities, and the phrases that show them.

    sentence  -> part "."  |  part connective last part "."
    part      -> opening [e] clause
    last part -> opening [e] last clause
    clause    -> ... | gift [receiver]  |  "called for" call [e] last clause

An opening or a call precedes the mention and shows a trait of the entity mentioned next, so traits
predict who is mentioned; a clause follows the mention, so traits predict what follows. Who is
mentioned depends on how many sentences ago the entity was last mentioned. All entities of a
sentence differ, so what a sentence says about an entity matters only after the sentence.

Each entity has a trade, a temper, a place and a thing. The trade never changes; the temper may
drift; the place changes when the text says so and sometimes without notice; the thing changes when
it is found, lost or given away, and the text always says so. A trade shares two of its six tasks
and one of its three objects with a neighboring trade, so a single sentence may not determine it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path

from dntm.settings import read_yaml

Phrase = tuple[str, ...]


class Does(Enum):
    """The relation between a kind of phrase and its trait.

    NOTHING: the phrase is independent of all traits. SHOW: it is drawn given the trait. CHANGE: it
    states the trait's new value, drawn uniformly. GIVE: it shows the trait, which then passes to
    the entity mentioned next. CALL: it introduces another entity, whose traits are shown next.
    """

    NOTHING, SHOW, CHANGE, GIVE, CALL = range(5)


@dataclass(frozen=True)
class Trait:
    """A hidden property of an entity, drawn uniformly at its first mention."""

    values: int
    drift: float = 0.0
    """Probability of being redrawn after a sentence that mentions the entity."""


@dataclass(frozen=True)
class Kind:
    """Phrases for each value of a trait; equally likely given the value."""

    weight: float
    does: Does
    phrases: Sequence[Sequence[Phrase]]
    trait: int = -1
    slip: float = 0.0
    """Probability that the phrase is drawn for a random value instead."""

    @property
    def shows(self) -> bool:
        """Whether the phrase depends on the trait."""
        return self.does in (Does.SHOW, Does.GIVE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Grammar:
    """All parameters of the distribution of stories."""

    traits: Sequence[Trait]
    openings: Sequence[Kind]
    clauses: Sequence[Kind]
    calls: Sequence[Kind]
    connectives: Sequence[str]
    stop: float
    """Probability that a sentence ends after its first part."""
    recency: Sequence[float] = (0.0, 3.0, 2.0, 1.0)
    """Weight of an entity last mentioned 0, 1, 2, and 3 or more sentences ago."""
    unseen: float = 2.0
    """Weight of a new entity."""
    entities: int = 8
    """Maximum number of entities in a story."""

    @property
    def last_clauses(self) -> Sequence[Kind]:
        """The clauses after which no other entity is mentioned."""
        return [kind for kind in self.clauses if kind.does not in (Does.GIVE, Does.CALL)]


_WORDS = read_yaml(Path(__file__).with_name("story_words.yaml"))
TRADES, TEMPERS, PLACES, THINGS = (_WORDS[k] for k in ("trades", "tempers", "places", "things"))
TRADE, TEMPER, PLACE, THING = range(4)
_SLIP = 0.03


def _row(*parts: str) -> list[Phrase]:
    """All phrases made of one alternative of each part; slashes separate alternatives."""
    chosen = product(*(part.split("/") for part in parts))
    return [tuple(" ".join(words).split()) for words in chosen]


def _each(names: Iterable[str], *parts: str) -> list[list[Phrase]]:
    """One row per name, which replaces the underscore."""
    return [_row(*(part.replace("_", name) for part in parts)) for name in names]


def _things(nothing: str, *parts: str) -> list[list[Phrase]]:
    """The row of nothing, and one row per thing."""
    return [_row(nothing), *_each(list(THINGS)[1:], *parts)]


_SPOKEN = [_row(speech, "about the", _WORDS["topics"]) for speech, _ in TEMPERS.values()]

STORYWORLD = Grammar(
    traits=[
        Trait(len(TRADES)),
        Trait(len(TEMPERS), drift=0.03),
        Trait(len(PLACES), drift=0.03),
        Trait(len(THINGS)),
    ],
    openings=[
        Kind(0.15, Does.NOTHING, [[()]]),
        Kind(0.30, Does.SHOW, _each([t[2] for t in TRADES.values()], "wearing the _ ,"), TRADE),
        Kind(0.05, Does.SHOW, [_row("in a", t[1], "mood ,") for t in TEMPERS.values()], TEMPER),
        Kind(0.25, Does.SHOW, _each(PLACES, "at the _ ,"), PLACE),
        Kind(0.25, Does.SHOW, _things("with empty hands ,", "with the _ ,"), THING),
    ],
    calls=[
        Kind(0.5, Does.SHOW, _each(TRADES, "the _ , and"), TRADE),
        Kind(0.25, Does.SHOW, _each(PLACES, "someone from the _ , and"), PLACE),
        Kind(0.25, Does.SHOW, _things("a beggar , and", "someone with the _ , and"), THING),
    ],
    clauses=[
        Kind(0.44, Does.SHOW, [_row(t[0], "the", t[1]) for t in TRADES.values()], TRADE, _SLIP),
        Kind(0.10, Does.SHOW, _SPOKEN, TEMPER, _SLIP),
        Kind(0.16, Does.SHOW, [_row(acts) for acts in PLACES.values()], PLACE),
        Kind(0.16, Does.SHOW, [_row(uses) for uses in THINGS.values()], THING),
        Kind(0.04, Does.CHANGE, _each(PLACES, _WORDS["journeys"], "to the _"), PLACE),
        Kind(0.02, Does.CHANGE, _things("lost everything", _WORDS["findings"], "the _"), THING),
        Kind(0.04, Does.GIVE, _things("waved to/bowed to", "gave/handed/lent", "the _ to"), THING),
        Kind(0.03, Does.CALL, [_row("called for")]),
        Kind(0.01, Does.NOTHING, [_row(_WORDS["idling"])]),
    ],
    connectives=["while", "and", "but", "as"],
    stop=0.5,
)
