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
from enum import Enum, auto
from itertools import product

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


TRADES = {
    "smith": ("forged/hammered/quenched/tempered/bent/riveted", "anvil/horseshoe/pan", "apron"),
    "tinker": ("soldered/patched/scoured/dented/bent/riveted", "kettle/buckle/pan", "cap"),
    "baker": ("baked/kneaded/proofed/glazed/sliced/salted", "dough/loaf/pie", "bonnet"),
    "cook": ("stewed/roasted/simmered/tasted/sliced/salted", "broth/goose/pie", "smock"),
    "weaver": ("wove/spun/carded/dyed/trimmed/folded", "wool/loom/shawl", "kerchief"),
    "tailor": ("hemmed/pinned/pressed/stitched/trimmed/folded", "coat/sleeve/shawl", "vest"),
    "carpenter": ("sawed/planed/nailed/drilled/measured/sanded", "plank/door/bench", "belt"),
    "cooper": ("hooped/sealed/charred/rolled/measured/sanded", "barrel/stave/bench", "jerkin"),
    "fisher": ("netted/gutted/smoked/hooked/hauled/rinsed", "trout/eel/oar", "boots"),
    "sailor": ("rigged/moored/caulked/steered/hauled/rinsed", "ship/mast/oar", "sash"),
    "farmer": ("ploughed/sowed/reaped/threshed/fenced/guarded", "barley/field/meadow", "hat"),
    "shepherd": ("sheared/herded/milked/tended/fenced/guarded", "flock/lamb/meadow", "cloak"),
}
"""Tasks, objects and garb of each trade."""

TEMPERS = {
    "cheerful": ("laughed/joked/chuckled/cheered", "merry/jolly"),
    "gloomy": ("sighed/brooded/moaned/despaired", "bleak/sombre"),
    "angry": ("shouted/cursed/raged/snarled", "furious/bitter"),
    "timid": ("whispered/stammered/fretted/trembled", "nervous/fearful"),
    "proud": ("boasted/bragged/crowed/gloated", "haughty/vain"),
    "gentle": ("murmured/hummed/smiled/crooned", "tender/mild"),
    "sly": ("hinted/schemed/winked/gossiped", "crafty/cunning"),
    "weary": ("yawned/groaned/mumbled/drawled", "drowsy/listless"),
}
"""Ways to speak, and moods, of each temper."""
TOPICS = "weather/war/harvest/wedding/flood/tax/king/fair"

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
"""What one does at each place."""

THINGS = {
    "nothing": "begged for alms / searched an empty pocket / shrugged helplessly",
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
"""What one does with each thing. The first, nothing, cannot be given away."""

JOURNEYS = "walked/hurried/wandered/strolled"
FINDINGS = "found/bought/borrowed/stole"
IDLING = "waited for news/slept well/listened closely/nodded twice/sat still/ate lunch"

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


_SPOKEN = [_row(speech, "about the", TOPICS) for speech, _ in TEMPERS.values()]

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
        Kind(0.04, Does.CHANGE, _each(PLACES, JOURNEYS, "to the _"), PLACE),
        Kind(0.02, Does.CHANGE, _things("lost everything", FINDINGS, "the _"), THING),
        Kind(0.04, Does.GIVE, _things("waved to/bowed to", "gave/handed/lent", "the _ to"), THING),
        Kind(0.03, Does.CALL, [_row("called for")]),
        Kind(0.01, Does.NOTHING, [_row(IDLING)]),
    ],
    connectives=["while", "and", "but", "as"],
    stop=0.5,
)
