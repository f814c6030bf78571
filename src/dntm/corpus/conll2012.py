"""CoNLL-2012 files: OntoNotes' `*_gold_conll`, and LitBank's variant with tabs.

    #begin document (nw/wsj/24/wsj_2400); part 000
    nw/wsj/24/wsj_2400  0  0  Mary  NNP  ...  (PERSON*  ...  (12
    ...
    #end document

The word is the fourth column, the named entity the eleventh, coreference the last. A line has at
least twelve columns; those between the eleventh and the last (predicates) vary by sentence.
LitBank parts its columns with tabs and leaves the last one empty where there is no mention; its
annotators let a few mentions cross (`my [host` ... `hostess]`), which OntoNotes never does: there,
and only there, crossing brackets are accepted.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from dntm.corpus.brackets import Brackets, split_brackets
from dntm.corpus.document import Document, Mention
from dntm.corpus.source import Block, numbered_lines

_BEGIN = re.compile(r"#begin document \(?(?P<name>.+?)\)?(?:; part (?P<part>\d+))?\s*$")
_BRACKET = re.compile(r"\((?P<single>\d+)\)|\((?P<open>\d+)|(?P<close>\d+)\)|\|")
_NAMED = re.compile(r"(?P<open>(?:\([A-Z_]+)*)\*?(?P<close>\)*)")
_NONE = ("", "-", "_", "*")
_WORD, _NAMED_ENTITY, _LEAST_COLUMNS = 3, 10, 12
_ESCAPED = {"/.": ".", "/?": "?", "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}
_ESCAPED |= {"-LCB-": "{", "-RCB-": "}"}


def blocks(path: Path) -> Iterator[Block]:
    """One block a `#begin document`, to the next one or the end of the file."""
    lines: list[bytes] = []
    first = 1
    for number, line in numbered_lines(path):
        if line.startswith(b"#begin document"):
            if lines:
                yield Block(str(path), first, lines)
            lines, first = [], number
        if lines or line.strip():
            lines.append(line)
            first = first if len(lines) > 1 else number
    if lines:
        yield Block(str(path), first, lines)


def parse(block: Block) -> Document:
    """Read one document part."""
    brackets, named = Brackets(allow_crossing=False), _NamedEntities()
    sentences: list[list[str]] = []
    words: list[str] = []
    name = part = ""
    number, width, ended = block.first_line, 0, False
    for number, line in block.text_lines():
        try:
            if line.startswith("#begin document"):
                name, part = _begin(line)
            elif line.startswith("#end document"):
                ended = True
            elif line.startswith("#"):
                continue
            elif not line.strip():
                _end_sentence(brackets, named, sentences, words)
                words = []
            else:
                if not name or ended:
                    raise ValueError("a word outside any document, expected '#begin document'")
                brackets.allow_crossing = "\t" in line
                columns = line.split("\t") if "\t" in line else line.split()
                width = width if words else len(columns)
                _check_columns(columns, width)
                if columns[-1] not in _NONE:
                    found = split_brackets(columns[-1], _BRACKET, "(12(13)|6)")
                    brackets.read(found, len(sentences), len(words), len(words) + 1)
                named.read(columns[_NAMED_ENTITY], len(sentences), len(words))
                words.append(_ESCAPED.get(columns[_WORD], columns[_WORD]))
        except ValueError as error:
            raise block.error(number, str(error)) from None
    try:
        _end_sentence(brackets, named, sentences, words)
        if not ended:
            raise ValueError("the document does not end, expected '#end document'")
        if not sentences:
            raise ValueError("an empty document, expected words")
    except ValueError as error:
        raise block.error(number, str(error)) from None
    return Document(
        name=name,
        part=part,
        sentences=sentences,
        chains=[sorted(mentions) for mentions in brackets.chains.values()],
        named_entities=named.mentions,
    )


def _begin(line: str) -> tuple[str, str]:
    match = _BEGIN.match(line)
    if not match:
        raise ValueError(f"found {line!r}, expected '#begin document (NAME); part N'")
    return match["name"], (match["part"].lstrip("0") or "0") if match["part"] else ""


def _check_columns(columns: list[str], width: int) -> None:
    if len(columns) < _LEAST_COLUMNS:
        raise ValueError(f"{len(columns)} columns, expected at least {_LEAST_COLUMNS}")
    if len(columns) != width:
        raise ValueError(f"{len(columns)} columns, expected {width} as in the first line")


def _end_sentence(
    brackets: Brackets, named: "_NamedEntities", sentences: list[list[str]], words: list[str]
) -> None:
    brackets.end_sentence()
    named.end_sentence()
    if words:
        sentences.append(words)


class _NamedEntities:
    """The named-entity column: `(PERSON*` opens, `*)` closes, `(GPE)` does both."""

    def __init__(self) -> None:
        self.mentions: list[Mention] = []
        self._open: list[int] = []

    def read(self, cell: str, sentence: int, word: int) -> None:
        if cell in _NONE:
            return
        match = _NAMED.fullmatch(cell)
        if not match or len(match["close"]) > len(self._open) + match["open"].count("("):
            raise ValueError(f"named entity {cell!r}, expected such as '(PERSON*', '*' or '*)'")
        self._open += [word] * match["open"].count("(")
        for _ in match["close"]:
            self.mentions.append(Mention(sentence, self._open.pop(), word + 1))

    def end_sentence(self) -> None:
        if self._open:
            raise ValueError("a named entity is still open at the sentence's end, expected '*)'")
