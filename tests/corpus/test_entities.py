"""The rules of docs/data.md for names and unknown words, read from left to right."""

import pytest

from dntm.corpus.entities import EntityFinder, Lexicon
from dntm.corpus.text import document_of
from dntm.corpus.vocabulary import Vocabulary

WORDS = (
    "the a . , and of in to he she it sat saw came left met ran see now dog house man old bird "
    "climb nest beak bridge president happy line study war over home said then was president"
)
LEXICON = Lexicon(Vocabulary(tuple(dict.fromkeys(WORDS.split())), entities=9))
CHINA = Lexicon(Vocabulary(("the", "sold", "pots", "john", "china", "."), entities=9))


NAMED = (
    "susan mary peter anna smith brown london bridge june friday may us slept woke ate left came "
    "met saw was we i he then the and on in from talks . ,"
)
NAMES = Lexicon(Vocabulary(tuple(NAMED.split()), entities=9))


def entities(text: str, lexicon: Lexicon = LEXICON) -> list[list[str]]:
    """The mentions of each entity, entities by first appearance."""
    reader = EntityFinder(lexicon, ("names", "unknown"))
    found: dict[int | None, list[str]] = {}
    for words in document_of(text).sentences:
        for start, end, entity in reader.read(words):
            found.setdefault(entity, []).append(" ".join(words[start:end]))
    return list(found.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # From the first mention on, and the same at the beginning of a sentence.
        ("Grell came. Grell left.", ["Grell|Grell"]),
        ("The blicket sat. Blicket sat and saw a blicket.", ["blicket|Blicket|blicket"]),
        # Inflected forms of an unknown word, in whichever order they come.
        ("The blicket ran. Two blickets came.", ["blicket|blickets", "Two"]),
        ("Zorks came. The zork zorked and was zorking.", ["Zorks|zork|zorked|zorking"]),
        # Regular forms of known words are no entities.
        ("The bird climbed to nests, relined happily in studies.", []),
        # A full name, its parts, titles and possessives.
        (
            "President Karol Vask came. Vask's dog saw Mr. Vask. He met Karol.",
            ["President Karol Vask|Vask|Mr. Vask|Karol"],
        ),
        ("The dog saw Vask. Karol Vask ran.", ["Vask|Karol Vask"]),
        ("He saw President Vask and the President.", ["President Vask|President"]),
        ("He saw Mr. Orr and Mrs. Orr. She met Mr. Orr.", ["Mr. Orr|Mr. Orr", "Mrs. Orr"]),
        (
            "He saw Mr. Orr and Mrs. Orr. Mr. Orr ran. Mrs. Orr ran. Mr. Orr ran. Mrs. Orr ran.",
            ["Mr. Orr|Mr. Orr|Mr. Orr", "Mrs. Orr|Mrs. Orr|Mrs. Orr"],
        ),
        ("He saw Ann Brandt and Bo Brandt. Brandt left.", ["Ann Brandt", "Bo Brandt|Brandt"]),
        ("He saw London Bridge in London.", ["London Bridge", "London"]),
        # Ordinary words with the capital of a beginning.
        ('Old dogs ran. The man said, "Now see the house."', []),
        # Lines in capitals.
        ("THE WAR IS OVER NOW. THE MAN SAW THE HOUSE.", []),
        ("THE BLICKET SAT. The blicket ran.", ["BLICKET|blicket"]),
        ("He saw Karol Vask. KAROL VASK LEFT.", ["Karol Vask|KAROL VASK"]),
        # Numbers, letters and abbreviations.
        ("See No. 5 now. See 1871, 4x4 and x, i.e. Vol. 5.", []),
        ("I do n't; he ca n't.", []),
        # An unknown word is an entity if it can be a noun.
        ("He wallowed and wallowed, demonstrably.", []),
        ("Demonstrably, he was gelid. He ran to blick.", []),
        ("She did n't blick. It was very blorp. Uhh, he left.", []),
        ("He saw a blick. He blicked now.", ["blick|blicked"]),
        ("He saw the bakery and a giraffe. He ran to florps.", ["bakery", "giraffe", "florps"]),
    ],
)
def test_entities_are_found_as_the_docs_say(text: str, expected: list[str]) -> None:
    assert entities(text) == [mentions.split("|") for mentions in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Known names at the beginning of a sentence.
        ("Susan slept. Mary slept. Susan woke. Mary woke.", ["Susan|Susan", "Mary|Mary"]),
        ("Mary slept. Then Mary ate.", ["Mary|Mary"]),
        # First and full names, in both orders, whether their words are known or not.
        ("I met Anna Brandt. Then Anna left.", ["Anna Brandt|Anna"]),
        ("Anna Kovacs smiled. Kovacs left.", ["Anna Kovacs|Kovacs"]),
        ("Peter Smith came. Peter left.", ["Peter Smith|Peter"]),
        ("Peter came. Peter Brown left. Brown ate.", ["Peter|Peter Brown|Brown"]),
        ("We saw London Bridge. London slept.", ["London Bridge", "London"]),
        # Weekdays, months and years.
        ("In June 1987 and on Friday Peter left. Tuesday came. In May", ["Peter"]),
        ("We saw Theresa May in May.", ["Theresa May"]),
        # Names with an apostrophe or a hyphen, and single letters.
        ("Mr. O'Neill left. We met O'Neill.", ["Mr. O'Neill|O'Neill"]),
        (
            "We met Anna Fenwick-Smythe. Fenwick-Smythe left.",
            ["Anna Fenwick - Smythe|Fenwick - Smythe"],
        ),
        ("The US met China. US-China talks", ["US|US", "China|China"]),
        ("He left from 44/B. He saw Q and T.", []),
        ("He left, a Ph.D.", []),
    ],
)
def test_names_are_found_whether_they_are_in_the_vocabulary_or_not(
    text: str, expected: list[str]
) -> None:
    assert entities(text, lexicon=NAMES) == [mentions.split("|") for mentions in expected]


def test_a_word_whose_inflection_is_known_is_no_entity() -> None:
    forms = Lexicon(Vocabulary(("the", "saw", "nests", "climbed", "."), entities=9))

    assert entities("The nest saw the climb. The blicket saw.", lexicon=forms) == [["blicket"]]


def test_a_capital_inside_a_sentence_makes_a_known_word_a_name_unless_it_was_small() -> None:
    inside = "China sold pots. The pots of John and China sold. China sold John."
    small = "The china sold. The pots of China sold. China sold."

    assert entities(inside, lexicon=CHINA) == [["John", "John"], ["China", "China"]]
    assert entities(small, lexicon=CHINA) == [["China"]]
