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
from pathlib import Path

from dntm.corpus.brackets import Brackets
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
    first = 1
    for number, line in numbered_lines(path):
        if line.startswith(b"#") and _NEWDOC.match(line.decode(errors="replace")):
            if any(not kept.startswith(b"#") and kept.strip() for kept in lines):
                yield Block(str(path), first, lines)
            lines, first = [], number
        lines.append(line)
    if any(line.strip() for line in lines):
        yield Block(str(path), first, lines)


def parse(block: Block) -> Document:
    """Read one document."""
    state = _State(name=Path(block.path).stem)
    number = block.first_line
    for number, line in block.text_lines():
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
    chain_field: int = 0
    sentences: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    brackets: Brackets = field(default_factory=lambda: Brackets(allow_crossing=True))

    def read_comment(self, line: str) -> None:
        if (match := _NEWDOC.match(line)) and match["name"]:
            self.name = match["name"]
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
        if has_word and int(identifier["word"]) != len(self.words) + 1:
            raise ValueError(f"word number {columns[0]}, expected {len(self.words) + 1}")
        start = len(self.words)
        if has_word:
            self.words.append(columns[1])
        for attribute in columns[9].split("|"):
            if attribute.startswith("Entity="):
                self._read_entity(attribute.removeprefix("Entity="), start)

    def _read_entity(self, cell: str, start: int) -> None:
        position, closed = 0, []
        for match in _BRACKET.finditer(cell):
            if match.start() != position:
                break
            position = match.end()
            if match["open"] or match["single"]:
                self.brackets.open(self._piece(match["open"] or match["single"]), start)
            if match["close"] or match["single"]:
                closed.append(self._piece(match["close"] or match["single"]))
        self.brackets.close(closed, len(self.sentences), len(self.words))
        if position != len(cell):
            raise ValueError(f"Entity={cell}, expected brackets such as '(e1-person(e2)e3)'")

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
        for label, spans in self.brackets.chains.items():
            match = _PIECE.match(label)
            if not match:
                raise ValueError(f"entity {label!r}, expected a name such as e1 or e1[1/2]")
            whole.setdefault(match["chain"], [])
            if not match["number"]:
                whole[match["chain"]].extend(spans)
            elif match["number"] == "1":
                whole[match["chain"]].extend(self._longest(match["chain"], int(match["count"])))
        return [sorted(mentions) for mentions in whole.values() if mentions]

    def _longest(self, chain: str, count: int) -> list[Mention]:
        pieces = [
            self.brackets.chains.get(f"{chain}[{i}/{count}]", []) for i in range(1, count + 1)
        ]
        if len({len(spans) for spans in pieces}) != 1:
            raise ValueError(f"mentions of {chain} in {count} pieces, expected as many of each")
        return [
            max(mention, key=lambda piece: piece.end - piece.start)
            for mention in zip(*pieces, strict=True)
        ]
