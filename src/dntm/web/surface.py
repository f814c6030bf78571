"""The text as its reader wrote it: raw sentences, paragraphs and the spaces between tokens.

The model reads tokens; a page shows and edits sentences. Both come from the same rules
(`corpus.text`), so sentence i of one is sentence i of the other.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from dntm.corpus.text import sentences_of

_EMPTY_LINES = re.compile(r"\n\s*\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")


@dataclass(frozen=True, slots=True)
class RawSentence:
    """A sentence as it was written, white space made single."""

    text: str
    paragraph: int
    """From zero."""


def raw_sentences(text: str) -> list[RawSentence]:
    """Cut a text into paragraphs at empty lines and these into sentences."""
    plain = _CONTROL.sub(" ", unicodedata.normalize("NFC", text)).replace("\r\n", "\n")
    plain = plain.replace("\r", "\n").strip()
    found: list[RawSentence] = []
    for number, paragraph in enumerate(_EMPTY_LINES.split(plain)):
        sentences = sentences_of(" ".join(paragraph.split()))
        found += [RawSentence(sentence, number) for sentence in sentences if sentence.strip()]
    return found


def joined(sentences: Sequence[RawSentence]) -> str:
    """A text that is cut into these sentences again."""
    paragraphs: dict[int, list[str]] = {}
    for sentence in sentences:
        paragraphs.setdefault(sentence.paragraph, []).append(sentence.text)
    return "\n\n".join(" ".join(parts) for parts in paragraphs.values())


def spaces(sentence: str, words: Sequence[str]) -> list[bool]:
    """Whether white space stands before each word (or words) of a sentence."""
    found, place = [], 0
    for word in words:
        begin = place
        while place < len(sentence) and sentence[place].isspace():
            place += 1
        found.append(place > begin)
        left = sum(not character.isspace() for character in word)
        while left and place < len(sentence):
            left -= not sentence[place].isspace()
            place += 1
    return found
