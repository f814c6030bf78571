"""CoNLL-U with `Entity=` in the last column: CorefUD, GUM and OntoGUM.

    # newdoc id = GUM_bio_hadid
    # global.Entity = eid-etype-head-other
    1   Zaha    ...   Entity=(e1-person-1-
    2   Hadid   ...   Entity=e1)

The header names the fields between the hyphens; the one called `eid` or `GRP` is the chain. A
mention in pieces writes `e1[1/2]` ... `e1[2/2]`: it is represented by its longest piece, the
words of the others stay in the text. Words are the syntactic words: the line of a multi-word
token is passed over, and so is an empty node, which has no words to replace. Mentions may cross
here: CorefUD allows it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from dntm.corpus.brackets import Brackets, split_brackets
from dntm.corpus.document import Document, Mention
from dntm.corpus.source import Block, numbered_lines

_NEWDOC = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(?P<name>.*\S))?\s*$")
_HEADER = re.compile(r"#\s*global\.Entity\s*=\s*(?P<fields>\S+)")
_BRACKET = re.compile(r"\((?P<single>[^()]+)\)|\((?P<open>[^()]+)|(?P<close>[^()]+)\)")
_PIECE = re.compile(r"(?P<chain>[^\[\]]+)(?:\[(?P<number>\d+)/(?P<count>\d+)\])?$")
_WORD_ID = re.compile(r"(?P<word>\d+)$|\d+-\d+$|\d+\.\d+$")
_COLUMNS = 10


def blocks(path: Path) -> Iterator[Block]:
    """One block a `# newdoc`; a file without one is a single document."""
    lines: list[bytes] = []
    first, header = 1, ""
    for number, line in numbered_lines(path):
        text = line.decode(errors="replace") if line.startswith(b"#") else ""
        if _NEWDOC.match(text):
            if _is_document(lines):
                yield Block(str(path), first, lines, header=header)
                header = _header(lines) or header
                lines = []
            first = first if lines else number
        lines.append(line)
    if _is_document(lines):
        yield Block(str(path), first, lines, header=header)


def _is_document(lines: list[bytes]) -> bool:
    """Whether it has a `# newdoc` or words: not only comments before the first document."""
    return any(
        not line.startswith(b"#") or _NEWDOC.match(line.decode(errors="replace"))
        for line in lines
        if line.strip()
    )


def _header(lines: list[bytes]) -> str:
    """The last `# global.Entity` of the lines: it holds for the rest of the file."""
    found = [line.decode(errors="replace") for line in lines if line.startswith(b"#")]
    return next((line for line in reversed(found) if _HEADER.match(line)), "")


def parse(block: Block) -> Document:
    """Read one document."""
    state = _State(name=block.label or Path(block.path).stem, line=block.first_line)
    number = block.first_line
    for number, line in chain([(block.first_line, block.header)], block.text_lines()):
        try:
            if line.startswith("#"):
                state.read_comment(line)
            elif line.strip():
                state.read_word(line.split("\t"))
            else:
                state.end_sentence()
        except ValueError as error:
            raise block.error(number, str(error)) from None
    try:
        state.end_sentence()
        if not state.sentences:
            raise ValueError("an empty document, expected words")
        return Document(name=state.name, sentences=state.sentences, chains=state.chains())
    except ValueError as error:
        raise block.error(number, str(error)) from None


@dataclass
class _State:
    """What has been read of a document so far."""

    name: str
    line: int
    chain_field: int = 0
    sentences: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    brackets: Brackets = field(default_factory=lambda: Brackets(allow_crossing=True))

    def read_comment(self, line: str) -> None:
        if match := _NEWDOC.match(line):
            self.name = match["name"] or f"{self.name}:{self.line}"
        elif match := _HEADER.match(line):
            fields = match["fields"].split("-")
            known = [i for i, name in enumerate(fields) if name in ("eid", "GRP")]
            if not known:
                raise ValueError(f"global.Entity {match['fields']!r}, expected a field eid or GRP")
            self.chain_field = known[0]

    def read_word(self, columns: list[str]) -> None:
        if len(columns) != _COLUMNS:
            raise ValueError(f"{len(columns)} columns between tabs, expected {_COLUMNS}")
        identifier = _WORD_ID.match(columns[0])
        if not identifier:
            raise ValueError(f"word number {columns[0]!r}, expected 3, 3-4 or 3.1")
        has_word = identifier["word"] is not None
        if has_word and identifier["word"] != str(len(self.words) + 1):
            raise ValueError(f"word number {columns[0]}, expected {len(self.words) + 1}")
        start = len(self.words)
        if has_word:
            self.words.append(columns[1])
        for attribute in columns[9].split("|"):
            if attribute.startswith("Entity="):
                self._read_entity(attribute.removeprefix("Entity="), start)

    def _read_entity(self, cell: str, start: int) -> None:
        found = split_brackets(cell, _BRACKET, "(e1-person(e2)e3)")
        chains = [(self._piece(opening), self._piece(closing)) for opening, closing in found]
        self.brackets.read(chains, len(self.sentences), start, len(self.words))

    def _piece(self, text: str) -> str:
        """The chain of a bracket, with `[1/2]` where it is one piece of a mention."""
        fields = text.split("-")
        return fields[self.chain_field] if len(fields) > self.chain_field else fields[0]

    def end_sentence(self) -> None:
        self.brackets.end_sentence()
        if self.words:
            self.sentences.append(self.words)
            self.words = []

    def chains(self) -> list[list[Mention]]:
        """Chains in order of appearance, each mention in pieces as its longest one."""
        whole: dict[str, list[Mention]] = {}
        pieces: dict[tuple[str, str], dict[str, list[Mention]]] = {}
        for label, spans in self.brackets.chains.items():
            match = _PIECE.match(label)
            if not match:
                raise ValueError(f"entity {label!r}, expected a name such as e1 or e1[1/2]")
            whole.setdefault(match["chain"], [])
            if match["number"]:
                key = (match["chain"], match["count"])
                pieces.setdefault(key, {})[match["number"]] = spans
            else:
                whole[match["chain"]].extend(spans)
        for (entity, count), found in pieces.items():
            whole[entity].extend(_longest(entity, count, found))
        with_words = [[m for m in spans if m.end > m.start] for spans in whole.values()]
        return [sorted(mentions) for mentions in with_words if mentions]


def _longest(entity: str, count: str, pieces: dict[str, list[Mention]]) -> list[Mention]:
    """One piece for each mention that was written in `count` pieces."""
    if str(len(pieces)) != count or len({len(spans) for spans in pieces.values()}) != 1:
        raise ValueError(f"mentions of {entity} in {count} pieces, expected as many of each")
    return [
        max(mention, key=lambda piece: piece.end - piece.start)
        for mention in zip(*pieces.values(), strict=True)
    ]
