r"""Plain text: paragraphs, sentences and tokens, every character of the text accounted for.

Words follow the habits of the annotated corpora (OntoNotes, GUM, LitBank), so that a model trained
on those reads raw text in the same tokens:

- letters stay together; a hyphen, a slash or any other sign is a word of its own;
- a clitic is cut off: do|n't, Mary|'s, they|'ll;
- numbers keep inner points and commas (3.14, 10,000); initials and abbreviations keep their point
  (U.S., Mr., e.g., No. before a number); dots in a row are one word (...);
- with inline markup, [3] is one word and a mention of entity 3.

A sentence ends at . ! ? or ... (and the quotes and brackets closed right after it) where white
space and a capital, a digit, an opening quote or an emoji follow, except after an abbreviation that
is never last (Mr.) or a single initial (J. Smith). A paragraph always ends a sentence.

A token is `text[start:end]`: nothing is taken out of the text. For looking a word up, letters and
their accents are composed (NFC) and characters that nobody sees (a soft hyphen, a byte order mark,
a variation selector) are left out; they belong to the token they stand at. No token spans white
space, so the tokens of a word between white space are that word.

`Rules` 1 are those of datasets built before: no "No." before numbers, no end of a sentence before
an emoji or a French quote, and characters nobody sees are words.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from dntm.corpus.document import Document, Mention, Span
from dntm.corpus.source import LONGEST_LINE, Block, EmptyInputError, numbered_lines

TITLES = (
    *("Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Rev", "Hon", "Messrs", "Mme", "Mlle"),
    *("Gen", "Col", "Capt", "Lt", "Sgt", "Maj", "Gov", "Sen", "Rep", "Adm", "Cmdr", "Supt"),
    *("vs", "Fig", "Figs", "Nos", "Vol", "pp", "cf"),
)
"""Abbreviations after which a sentence never ends."""
_ABBREVIATIONS = "|".join([*TITLES, "Jr", "Sr", "Inc", "Ltd", "Co", "Corp", "etc", "viz", "approx"])

WORD_RULES = (
    r"[A-Za-z]++(?![\w.'’])",  # most words: nothing below can apply to them
    r"[,;:]",
    r"(?:[^\W\d_]\.){2,}",  # U.S.  e.g.
    rf"(?:{_ABBREVIATIONS})\.",  # Mr.
    r"[A-HJ-Z]\.(?=\s+[A-Z])",  # J. Smith
    r"[^\W\d_]+(?=n['’]t\b)",  # do|n't
    r"n['’]t\b",
    r"['’](?:s|re|ve|ll|d|m|S|RE|VE|LL|D|M)\b",  # Mary|'s
    r"\d+(?:[.,]\d+)*(?:s|st|nd|rd|th)?\b",  # 10,000  1990s  19th
    r"\d+",
    r"[^\W\d_]+",
    r"\.{2,}",
    r"-{2,}",
    r"\S",
)
"""What a word is: the first of these that applies."""
_NUMBER_SIGN = r"[Nn]os?\.(?=\s*+\d)"  # No. 5
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_SENTENCE_END = {  # tried once and never given back: linear in a run of marks
    1: r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+(\s++)(?=["'“‘«(\[]*+[^\W_a-zß-öø-ÿ])""",
    2: r"""(?<![.!?…])[.!?…]++(?:["'”’»)\]]|\s»)*+(\s++)"""
    rf"""(?=(?:["'“‘(\[]|«\s?+)*+([^\W_a-zß-öø-ÿ]|[{_EMOJI}]))""",
}
_NEVER_LAST = re.compile(rf"(?:\b(?:{'|'.join(TITLES)}|e\.g|i\.e)|\b[A-HJ-Z])\.$")
_NUMBERED = re.compile(r"\b[Nn]os?\.$")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*+\n\s*+")
_LINE = re.compile(r"[^\n]++")
_INLINE_ENTITY = re.compile(r"\[(\d+)\]$")

Version = Literal[1, 2]
VERSION: Version = 2
"""The rules of today, which datasets and checkpoints name."""
Documents = Literal["file", "blank-line"]
"""Paragraphs between empty lines, or a paragraph a line."""


