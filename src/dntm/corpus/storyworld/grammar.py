"""The grammar of storyworld: what an entity is, and how its traits show in a sentence.

    sentence  -> part "."  |  part connective last part "."
    part      -> opening [e] clause
    last part -> opening [e] last clause
    clause    -> ... | gift [receiver]  |  "called for" call [e] last clause

An opening or a call precedes the mention and shows a trait of the entity mentioned next, so traits
predict who is mentioned; a clause follows the mention, so traits predict what follows. Who is
mentioned depends on how many sentences ago the entity was last mentioned. All entities of a
sentence differ, so what a sentence says about an entity matters only after the sentence.

Each entity has a trade, a temper, a place and a thing. The trade never changes; the temper may
drift; the place changes when the text says so and sometimes unseen; the thing changes when it is
found, lost or given away, and the text always says so. A trade shares two of its six tasks and one
of its three objects with a neighbouring trade, so a single sentence may not determine the trade.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

Phrase = tuple[str, ...]


class Does(Enum):
    """The relation between a kind of phrase and its trait."""

    NOTHING = auto()
    """The phrase is independent of all traits."""
    SHOW = auto()
    """The phrase is drawn given the trait."""
    CHANGE = auto()
    """The phrase states the trait's new value, drawn uniformly."""
    GIVE = auto()
    """The phrase shows the trait, which then passes to the entity mentioned next."""
    CALL = auto()
    """The phrase introduces another entity, whose traits are shown next."""


@dataclass(frozen=True, kw_only=True)
class Trait:
    """A hidden property of an entity, drawn uniformly at its first mention."""

    values: int
    drift: float = 0.0
    """Probability of being redrawn after a sentence that mentions the entity."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Phrases for each value of a trait; equally likely given the value."""

    weight: float
    phrases: Sequence[Sequence[Phrase]]
    does: Does = Does.NOTHING
    trait: int = -1
    slip: float = 0.0
    """Probability that the phrase is drawn for a random value instead."""


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

    @property
    def last_clauses(self) -> Sequence[Kind]:
        """The clauses after which no other entity is mentioned."""
        return [kind for kind in self.clauses if kind.does not in (Does.GIVE, Does.CALL)]

    def mention_weights(self, last: Sequence[int], now: int, entities: int) -> list[float]:
        """Weights of the known entities and, last, of a new one, in sentence `now`.

        `last` is the sentence of each entity's last mention; there are at most `entities`.
        """
        oldest = len(self.recency) - 1
        known = [self.recency[min(now - then, oldest)] for then in last]
        return [*known, self.unseen if len(last) < entities else 0.0]


class Trade(NamedTuple):
    """What one does all day, works on and wears."""

    tasks: str
    objects: str
    garb: str


class Temper(NamedTuple):
    """How one speaks, and one's moods."""

    speech: str
    moods: str


TRADES = {
    "smith": Trade(
        "forged hammered quenched tempered bent riveted", "anvil horseshoe pan", "apron"
    ),
    "tinker": Trade("soldered patched scoured dented bent riveted", "kettle buckle pan", "cap"),
    "baker": Trade("baked kneaded proofed glazed sliced salted", "dough loaf pie", "bonnet"),
    "cook": Trade("stewed roasted simmered tasted sliced salted", "broth goose pie", "smock"),
    "weaver": Trade("wove spun carded dyed trimmed folded", "wool loom shawl", "kerchief"),
    "tailor": Trade("hemmed pinned pressed stitched trimmed folded", "coat sleeve shawl", "vest"),
    "carpenter": Trade("sawed planed nailed drilled measured sanded", "plank door bench", "belt"),
    "cooper": Trade("hooped sealed charred rolled measured sanded", "barrel stave bench", "jerkin"),
    "fisher": Trade("netted gutted smoked hooked hauled rinsed", "trout eel oar", "boots"),
    "sailor": Trade("rigged moored caulked steered hauled rinsed", "ship mast oar", "sash"),
    "farmer": Trade("ploughed sowed reaped threshed fenced guarded", "barley field meadow", "hat"),
    "shepherd": Trade("sheared herded milked tended fenced guarded", "flock lamb meadow", "cloak"),
}

TEMPERS = {
    "cheerful": Temper("laughed joked chuckled cheered", "merry jolly"),
    "gloomy": Temper("sighed brooded moaned despaired", "bleak sombre"),
    "angry": Temper("shouted cursed raged snarled", "furious bitter"),
    "timid": Temper("whispered stammered fretted trembled", "nervous fearful"),
    "proud": Temper("boasted bragged crowed gloated", "haughty vain"),
    "gentle": Temper("murmured hummed smiled crooned", "tender mild"),
    "sly": Temper("hinted schemed winked gossiped", "crafty cunning"),
    "weary": Temper("yawned groaned mumbled drawled", "drowsy listless"),
}
TOPICS = "weather war harvest wedding flood tax king fair"

PLACES = {
    "mill": "counted the sacks / swept the flour / dodged the sails",
    "river": "waded upstream / skipped a pebble / splashed about",
    "market": "haggled loudly / browsed the stalls / tripped over a crate",
    "church": "prayed softly / knelt down / rang the bell",
    "tavern": "drank some ale / danced a jig / threw the dice",
    "bridge": "leaned over the railing / spat into the stream / paid the toll",
    "harbour": "fed the gulls / watched the tide / sniffed the brine",
    "orchard": "picked an apple / climbed a tree / shook the branches",
    "stable": "brushed the mare / saddled the pony / stacked the hay",
    "well": "drew some water / lowered the bucket / filled a jug",
    "tower": "gazed at the hills / scanned the road / blew the horn",
    "forest": "gathered some mushrooms / startled a deer / chopped the firewood",
}
JOURNEYS = "walked hurried wandered strolled"

