r"""Plain text: one regular expression for words, one for the ends of sentences.

Words follow the habits of the annotated corpora (OntoNotes, GUM, LitBank), so that a model trained
on those reads raw text in the same tokens:

- letters stay together; a hyphen, a slash or any other sign is a word of its own;
- a clitic is cut off: do|n't, Mary|'s, they|'ll;
- numbers keep inner points and commas (3.14, 10,000); initials and abbreviations keep their point
  (U.S., Mr., e.g.); dots in a row are one word (...);
- with inline markup, [3] is one word and a mention of entity 3.

A sentence ends at . ! ? or ... (and the quotes and brackets closed right after it) where white
space and a capital, a digit or an opening quote follow, except after an abbreviation that is never
last (Mr.) or a single initial (J. Smith). A paragraph always ends a sentence.
"""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from dntm.corpus.document import Document, Mention
from dntm.corpus.source import Block, numbered_lines

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
WORD = re.compile("|".join(WORD_RULES))
INLINE_WORD = re.compile("|".join((r"\[\d{1,6}\]", *WORD_RULES)))
_INLINE_ENTITY = re.compile(r"\[(\d+)\]$")
_SENTENCE_END = re.compile(  # linear in a run of marks: it is tried once and never given back
    r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+(\s++)(?=["'“‘«(\[]*+[^\W_a-zß-öø-ÿ])"""
)
_NEVER_LAST = re.compile(rf"(?:\b(?:{'|'.join(TITLES)}|e\.g|i\.e)|\b[A-HJ-Z])\.$")

Documents = Literal["file", "blank-line"]


def sentences_of(paragraph: str) -> list[str]:
    """Cut a paragraph where sentences end."""
    found, start = [], 0
    for match in _SENTENCE_END.finditer(paragraph):
        if _NEVER_LAST.search(paragraph, match.start() - 12, match.start(1)):
            continue
        found.append(paragraph[start : match.start(1)])
        start = match.end(1)
    found.append(paragraph[start:])
    return found


LARGEST_DOCUMENT = 8_000_000
"""Bytes after which a file goes on as a further document, so that memory stays flat."""


def blocks(path: Path, documents: Documents = "file") -> Iterator[Block]:
    """One block a file, or one a run of lines between empty lines.

    A file of more than eight million bytes is cut at the next empty line (at the latest after
    twice as many bytes) into several documents.
    """
    lines: list[bytes] = []
    document, first, size, part = 1, 1, 0, 0
    for number, line in numbered_lines(path):
        empty = not line.strip()
        ends = empty and documents == "blank-line"
        full = size > LARGEST_DOCUMENT and (empty or size > 2 * LARGEST_DOCUMENT)
        if lines and (ends or full):
            part += bool(part or not ends)
            yield Block(str(path), first, lines, document=document, part=part)
            lines, size = [], 0
        if ends:
            part = 0
        if not lines and not empty:
            first = number
            document = document if part else number
        if lines or not empty:
            lines.append(line)
            size += len(line)
    if lines:
        yield Block(str(path), first, lines, document=document, part=part + bool(part))


def parse(block: Block, documents: Documents = "file", *, inline: bool = False) -> Document:
    """Read one document; with `inline`, words such as [3] are mentions of entity 3.

    Between empty lines every line is a paragraph; in a whole file lines are taken as wrapped and
    an empty line parts paragraphs.
    """
    name = block.label or Path(block.path).name
    sentences: list[list[str]] = []
    pattern = INLINE_WORD if inline else WORD
    for paragraph in _paragraphs(block, documents):
        for sentence in sentences_of(paragraph):
            words = pattern.findall(sentence)
            if words:
                sentences.append(words)
    if not sentences:
        raise block.error(block.first_line, "an empty document, expected words")
    return Document(
        name=name if documents == "file" else f"{name}:{block.document}",
        part=str(block.part) if block.part else "",
        sentences=sentences,
        chains=_inline_chains(sentences) if inline else (),
    )


def document_of(text: str, name: str = "text", *, inline: bool = False) -> Document:
    """Read a text that is already in memory, paragraphs parted by empty lines."""
    lines = [f"{line}\n".encode() for line in text.split("\n")]
    return parse(Block(name, 1, lines), inline=inline)


def _paragraphs(block: Block, documents: Documents) -> Iterator[str]:
    pending: list[str] = []
    for _, line in block.text_lines():
        text = line if line.isascii() else unicodedata.normalize("NFC", line)
        if documents == "blank-line":
            yield text
        elif text.strip():
            pending.append(text)
        elif pending:
            yield " ".join(pending)
            pending = []
    if pending:
        yield " ".join(pending)


def _inline_chains(sentences: list[list[str]]) -> list[list[Mention]]:
    chains: dict[int, list[Mention]] = {}
    for s, sentence in enumerate(sentences):
        for w, word in enumerate(sentence):
            if match := _INLINE_ENTITY.match(word):
                chains.setdefault(int(match[1]), []).append(Mention(s, w, w + 1))
    return list(chains.values())
