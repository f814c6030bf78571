"""STORYWORLD: the grammar with its words, weights and traits filled in.

Each entity has a trade, a temper, a place and a thing. The trade never changes; the temper may
drift; the place changes when the text says so and now and then unseen; the thing changes when it
is found, lost or given away, and the text always says so.
"""

from collections.abc import Sequence

from dntm.corpus.storyworld.grammar import Does, Grammar, Kind, Phrase, Trait
from dntm.corpus.storyworld.words import (
    CONNECTIVES,
    FINDINGS,
    GIFTS,
    IDLING,
    JOURNEYS,
    NOTHING,
    PLACES,
    TEMPERS,
    THINGS,
    TOPICS,
    TRADES,
)


def _phrases(*texts: str) -> list[Phrase]:
    return [tuple(text.split()) for text in texts]


def _each(pattern: str, names: Sequence[str]) -> list[list[Phrase]]:
    """One row for each name, holding the pattern with the name in place of the underscore."""
    return [_phrases(pattern.replace("_", name)) for name in names]


def _verbs(verbs: str, rest: str, names: Sequence[str]) -> list[list[Phrase]]:
    """One row for each name, holding each verb followed by the rest."""
    return [_phrases(*(f"{v} {rest.replace('_', name)}" for v in verbs.split())) for name in names]


TRADE, TEMPER, PLACE, THING = range(4)

_PLACES, _OBJECTS = list(PLACES), [name for name in THINGS if name != NOTHING]
_SLIP = 0.03

_OPENINGS = [
    Kind(weight=0.15, phrases=[[()]]),
    Kind(
        weight=0.30,
        does=Does.SHOW,
        trait=TRADE,
        phrases=[_phrases(f"wearing the {trade.garb} ,") for trade in TRADES.values()],
    ),
    Kind(
        weight=0.05,
        does=Does.SHOW,
        trait=TEMPER,
        phrases=[
            _phrases(*(f"in a {mood} mood ," for mood in temper.moods.split()))
            for temper in TEMPERS.values()
        ],
    ),
    Kind(weight=0.25, does=Does.SHOW, trait=PLACE, phrases=_each("at the _ ,", _PLACES)),
    Kind(
        weight=0.25,
        does=Does.SHOW,
        trait=THING,
        phrases=[_phrases("with empty hands ,"), *_each("with the _ ,", _OBJECTS)],
    ),
]

_CALLS = [
    Kind(weight=0.5, does=Does.SHOW, trait=TRADE, phrases=_each("the _ , and", list(TRADES))),
    Kind(
        weight=0.25,
        does=Does.SHOW,
        trait=PLACE,
        phrases=_each("someone from the _ , and", _PLACES),
    ),
    Kind(
        weight=0.25,
        does=Does.SHOW,
        trait=THING,
        phrases=[_phrases("a beggar , and"), *_each("someone with the _ , and", _OBJECTS)],
    ),
]

_CLAUSES = [
    Kind(
        weight=0.44,
        does=Does.SHOW,
        trait=TRADE,
        slip=_SLIP,
        phrases=[
            _phrases(*(f"{t} the {o}" for t in trade.tasks.split() for o in trade.objects.split()))
            for trade in TRADES.values()
        ],
    ),
    Kind(
        weight=0.10,
        does=Does.SHOW,
        trait=TEMPER,
        slip=_SLIP,
        phrases=[
            _phrases(*(f"{s} about the {t}" for s in temper.speech.split() for t in TOPICS.split()))
            for temper in TEMPERS.values()
        ],
    ),
    Kind(
        weight=0.16,
        does=Does.SHOW,
        trait=PLACE,
        phrases=[_phrases(*acts.split(" / ")) for acts in PLACES.values()],
    ),
    Kind(
        weight=0.16,
        does=Does.SHOW,
        trait=THING,
        phrases=[_phrases(*uses.split(" / ")) for uses in THINGS.values()],
    ),
    Kind(
        weight=0.04,
        does=Does.CHANGE,
        trait=PLACE,
        phrases=_verbs(JOURNEYS, "to the _", _PLACES),
    ),
    Kind(
        weight=0.02,
        does=Does.CHANGE,
        trait=THING,
        phrases=[_phrases("lost everything"), *_verbs(FINDINGS, "the _", _OBJECTS)],
    ),
    Kind(
        weight=0.04,
        does=Does.GIVE,
        trait=THING,
        phrases=[_phrases("waved to", "bowed to"), *_verbs(GIFTS, "the _ to", _OBJECTS)],
    ),
    Kind(weight=0.03, does=Does.CALL, phrases=[_phrases("called for")]),
    Kind(weight=0.01, phrases=[_phrases(*IDLING.split(" / "))]),
]

STORYWORLD = Grammar(
    traits=[
        Trait(values=len(TRADES)),
        Trait(values=len(TEMPERS), drift=0.03),
        Trait(values=len(PLACES), drift=0.03),
        Trait(values=len(THINGS)),
    ],
    openings=_OPENINGS,
    clauses=_CLAUSES,
    calls=_CALLS,
    connectives=CONNECTIVES.split(),
    stop=0.5,
)
"""The grammar of the stories. A thing's value 0 is nothing, and nothing cannot be given away."""
