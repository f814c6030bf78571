"""The words of storyworld, one table a trait.

A trade shares two of its six tasks and one of its three objects with the trade below or above it,
so that a single sentence may leave two trades open. Tempers, places and things have words of their
own. The verbs stand first in a clause: they are what follows an entity.
"""

from typing import NamedTuple


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
