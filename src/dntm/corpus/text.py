r"""Plain text: paragraphs, sentences and words, with the position of every word in the text.

Words follow the conventions of the annotated corpora (OntoNotes, GUM, LitBank), so that a model
trained on those reads plain text in the same tokens:

- letters stay together, with the digits after them (H5N1); hyphens, slashes and all other signs are
  separate words;
- clitics are separated: do|n't, Mary|'s, they|'ll; other apostrophes inside names stay (O'Neill);
- numbers keep inner periods and commas (3.14, 10,000); initials and abbreviations keep their period
  (U.S., Ph.D., Mr., No. before a number); several periods are one word (...);
- with inline markup, [3] is one word and a mention of entity 3.

A sentence ends at . ! ? or ... and any closing quotes, brackets and references [3], if whitespace
and a capital, a digit, an opening quote or an emoji follow. It does not end after a title (Mr.),
after an item number (2.1.), or after a quotation that precedes a name and a verb of speech. After
other abbreviations (Jan., U.S., J.) it ends only before a capitalized pronoun or closed-class word.
The end of a paragraph always ends a sentence.

A word is `text[start:end]`. For lookup, letters and their accents are composed (NFC), and invisible
characters (soft hyphen, byte order mark, variation selector) are removed; they belong to the span
of the word next to them. No word contains whitespace.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from dntm.corpus.document import Block, Document, EmptyInputError, Mention, Span, numbered_lines
from dntm.settings import read_yaml

_ENGLISH = read_yaml(Path(__file__).with_name("english.yaml"))
_NEVER_LAST, _ABBREVIATIONS, _NUMBERED = (
    "|".join(_ENGLISH[kind].split()) for kind in ("never_last", "abbreviations", "numbered")
)
_STARTERS = frozenset(f"{_ENGLISH['pronouns']} {_ENGLISH['closed']}".title().split())
"""Capitalized words that begin a new sentence after an abbreviation or a quotation."""

WORD_RULES = (
    r"[A-Za-z]++(?![\w.'’])",  # most words: no rule below can apply to them
    r"[,;:]",
    rf"(?:{_NUMBERED})\.(?=\s*+\d)",  # No. 5
    r"(?:[^\W\d_]\.){2,}",  # U.S.  e.g.
    r"(?:Ph|LL|Ed|Psy)\.D\.|[BM]\.Sc\.",  # Ph.D.
    rf"(?:{_NEVER_LAST}|{_ABBREVIATIONS}|etc)\.",  # Mr.
    r"[A-HJ-Z]\.(?=\s+[A-Z])|[a-z]\.(?=\s*+\d)",  # J. Smith  p. 5
    r"[ODLdl]['’][A-Z][^\W\d_]++",  # O'Neill
    r"[^\W\d_]+(?=n['’]t\b|N['’]T\b)",  # do|n't
    r"n['’]t\b|N['’]T\b",
    r"['’](?:s|re|ve|ll|d|m|S|RE|VE|LL|D|M)\b",  # Mary|'s
    r"\d++(?:[.,]\d++)*+(?:s|st|nd|rd|th)?\b",  # 10,000  1990s  19th
    r"\d+(?:[.,]\d+)*",  # 3.5|kg
    r"(?<!\d)[^\W\d_]+\d[^\W_]*+",  # H5N1
    r"[^\W\d_]+",
    r"\.{2,}",
    r"-{2,}",
    r"\S",
)
"""A word matches the first of these expressions that applies. All are linear in the text."""
WORD = re.compile("|".join(WORD_RULES))
_INLINE_WORD = re.compile("|".join((r"\[\d{1,6}\]", *WORD_RULES)))
_INLINE_ENTITY = re.compile(r"\[(\d+)\]$")
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_MARKS = r"""(?<![.!?…])[.!?…]++(?:["'”’»)\]]|\s»)*+"""  # possessive: linear in a run of marks
_REFERENCES = r"(?:\s?+\[\d{1,3}\])*+"  # [3] belongs to the sentence before it
_BEGINNING = rf"""(?:["'“‘(\[]|«\s?+)*+([^\W_a-zß-öø-ÿ][^\W\d_]*+|[{_EMOJI}])"""
_SENTENCE_END = re.compile(rf"{_MARKS}{_REFERENCES}(\s++)(?={_BEGINNING})")
_INLINE_SENTENCE_END = re.compile(rf"{_MARKS}(\s++)(?={_BEGINNING})")
_ABBREVIATION = re.compile(
    rf"(?:\b(?:({_NEVER_LAST}|e\.g|i\.e)|{_ABBREVIATIONS})|(?<![\w'’])[A-HJ-Za-z])\.$"
)
_BEFORE_NUMBER = re.compile(rf"\b(?:{_NUMBERED})\.$")
_ITEM = re.compile(r"[\W_]*+(?:\d{1,3}\.)+")
_SPEECH = re.compile(rf"(?:[A-Z][\w.'’-]*+\s++){{1,3}}(?:{'|'.join(_ENGLISH['speech'].split())})\b")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*+\n\s*+")
_LINE = re.compile(r"[^\n]++")

Documents = Literal["file", "blank-line"]
"""One document per file with empty lines between paragraphs; or one document between empty lines
with one paragraph per line."""


def sentence_bounds(paragraph: str, *, inline: bool = False) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of a paragraph."""
    start = 0
    for match in (_INLINE_SENTENCE_END if inline else _SENTENCE_END).finditer(paragraph):
        if _is_end(paragraph, start, match):
            yield start, match.start(1)
            start = match.end(1)
    yield start, len(paragraph)


def _is_end(paragraph: str, start: int, match: re.Match[str]) -> bool:
    """Whether the sentence from `start` ends at these marks."""
    before, following = match.start(1), match[2]
    if following[0].islower():
        return False
    if paragraph[before - 1] in "\"'”’" and (following == "I" or following not in _STARTERS):
        return not _SPEECH.match(paragraph, match.end(1))
    if shortened := _ABBREVIATION.search(paragraph, match.start() - 12, before):
        is_initial = paragraph.startswith(".", match.end(2))
        return following in _STARTERS and not shortened[1] and not is_initial
    numbered = following.isdecimal() and _BEFORE_NUMBER.search(paragraph, match.start() - 6, before)
    return not numbered and not _ITEM.fullmatch(paragraph, start, before)


class Sentence(NamedTuple):
    """The words of a sentence as they are looked up, and their characters in the text."""

    words: list[str]
    spans: list[Span]
    paragraph: int
    """From 0."""


def sentences_in(
    text: str, documents: Documents = "file", *, inline: bool = False, spans: bool = True
) -> Iterator[Sentence]:
    """The sentences of a text that contain a word; omitting `spans` is faster."""
    pattern = _INLINE_WORD if inline else WORD
    for number, (begin, end) in enumerate(_paragraphs(text, documents)):
        letters, forms, starts = _letters(text[begin:end])
        for start, stop in sentence_bounds(letters, inline=inline):
            words, places = pattern.findall(letters, start, stop), list[Span]()
            if spans or starts is not None:
                found = [match.span() for match in pattern.finditer(letters, start, stop)]
                words = ["".join(forms[a:b]) for a, b in found]
                at = starts or range(len(letters) + 1)
                places = [Span(begin + at[a], begin + at[b]) for a, b in found]
            if words:
                yield Sentence(words, places, number)


def _paragraphs(text: str, documents: Documents) -> Iterator[tuple[int, int]]:
    """Start and end of each paragraph that is not empty."""
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


_EXTENDING = "\xad\u0300-\u200f\u202a-\u202f\u205f-\U0010ffff"
"""Characters that may extend, or compose with, the letter before them."""
_RUN = re.compile(f"[^{_EXTENDING}]++|[{_EXTENDING}]")
_INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_MOST_ACCENTS = 30
"""Accents composed with one letter, as in Unicode's stream-safe format: composing is quadratic."""


def _letters(text: str) -> tuple[str, Sequence[str], list[int] | None]:
    """One base character per letter, each letter's NFC form, and the start of each letter.

    A letter includes its accents and the invisible characters after it (after whitespace: before
    it). The starts are None if every character of the text is a letter of its own.
    """
    if text.isascii() or not re.search(f"[{_EXTENDING}]", text):
        return text, text, None
    forms: list[str] = []
    starts: list[int] = []
    invisible: int | None = None
    accents = 0
    for match in _RUN.finditer(text):
        run, place = match[0], match.start()
        after_letter = bool(forms) and not forms[-1][-1].isspace()
        if len(run) == 1 and _INVISIBLE.match(run):
            invisible = place if invisible is None and not after_letter else invisible
            continue
        if after_letter and invisible is None and accents < _MOST_ACCENTS and _extends(run):
            forms[-1] += run
            accents += 1
        else:
            forms += run
            starts += range(place, match.end())
            if invisible is not None and not run[0].isspace():
                starts[-len(run)] = invisible
            accents = 0
        invisible = None
    starts.append(len(text))
    composed = [f if f.isascii() else unicodedata.normalize("NFC", f) for f in forms]
    return "".join(form[0] for form in composed), composed, starts


def _extends(character: str) -> bool:
    """Whether it belongs to the letter before it: an accent or the rest of a Hangul syllable."""
    if len(character) > 1 or character.isascii():
        return False
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


LARGEST_PART = 8_000_000
"""Bytes after which a document is divided at an empty line, after twice as many anywhere."""


def blocks(path: Path, documents: Documents = "file") -> Iterator[Block]:
    """One block per file, or per run of lines between empty lines; large ones in parts."""
    lines: list[bytes] = []
    document, first, size, part = 1, 1, 0, 0
    has_text = False
    for number, line in numbered_lines(path):
        empty = not line.strip()
        ends = empty and documents == "blank-line"
        full = size > LARGEST_PART and (empty or size > 2 * LARGEST_PART)
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


def documents_in(path: Path, documents: Documents) -> Iterator[Document]:
    """The documents of a plain text that have at least one word, without word positions."""
    for block in blocks(path, documents):
        with suppress(EmptyInputError):
            yield parse(block, documents, spans=False)


def parse(
    block: Block,
    documents: Documents = "file",
    *,
    inline: bool = False,
    spans: bool = True,
    whole: bool = True,
) -> Document:
    """Read one document; with `inline`, words such as [3] are mentions of entity 3."""
    name = block.label or Path(block.path).name
    text = "\n".join(line for _, line in block.text_lines())
    try:
        document = document_of(text, name, documents, inline=inline, spans=spans, whole=whole)
    except ValueError as error:
        raise EmptyInputError(block.path, block.first_line, str(error)) from None
    part = str(block.part) if block.part else ""
    name = name if documents == "file" else f"{name}:{block.document}"
    return replace(document, name=name, part=part)


def document_of(
    text: str,
    name: str = "text",
    documents: Documents = "file",
    *,
    inline: bool = False,
    spans: bool = True,
    whole: bool = True,
) -> Document:
    """Read a text in memory, or only its first sentence if not `whole`; ValueError if empty."""
    found = sentences_in(text, documents, inline=inline, spans=spans)
    sentences = list(islice(found, None if whole else 1))
    if not sentences:
        raise ValueError("an empty document, expected words")
    words = [sentence.words for sentence in sentences]
    return Document(
        name=name,
        sentences=words,
        chains=_inline_chains(words) if inline else (),
        text=text if spans else "",
        spans=[sentence.spans for sentence in sentences] if spans else (),
        paragraphs=[sentence.paragraph for sentence in sentences] if spans else (),
    )


def _inline_chains(sentences: list[list[str]]) -> list[list[Mention]]:
    chains: dict[int, list[Mention]] = {}
    for s, sentence in enumerate(sentences):
        for w, word in enumerate(sentence):
            if match := _INLINE_ENTITY.match(word):
                chains.setdefault(int(match[1]), []).append(Mention(s, w, w + 1))
    return list(chains.values())


_CLOSING = frozenset({".", ",", ";", ":", "!", "?", "...", "…", ")", "]", "}", "”", "»", "%"})
_OPENING = frozenset({"(", "[", "{", "“", "«", "$", "£", "€", "#"})
_CLITICS = tuple(f"{mark}{end}" for mark in "'’" for end in ("s", "re", "ve", "ll", "d", "m"))
_NOT = ("n't", "n’t")


def as_prose(words: Iterable[str]) -> str:
    """Join words into running text, without spaces around hyphens."""
    written = list(words)
    prose = "".join(s + word for s, word in zip(spaces_before(written), written, strict=True))
    return prose.replace(" - ", "-")


def spaces_before(words: Iterable[str]) -> Iterator[str]:
    """A space or an empty string before each word: none before a point or a clitic, for example."""
    quoted, glued = False, True
    for word in words:
        closes = word in _CLOSING or word.lower() in (*_CLITICS, *_NOT) or (word == '"' and quoted)
        yield "" if closes or glued else " "
        glued = word in _OPENING or (word == '"' and not quoted)
        quoted ^= word == '"'
