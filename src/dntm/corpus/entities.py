"""Names and unknown words of plain text as entities, found from left to right.

A decision about a word never depends on later words, except the words of its own mention and the
name after a title.

A **name** is a maximal run of capitalized words; hyphens may join them. At the beginning of a
sentence or quotation, every word is capitalized. There, a word is a name if its lower-case form is
not known. A word in `names.yaml`, or one that occurred earlier with a capital inside a sentence, is
also a name, unless it occurred earlier in lower case. In a line that is all capitals so far, only
known entities and unknown words are found. A full name, its surname and its first name, with or
without a title, are one entity. If several entities match, the most recently mentioned one is
chosen. A title alone refers to the last entity with this title.

An **unknown** word is not in the vocabulary in any spelling, nor is it a regular form of a known
word (`climbed` of `climb`). It becomes an entity unless its ending or the word before it marks a
verb, adjective or adverb. Inflected forms of an entity are the same entity. Numbers, single
letters, abbreviations, weekdays, months and closed-class words are never entities.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dntm.corpus.document import Span, Token
from dntm.corpus.vocabulary import UNK, Vocabulary, is_label
from dntm.settings import read_yaml

_WORDS = read_yaml(Path(__file__).with_name("english.yaml"))
_NAMES = read_yaml(Path(__file__).with_name("names.yaml"))
_FIRST_NAMES = frozenset(_NAMES["first"].split())
_KNOWN_NAMES = _FIRST_NAMES | frozenset(_NAMES["other"].split())
PRONOUNS = frozenset(_WORDS["pronouns"].split())
CLOSED = PRONOUNS | frozenset(_WORDS["closed"].split())
"""Closed-class words: neither names nor unknown, whatever the vocabulary."""
_TITLES = {title: gender for gender, titles in _WORDS["titles"].items() for title in titles.split()}
"""Titles, and the gender they imply (empty: none)."""
_NOT_NAMES = frozenset(_WORDS["not_names"].split())
_CALENDAR = frozenset(_WORDS["calendar"].split())
_NOT_NOUN = re.compile(rf"(?:{'|'.join(_WORDS['not_noun_endings'].split())})$")
_BEFORE_NO_NOUN = frozenset(_WORDS["before_no_noun"].split())
_INTERJECTIONS = frozenset(_WORDS["interjections"].split())
_OPENS = frozenset({'"', "“", "‘", "«", "„", "'", "(", "[", ":", "*", "•", "...", "…"})
"""After these a word may be capitalized because a quotation or item begins."""
_ENDS = frozenset({".", "!", "?"})
_INFLECTION = ("s", "es", "ed", "ing")
_DERIVATION = ("er", "ers", "est", "ly", "ness", "less", "ful")
_PREFIX = re.compile(r"^(?:un|re|non|mis|over|out)(?=\w{3})")
_SHORTEST = 3
"""Minimum letters of a stem."""
_RECENT = 20
"""Candidates among the entities that share a word of their names: the newest ones."""


def stems(word: str, endings: Sequence[str] = _INFLECTION) -> Iterator[str]:
    """The lower-case word itself, then its possible stems."""
    yield word
    for ending in endings:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < _SHORTEST:
            continue
        yield stem
        yield f"{stem}e"
        if stem[-1] == stem[-2]:
            yield stem[:-1]
        if stem[-1] == "i":
            yield f"{stem[:-1]}y"
        if stem[-1] == "v":
            yield f"{stem[:-1]}f"
            yield f"{stem[:-1]}fe"
        if ending == "ly":
            yield f"{stem}le"


class Lexicon:
    """A vocabulary and its spelling (as written or in lower case)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.lower_case = vocabulary, vocabulary.lower_case
        self._related: dict[str, bool] = {}

    def __contains__(self, word: str) -> bool:
        return self.spelled(word) in self.vocabulary

    def spelled(self, word: str) -> str:
        """The word as the vocabulary has it."""
        return word.lower() if self.lower_case else word

    def row(self, token: Token) -> int:
        """The row of a word (<unk> if it has none) or of an entity."""
        return self.vocabulary.row(self.spelled(token) if isinstance(token, str) else token)

    def has_rows(self, words: Iterable[str]) -> bool:
        """Whether every word has a row; labels such as [1] are ignored."""
        spelled = [self.spelled(word) for word in words if not is_label(word)]
        return not any(UNK in rows for rows in self.vocabulary.rows_of(spelled))

    def is_ordinary(self, word: str) -> bool:
        """Whether its lower-case form is known or is a regular form of a known word."""
        small = word.lower()
        if small in self.vocabulary or small in CLOSED:
            return True
        if (found := self._related.get(small)) is None:
            found = self._related[small] = self._is_related(small)
        return found

    def is_known(self, word: str) -> bool:
        """Whether the word is known in any spelling."""
        return (
            word in self.vocabulary
            or word.capitalize() in self.vocabulary
            or self.is_ordinary(word)
        )

    def _is_related(self, small: str) -> bool:
        for word in dict.fromkeys((small, _PREFIX.sub("", small))):
            for stem in stems(word, _DERIVATION):
                if any(form in self.vocabulary for form in stems(stem)):
                    return True
        return any(f"{small}{ending}" in self.vocabulary for ending in _INFLECTION)


