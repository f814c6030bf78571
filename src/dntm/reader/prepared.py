"""Prepared text: what a model reads, with the text's own words and names beside it.

A sentence given beside a text (a gap to fill, a beginning to go on from) speaks of its entities:
by number, [1], or by words that mention one of them and nothing else.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dntm.corpus.document import Token
from dntm.corpus.text import WORD_RULES
from dntm.reader.lexicon import Lexicon
from dntm.reader.prose import as_prose

GAP = "[]"
"""What stands for a missing word."""
_WORD = re.compile("|".join((r"\[\d{0,6}\]", *WORD_RULES)))

PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its "
    "itself we us our ours ourselves they them their theirs themselves this that these those who "
    "whom whose which one".split()
)


@dataclass(frozen=True, slots=True)
class Word:
    """A token as the model reads it, and the words of the text it stands for."""

    token: Token
    words: Sequence[str]
    unknown: bool = False
    """Whether the model has no row for it, and takes it for any unknown word."""

    @property
    def shown(self) -> str:
        """The words as the text has them."""
        return as_prose(self.words)


Words = Sequence[Sequence[Word]]


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedText:
    """A text ready to be read."""

    name: str
    sentences: Words
    notes: Sequence[str] = ()

    def names(self) -> dict[int, str]:
        """What each entity is called: its first mention that is no pronoun, else its first."""
        mentions: dict[int, list[Word]] = {}
        for word in mentions_in(self.sentences):
            mentions.setdefault(int(word.token), []).append(word)
        return {
            number: next((w for w in words if not _is_pronoun(w.words)), words[0]).shown
            for number, words in sorted(mentions.items())
        }

    def surfaces(self, lexicon: Lexicon) -> dict[tuple[str, ...], int]:
        """Words that mention one entity and nothing else: capitalised, or unknown.

        Unknown ones in the model's own spelling, too.
        """
        owners: dict[tuple[str, ...], set[int]] = {}
        for word in mentions_in(self.sentences):
            if _is_pronoun(word.words):
                continue
            first, written = word.words[0], tuple(word.words)
            unknown = first not in lexicon
            spellings = {written} if unknown or first[0].isupper() else set()
            if unknown:
                spellings.add(_spelled(written, lexicon))
            for words in spellings:
                owners.setdefault(words, set()).add(int(word.token))
        return {words: next(iter(owner)) for words, owner in owners.items() if len(owner) == 1}


def tokens_of(
    sentence: str,
    names: Mapping[int, str],
    surfaces: Mapping[tuple[str, ...], int],
    lexicon: Lexicon,
) -> list[Token]:
    """The tokens of a sentence about a text whose entities are known; a gap stays [].

    [3] is the entity the text itself calls [3] (inline markup), else entity 3.
    """

    def entity(words: Sequence[str]) -> int | None:
        found = surfaces.get(tuple(words))
        return surfaces.get(_spelled(words, lexicon)) if found is None else found

    numbers = {name: number for number, name in names.items()}
    longest = max(map(len, surfaces), default=0)
    words, tokens = _WORD.findall(sentence), list[Token]()
    while words:
        sizes = range(min(longest, len(words)), 0, -1)
        size = next((n for n in sizes if entity(words[:n]) is not None), 1)
        if (mentioned := entity(words[:size])) is not None:
            tokens.append(mentioned)
        elif words[0][1:-1].isdecimal() and words[0][0] == "[":
            tokens.append(numbers.get(words[0], int(words[0][1:-1])))
        else:
            tokens.append(words[0])
        words = words[size:]
    return tokens


def mentions_in(sentences: Words) -> Iterable[Word]:
    """The words that are mentions, in reading order."""
    return (word for sentence in sentences for word in sentence if isinstance(word.token, int))


def _spelled(words: Sequence[str], lexicon: Lexicon) -> tuple[str, ...]:
    return tuple(map(lexicon.spelled, words))


def _is_pronoun(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0].lower() in PRONOUNS