NOTHING = "nothing"
THINGS = {
    NOTHING: "begged for alms / searched an empty pocket / shrugged helplessly",
    "lantern": "lit the lantern / shaded the lantern / swung the lantern",
    "rope": "coiled the rope / knotted the rope / frayed the rope",
    "flute": "played the flute / tuned the flute / blew the flute",
    "map": "unrolled the map / studied the map / creased the map",
    "mirror": "polished the mirror / tilted the mirror / cracked the mirror",
    "sword": "drew the sword / sharpened the sword / sheathed the sword",
    "book": "read the book / opened the book / quoted the book",
    "kite": "flew the kite / launched the kite / tangled the kite",
    "drum": "beat the drum / tapped the drum / thumped the drum",
    "key": "turned the key / copied the key / oiled the key",
    "ladder": "propped the ladder / climbed the ladder / carried the ladder",
    "cat": "stroked the cat / chased the cat / fed the cat",
}
FINDINGS = "found bought borrowed stole"
GIFTS = "gave handed lent"

IDLING = "waited for news / slept well / listened closely / nodded twice / sat still / ate lunch"
CONNECTIVES = "while and but as"

NAME_STARTS = "Al Bren Cor Dal El Fen Gar Hes Il Jor Kel Lor Mar Nev Or Per Quil Ros Sel Tam Ul Ver"
NAME_ENDS = "da mir wyn ric ena sk olo bert issa nor iel und ava ox eth"

TRADE, TEMPER, PLACE, THING = range(4)
_SLIP = 0.03


def _phrases(texts: Iterable[str]) -> list[Phrase]:
    return [tuple(text.split()) for text in texts]


def _each(pattern: str, names: Iterable[str]) -> list[list[Phrase]]:
    """One row per name: the pattern with the name in place of the underscore."""
    return [_phrases([pattern.replace("_", name)]) for name in names]


def _verbs(verbs: str, rest: str, names: Iterable[str]) -> list[list[Phrase]]:
    """One row per name: each verb followed by the rest."""
    return [_phrases(f"{v} {rest.replace('_', name)}" for v in verbs.split()) for name in names]


def _combined(pairs: Iterable[tuple[str, str]], middle: str) -> list[list[Phrase]]:
    """One row per pair: each word of the first with each word of the second."""
    return [
        _phrases(f"{a} {middle} {b}" for a in first.split() for b in second.split())
        for first, second in pairs
    ]


def _show(
    weight: float, trait: int, phrases: Sequence[Sequence[Phrase]], slip: float = 0.0
) -> Kind:
    return Kind(weight=weight, does=Does.SHOW, trait=trait, phrases=phrases, slip=slip)


_GARBS = [trade.garb for trade in TRADES.values()]
_OBJECTS = [name for name in THINGS if name != NOTHING]

STORYWORLD = Grammar(
    traits=[
        Trait(values=len(TRADES)),
        Trait(values=len(TEMPERS), drift=0.03),
        Trait(values=len(PLACES), drift=0.03),
        Trait(values=len(THINGS)),
    ],
    openings=[
        Kind(weight=0.15, phrases=[[()]]),
        _show(0.30, TRADE, _each("wearing the _ ,", _GARBS)),
        _show(
            0.05,
            TEMPER,
            [_phrases(f"in a {m} mood ," for m in t.moods.split()) for t in TEMPERS.values()],
        ),
        _show(0.25, PLACE, _each("at the _ ,", PLACES)),
        _show(0.25, THING, [*_each("with empty hands ,", "_"), *_each("with the _ ,", _OBJECTS)]),
    ],
    calls=[
        _show(0.5, TRADE, _each("the _ , and", TRADES)),
        _show(0.25, PLACE, _each("someone from the _ , and", PLACES)),
        _show(
            0.25,
            THING,
            [*_each("a beggar , and", "_"), *_each("someone with the _ , and", _OBJECTS)],
        ),
    ],
    clauses=[
        _show(0.44, TRADE, _combined([t[:2] for t in TRADES.values()], "the"), slip=_SLIP),
        _show(
            0.10,
            TEMPER,
            _combined([(t.speech, TOPICS) for t in TEMPERS.values()], "about the"),
            slip=_SLIP,
        ),
        _show(0.16, PLACE, [_phrases(acts.split(" / ")) for acts in PLACES.values()]),
        _show(0.16, THING, [_phrases(uses.split(" / ")) for uses in THINGS.values()]),
        Kind(
            weight=0.04,
            does=Does.CHANGE,
            trait=PLACE,
            phrases=_verbs(JOURNEYS, "to the _", PLACES),
        ),
        Kind(
            weight=0.02,
            does=Does.CHANGE,
            trait=THING,
            phrases=[_phrases(["lost everything"]), *_verbs(FINDINGS, "the _", _OBJECTS)],
        ),
        Kind(
            weight=0.04,
            does=Does.GIVE,
            trait=THING,
            phrases=[_phrases(["waved to", "bowed to"]), *_verbs(GIFTS, "the _ to", _OBJECTS)],
        ),
        Kind(weight=0.03, does=Does.CALL, phrases=_each("called for", "_")),
        Kind(weight=0.01, phrases=[_phrases(IDLING.split(" / "))]),
    ],
    connectives=CONNECTIVES.split(),
    stop=0.5,
)
"""The grammar of the stories. Value 0 of a thing is nothing, which cannot be given away."""