@dataclass
class _Entity:
    names: set[tuple[str, ...]] = field(default_factory=set)
    gender: str = ""
    last: int = 0
    """The time of its last mention."""


class EntityFinder:
    """Finds the names and unknown words of one document, sentence by sentence."""

    def __init__(self, lexicon: Lexicon, kinds: Collection[str], first: int = 0) -> None:
        self.lexicon = lexicon
        self.names = "names" in kinds
        self.unknown = "unknown" in kinds
        self._first = first
        self._entities: list[_Entity] = []
        self._full: dict[tuple[str, ...], int] = {}
        """The entity last called by a name, in lower case and without titles."""
        self._by_word: dict[str, list[int]] = {}
        """Entities by the first and the last word of their names."""
        self._common: dict[str, int] = {}
        """Entities by each stem of an unknown word."""
        self._title: dict[str, int] = {}
        """The entity that had a title last."""
        self._inside: set[str] = set()
        """Words seen with a capital inside a sentence."""
        self._small: set[str] = set()
        """Words seen in lower case."""
        self._time = 0

    def read(self, words: Sequence[str], taken: Collection[int] = ()) -> list[Span]:
        """The mentions of the next sentence; `taken` words belong to other mentions already."""
        sentence = Capitals(words, taken)
        found: list[Span] = []
        w = 0
        while w < len(words):
            end, entity = w + 1, None
            if w not in taken and words[w][0].isalpha():
                end, entity = self._mention(sentence, w)
            if entity is not None:
                found.append(Span(w, end, self._first + entity))
                self._time += 1
                self._entities[entity].last = self._time
            for place in range(w, end):
                if words[place][0].islower():
                    self._small.add(words[place])
                elif sentence.marks_name(place):
                    self._inside.add(words[place].lower())
            w = end
        return found

    def _mention(self, sentence: "Capitals", w: int) -> tuple[int, int | None]:
        """The end of the mention that begins at word `w`, and its entity (None: no mention)."""
        words = sentence.words
        if self.names and words[w].isupper() and not sentence.marks_name(w):
            for end in range(min(w + 4, len(words)), w, -1):
                name = tuple(word.lower() for word in words[w:end])
                if name in self._full and all(word.isupper() for word in words[w:end]):
                    return end, self._full[name]
        if self.names and self._is_name(sentence, w):
            end = w + 1
            while size := self._more(sentence, end):
                end += size
            if all(len(word.rstrip(".")) == 1 for word in words[w:end]):
                return end, None
            return end, self._name(words[w:end], initial=not sentence.marks_name(w))
        return w + 1, self._unknown(words, w)

    def _more(self, sentence: "Capitals", end: int) -> int:
        """How many words continue a name: one capitalized word, or a hyphen and such a word."""
        words = sentence.words
        hyphen = end + 1 < len(words) and words[end] == "-"
        if hyphen and any((words[w].lower(),) in self._full for w in (end - 1, end + 1)):
            return 0
        return (1 + hyphen) * sentence.continues_name(end + hyphen)

    def _is_name(self, sentence: "Capitals", w: int) -> bool:
        words, word, small = sentence.words, sentence.words[w], sentence.words[w].lower()
        if not is_capitalized(word) or w in sentence.headline or small in _CALENDAR:
            return False
        before_a_name = sentence.continues_name(w + 1) and words[w + 1].lower() not in CLOSED
        if sentence.marks_name(w):
            return small not in CLOSED or word == "US" or before_a_name
        if small in _TITLES:
            return before_a_name
        if small in CLOSED:
            return False
        if small not in self._small and (small in self._inside or small in _KNOWN_NAMES):
            return True
        return not self.lexicon.is_ordinary(small) and not _is_no_noun(small)

    def _name(self, words: Sequence[str], *, initial: bool) -> int:
        """The entity of a run of capitalized words."""
        core = " ".join(words).lower().replace(" - ", "-").split()
        titles = []
        while core and core[0] in _TITLES:
            titles.append(core.pop(0))
        while len(core) > 1 and core[-1] in ("jr.", "sr."):
            core.pop()
        gender = ""
        if not core:
            entity, core = self._title.get(titles[-1]), titles[-1:]
        else:
            gender = next((_TITLES[title] for title in titles if _TITLES[title]), "")
            entity = self._named(tuple(core), gender)
            if entity is None and len(core) == 1:
                stem = self._of_stem(core[0])
                entity = stem if stem is not None and self._fits(stem, gender) else None
        if entity is None:
            entity = self._new()
        self._entities[entity].gender = self._entities[entity].gender or gender
        self._call(entity, tuple(core))
        for title in titles:
            self._title[title] = entity
        if len(core) == 1:
            for form in stems(core[0]) if initial else core:
                self._common.setdefault(form, entity)
        return entity

    def _named(self, core: tuple[str, ...], gender: str) -> int | None:
        """The entity with this name, else the one mentioned last that the name fits."""
        if (same := self._full.get(core)) is not None and self._fits(same, gender):
            return same
        near = {e for word in (core[0], core[-1]) for e in self._by_word.get(word, ())[-_RECENT:]}
        fitting = [e for e in near if self._fits(e, gender) and self._is_one(e, core)]
        return max(fitting, key=lambda entity: self._entities[entity].last, default=None)

    def _fits(self, entity: int, gender: str) -> bool:
        return not gender or self._entities[entity].gender in ("", gender)

    def _is_one(self, entity: int, core: tuple[str, ...]) -> bool:
        names = self._entities[entity].names
        single = all(len(name) == 1 for name in names)
        return core in names or any(
            self._is_part(core, name)
            or (single and self._is_part(name, core))
            or (len(core) > 1 < len(name) and (core[0], core[-1]) == (name[0], name[-1]))
            for name in names
        )

    def _is_part(self, short: tuple[str, ...], full: tuple[str, ...]) -> bool:
        """Whether a single word is the surname or the first name of a full name."""
        if len(short) != 1 or len(full) < 2:
            return False
        if short[0] != full[0] or short[0] in _FIRST_NAMES:
            return short[0] in (full[0], full[-1])
        others = (word for word in full if word not in _KNOWN_NAMES)
        return len(full) == 2 and not any(map(self.lexicon.is_ordinary, others))

    def _unknown(self, words: Sequence[str], w: int) -> int | None:
        """The entity of an unknown word; None if the word is known or not a noun."""
        word, small = words[w], words[w].lower()
        if not self.unknown or len(word) < 2 or not word.isalpha() or self.lexicon.is_known(word):
            return None
        if (entity := self._of_stem(small)) is None:
            if small in _CALENDAR or _is_no_noun(small, words[w - 1].lower() if w else ""):
                return None
            entity = self._new()
            self._call(entity, (small,))
        for form in stems(small):
            self._common.setdefault(form, entity)
        return entity

    def _of_stem(self, small: str) -> int | None:
        """The entity of an unknown word that shares a stem with this one."""
        return next((self._common[form] for form in stems(small) if form in self._common), None)

    def _new(self) -> int:
        self._entities.append(_Entity())
        return len(self._entities) - 1

    def _call(self, entity: int, name: tuple[str, ...]) -> None:
        names = self._entities[entity].names
        self._full[name] = entity
        if name not in names and len(names) < _RECENT:
            names.add(name)
            for word in {name[0], name[-1]}:
                known = self._by_word.setdefault(word, [])
                if entity not in known[-_RECENT:]:
                    known.append(entity)


