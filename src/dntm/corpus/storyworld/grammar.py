"""The grammar: what an entity is, and how its traits show in a sentence.

    sentence  -> part "."  |  part connective last part "."
    part      -> opening [e] clause
    last part -> opening [e] last clause
    clause    -> ... | gift [receiver]  |  "called for" call [e] last clause

An opening or a call comes before the mention and shows a trait of the entity that is mentioned
next, so traits tell who comes; a clause comes after the mention, so traits tell what follows. Who
is mentioned depends on how many sentences ago it last was. The entities of a sentence differ, so
nothing that a sentence says about an entity matters again before the sentence ends.

STORYWORLD: the grammar with its words, weights and traits filled in.

Each entity has a trade, a temper, a place and a thing. The trade never changes; the temper may
drift; the place changes when the text says so and now and then unseen; the thing changes when it
is found, lost or given away, and the text always says so.

The words of storyworld, one table a trait.

A trade shares two of its six tasks and one of its three objects with the trade below or above it,
so that a single sentence may leave two trades open. Tempers, places and things have words of their
own. The verbs stand first in a clause: they are what follows an entity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

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


class Trade(NamedTuple):
    """What one does all day, wears and works on."""

    tasks: str
    objects: str
    garb: str


class Temper(NamedTuple):
    """How one speaks and the moods one is seen in."""

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