class Rules:
    """One version of the rules; every expression is linear in the text."""

    def __init__(self, version: Version) -> None:
        words = (_NUMBER_SIGN, *WORD_RULES) if version > 1 else WORD_RULES
        self.version = version
        self.word = re.compile("|".join(words))
        self.inline_word = re.compile("|".join((r"\[\d{1,6}\]", *words)))
        self.sentence_end = re.compile(_SENTENCE_END[version])

    def sentences(self, paragraph: str) -> Iterator[tuple[int, int]]:
        """Where the sentences of a paragraph begin and end."""
        start = 0
        for match in self.sentence_end.finditer(paragraph):
            before = match.start(1)
            if _NEVER_LAST.search(paragraph, match.start() - 12, before):
                continue
            if self.version > 1:
                following = match[2]
                numbered = _NUMBERED.search(paragraph, match.start() - 4, before)
                if following.islower() or (following.isdecimal() and numbered):
                    continue
            yield start, before
            start = match.end(1)
        yield start, len(paragraph)


RULES: dict[Version, Rules] = {1: Rules(1), 2: Rules(2)}
WORD = RULES[VERSION].word


def sentences_of(paragraph: str) -> list[str]:
    """Cut a paragraph where sentences end."""
    return [paragraph[start:end] for start, end in RULES[VERSION].sentences(paragraph)]


class Sentence(NamedTuple):
    """Words for looking up, and where each stands in the text."""

    words: list[str]
    spans: list[Span]
    paragraph: int
    """From 0."""


def sentences_in(
    text: str,
    documents: Documents = "file",
    *,
    inline: bool = False,
    version: Version = VERSION,
    places: bool = True,
) -> Iterator[Sentence]:
    """The sentences of a text that have a word; without `places` their spans are not looked for."""
    rules = RULES[version]
    pattern = rules.inline_word if inline else rules.word
    for number, (begin, end) in enumerate(_paragraphs(text, documents)):
        letters, forms, starts = _letters(text[begin:end], version)
        for start, stop in rules.sentences(letters):
            if not places and starts is None:
                if words := pattern.findall(letters, start, stop):
                    yield Sentence(words, [], number)
                continue
            spans = [match.span() for match in pattern.finditer(letters, start, stop)]
            if spans and starts is None:
                words = [letters[a:b] for a, b in spans]
                yield Sentence(words, [Span(begin + a, begin + b) for a, b in spans], number)
            elif spans and starts is not None:
                words = ["".join(forms[a:b]) for a, b in spans]
                found = [Span(begin + starts[a], begin + starts[b]) for a, b in spans]
                yield Sentence(words, found, number)


def _paragraphs(text: str, documents: Documents) -> Iterator[tuple[int, int]]:
    """Where the paragraphs that are not empty begin and end."""
    if documents == "blank-line":
        for line in _LINE.finditer(text):
            if not line[0].isspace():
                yield line.span()
        return
    start = 0
    for match in _PARAGRAPH_END.finditer(text):
        if start < match.start():
            yield start, match.start()
        start = match.end()
    if start < len(text):
        yield start, len(text)


_ODD = "\xad\u0300-\u200f\u202a-\u202f\u205f-\U0010ffff"
"""All that may belong to the letter before it, or compose with it."""
_PIECE = re.compile(f"[^{_ODD}]++|[{_ODD}]")
_UNSEEN = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_JOINER = "\u200d"
_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_ACCENTS = 30
"""How many accents of a letter are composed at once, as in Unicode's stream-safe text: composing is
quadratic in them."""


def _letters(text: str, version: Version) -> tuple[str, Sequence[str], list[int] | None]:
    """What the rules see, a character a letter; each letter as it is looked up; where it begins.

    A letter has its accents with it, and the characters nobody sees that stand behind it (after
    white space: before it). The last value is None where each character is a letter of its own.
    """
    if text.isascii() or not re.search(f"[{_ODD}]", text):
        return text, text, None
    forms: list[str] = []
    starts: list[int] = []
    unseen: int | None = None
    accents = joined = 0
    for match in _PIECE.finditer(text):
        piece, place = match[0], match.start()
        after_letter = bool(forms) and not forms[-1][-1].isspace()
        if len(piece) == 1 and version > 1 and _UNSEEN.match(piece):
            joined = after_letter and piece == _JOINER
            unseen = place if unseen is None and not after_letter else unseen
            continue
        if after_letter and unseen is None and accents < _ACCENTS and _extends(piece):
            forms[-1] += piece
            accents += 1
        elif joined and not piece[0].isalnum() and not piece[0].isspace():
            forms[-1] += piece[0]
            forms += piece[1:]
            starts += range(place + 1, match.end())
        else:
            forms += piece
            starts += range(place, match.end())
            if unseen is not None and not piece[0].isspace():
                starts[-len(piece)] = unseen
            accents = 0
        unseen, joined = None, 0
    starts.append(len(text))
    composed = [f if f.isascii() else unicodedata.normalize("NFC", f) for f in forms]
    if version == 1:
        letters = "".join(composed)
        return letters, letters, None
    return "".join(form[0] for form in composed), composed, starts