def _is_no_noun(small: str, before: str = "") -> bool:
    """Whether the ending of an unknown word or the word before it rules out a noun."""
    is_infinitive = before == "to" and not small.endswith("s")
    is_no_noun = is_infinitive or before in _BEFORE_NO_NOUN or small in _INTERJECTIONS
    return is_no_noun or _NOT_NOUN.search(small) is not None


class Capitals:
    """Which capitals of a sentence mark a name."""

    def __init__(self, words: Sequence[str], taken: Collection[int]) -> None:
        self.words = words
        self._taken = taken
        self._initial: set[int] = set()
        self.headline: set[int] = set()
        """Words in capitals in a sentence that is all in capitals so far."""
        begins, upper = True, False
        for w, word in enumerate(words):
            if begins and word[0].isalnum():
                self._initial.add(w)
                begins = False
            elif word in _OPENS or word in _ENDS:
                begins = True
            if word[0].isalpha():
                if upper and word.isupper():
                    self.headline.add(w)
                upper = word.isupper() and (upper or (not self.headline and w in self._initial))

    def marks_name(self, w: int) -> bool:
        """Whether word `w` has a capital where ordinary words have none."""
        word = self.words[w]
        is_plain = w in self.headline or w in self._initial or word.lower() in _CALENDAR
        return is_capitalized(word) and not is_plain

    def continues_name(self, w: int) -> bool:
        """Whether a name that began before word `w` includes it."""
        if w >= len(self.words) or w in self._taken:
            return False
        is_surname = self.words[w] in ("March", "May") and w not in self._initial
        return self.marks_name(w) or is_surname


def is_capitalized(word: str, exceptions: Collection[str] = _NOT_NAMES) -> bool:
    """Whether a word begins with a capital and is none of the exceptions."""
    return word[0].isupper() and word not in exceptions