def _extends(character: str) -> bool:
    """Whether it belongs to the letter before it: an accent, the rest of a Hangul syllable."""
    if len(character) > 1 or character.isascii():
        return False
    marks = unicodedata.category(character)[0] == "M"
    return marks or "\u1160" <= character <= "\u11ff" or character in _TONES


LARGEST_DOCUMENT = 8_000_000
"""Bytes after which a file goes on as a further document, so that memory stays flat."""


def blocks(
    path: Path, documents: Documents = "file", longest: int = LONGEST_LINE
) -> Iterator[Block]:
    """One block a file, or one a run of lines between empty lines.

    A file of more than eight million bytes is cut at the next empty line (at the latest after
    twice as many bytes) into several documents.
    """
    lines: list[bytes] = []
    document, first, size, part = 1, 1, 0, 0
    has_text = False
    for number, line in numbered_lines(path, longest):
        empty = not line.strip()
        ends = empty and documents == "blank-line"
        full = size > LARGEST_DOCUMENT and (empty or size > 2 * LARGEST_DOCUMENT)
        if has_text and (ends or full):
            part += bool(part or not ends)
            yield Block(str(path), first, lines, document=document, part=part)
            lines, size, has_text = [], 0, False
        if ends:
            lines, part = [], 0
            continue
        if not lines:
            first = number
            document = document if part else number
        lines.append(line)
        size += len(line)
        has_text |= not empty
    if has_text:
        yield Block(str(path), first, lines, document=document, part=part + bool(part))


def parse(
    block: Block,
    documents: Documents = "file",
    *,
    inline: bool = False,
    version: Version = VERSION,
    places: bool = True,
) -> Document:
    """Read one document; with `inline`, words such as [3] are mentions of entity 3.

    Between empty lines every line is a paragraph; in a whole file lines are taken as wrapped and
    an empty line parts paragraphs.
    """
    name = block.label or Path(block.path).name
    text = "\n".join(line for _, line in block.text_lines())
    found = list(sentences_in(text, documents, inline=inline, version=version, places=places))
    if not found:
        raise EmptyInputError(block.path, block.first_line, "an empty document, expected words")
    sentences = [sentence.words for sentence in found]
    return Document(
        name=name if documents == "file" else f"{name}:{block.document}",
        part=str(block.part) if block.part else "",
        sentences=sentences,
        chains=_inline_chains(sentences) if inline else (),
        text=text if places else "",
        spans=[sentence.spans for sentence in found] if places else (),
        paragraphs=[sentence.paragraph for sentence in found] if places else (),
    )


def document_of(text: str, name: str = "text", *, inline: bool = False) -> Document:
    """Read a text that is already in memory, paragraphs parted by empty lines."""
    found = list(sentences_in(text, inline=inline))
    if not found:
        raise ValueError("the text is empty, expected at least one word")
    sentences = [sentence.words for sentence in found]
    return Document(
        name=name,
        sentences=sentences,
        chains=_inline_chains(sentences) if inline else (),
        text=text,
        spans=[sentence.spans for sentence in found],
        paragraphs=[sentence.paragraph for sentence in found],
    )


def _inline_chains(sentences: list[list[str]]) -> list[list[Mention]]:
    chains: dict[int, list[Mention]] = {}
    for s, sentence in enumerate(sentences):
        for w, word in enumerate(sentence):
            if match := _INLINE_ENTITY.match(word):
                chains.setdefault(int(match[1]), []).append(Mention(s, w, w + 1))
    return list(chains.values())
