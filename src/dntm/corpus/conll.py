"""CoNLL files: CoNLL-2012 (OntoNotes, LitBank) and CoNLL-U with `Entity=` (CorefUD, OntoGUM).

CoNLL-2012:

    #begin document (nw/wsj/24/wsj_2400); part 000
    nw/wsj/24/wsj_2400  0  0  Mary  NNP  ...  (PERSON*  ...  (12
    ...
    #end document

The word is the fourth column, the named entity the eleventh, coreference the last. A line has at
least twelve columns; the number of predicate columns varies by sentence. LitBank separates columns
by tabs, leaves the last one empty if there is no mention, and has a few crossing mentions (`my
[host` ... `hostess]`); crossing brackets are accepted only there.

CoNLL-U with `Entity=` in the last column:

    # newdoc id = GUM_bio_hadid
    # global.Entity = eid-etype-head-other
    1   Zaha    ...   Entity=(e1-person-1-
    2   Hadid   ...   Entity=e1)

The header names the fields between the hyphens; the chain is `eid` or `GRP`. Without a header, the
chain is the field with a digit among the first two: `(3-person` and `(person-3` (AMALGUM, older
GUM) are both chain 3. If both or neither of these fields have a digit, the document is refused. A
discontinuous mention, `e1[1/2]` ... `e1[2/2]`, is represented by its first piece. Words are the
syntactic words: lines of multi-word tokens and empty nodes are skipped. Mentions may cross.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from dntm.corpus.document import Block, Document, InputError, Mention, numbered_lines

Bracket = tuple[str, str]
"""The chain that a bracket opens and the chain it closes; empty if none."""


@dataclass
class _Reader:
    """The sentences and mentions read so far; callers add file and line to its ValueErrors."""

    name: str = ""
    allow_crossing: bool = False
    sentences: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """The words of the current sentence."""
    chains: dict[str, list[Mention]] = field(default_factory=dict)
    """The mentions of each chain; a mention of an empty node has no words (start == end)."""
    _open: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Chain and first word of every open mention, in the order of opening."""
    _of_chain: dict[str, list[int]] = field(default_factory=dict)
    _opened: int = 0

    def read_line(self, line: str) -> None:
        """Read a line that is not empty."""
        raise NotImplementedError

    def read_brackets(self, brackets: Iterable[Bracket], start: int, end: int) -> None:
        """Read the brackets of one word, in the order in which they are written.

        A mention that opens here begins with word `start`; one that closes ends before `end`.
        """
        closed: list[tuple[str, int]] = []
        for opening, closing in brackets:
            if opening:
                self.chains.setdefault(opening, [])
                self._opened += 1
                self._open[self._opened] = opening, start
                self._of_chain.setdefault(opening, []).append(self._opened)
            if closing:
                if not (opened := self._of_chain.get(closing)):
                    raise ValueError(
                        f"'{closing})' closes a mention that is not open, expected '({closing}'"
                    )
                begin = self._open.pop(opened.pop())[1]
                self.chains[closing].append(Mention(len(self.sentences), begin, end))
                closed.append((closing, begin))
        # The mention opened last begins last: if it does not cross, none does.
        inner, inner_begin = next(reversed(self._open.values()), ("", -1))
        for chain, begin in closed:
            if inner_begin > begin and not self.allow_crossing:
                raise ValueError(f"'{chain})' crosses '({inner}', expected '{inner})' first")

    def end_sentence(self) -> None:
        """Begin a new sentence; ValueError if a mention is open."""
        if self._open:
            chain, _ = next(reversed(self._open.values()))
            raise ValueError(f"'({chain}' is still open at the sentence's end, expected '{chain})'")
        if self.words:
            self.sentences.append(self.words)
            self.words = []

    def end(self) -> Document:
        """The document."""
        self.end_sentence()
        if not self.sentences:
            raise ValueError("an empty document, expected words")
        chains = [sorted(mentions) for mentions in self.chains.values()]
        return Document(name=self.name, sentences=self.sentences, chains=chains)


def _parse(block: Block, reader: _Reader, lines: Iterable[tuple[int, str]]) -> Document:
    number = block.first_line
    try:
        for number, line in lines:  # noqa: B007
            if line.strip():
                reader.read_line(line)
            else:
                reader.end_sentence()
        return reader.end()
    except InputError:
        raise
    except ValueError as error:
        raise InputError(block.path, number, str(error)) from None


def split_brackets(cell: str, pattern: re.Pattern[str], example: str) -> list[Bracket]:
    """Divide a cell into brackets by a pattern with the groups `single`, `open`, `close`."""
    found: list[Bracket] = []
    place = 0
    while place < len(cell):
        match = pattern.match(cell, place)
        if match is None:
            raise ValueError(f"brackets {cell!r:.200}, expected such as {example!r}")
        opened, closed = match["open"] or match["single"], match["close"] or match["single"]
        found.append((opened or "", closed or ""))
        place = match.end()
    return found


_BEGIN = "#begin document "
_PART = re.compile(r"; part (?P<part>\d++)$")
_BRACKET_2012 = re.compile(r"\((?P<single>\d++)\)|\((?P<open>\d++)|(?P<close>\d++)\)|\|")
_NAMED = re.compile(r"(?P<open>(?:\([A-Z_]++)*+)\*?(?P<close>\)*+)")
_NONE = ("", "-", "_", "*")
_WORD, _NAMED_ENTITY, _LEAST_COLUMNS = 3, 10, 12
_ESCAPED = {"/.": ".", "/?": "?", "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}
_ESCAPED |= {"-LCB-": "{", "-RCB-": "}"}


def blocks_2012(path: Path) -> Iterator[Block]:
    """One block per `#begin document`."""
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


def parse_2012(block: Block) -> Document:
    """Read one document part."""
    return _parse(block, _Reader2012(), block.text_lines())


@dataclass
class _Reader2012(_Reader):
    part: str = ""
    ended: bool = False
    width: int = 0
    """The number of columns in this sentence."""
    named_entities: list[Mention] = field(default_factory=list)
    _open_names: list[int] = field(default_factory=list)

    def read_line(self, line: str) -> None:
        if line.startswith("#begin document"):
            self._begin(line)
        elif line.startswith("#end document"):
            self.ended = True
        elif not line.startswith("#"):
            if not self.name or self.ended:
                raise ValueError("a word outside any document, expected '#begin document'")
            self.allow_crossing = "\t" in line
            self._read_columns(line.split("\t") if "\t" in line else line.split())

    def _begin(self, line: str) -> None:
        named = line.removeprefix(_BEGIN).rstrip()
        # The part is at the end: searching only there is linear in the line.
        found = _PART.search(named, max(0, len(named) - 40))
        self.name = (named[: found.start()] if found else named).removeprefix("(").removesuffix(")")
        if not line.startswith(_BEGIN) or not self.name:
            raise ValueError(f"found {line!r:.200}, expected '#begin document (NAME); part N'")
        self.part = (found["part"].lstrip("0") or "0") if found else ""

    def _read_columns(self, columns: list[str]) -> None:
        self.width = self.width if self.words else len(columns)
        if len(columns) < _LEAST_COLUMNS:
            raise ValueError(f"{len(columns)} columns, expected at least {_LEAST_COLUMNS}")
        if len(columns) != self.width:
            raise ValueError(f"{len(columns)} columns, expected {self.width} as in the first line")
        word = len(self.words)
        if columns[-1] not in _NONE:
            found = split_brackets(columns[-1], _BRACKET_2012, "(12(13)|6)")
            self.read_brackets(found, word, word + 1)
        if columns[_NAMED_ENTITY] not in _NONE:
            self._read_named_entity(columns[_NAMED_ENTITY], word)
        self.words.append(_ESCAPED.get(columns[_WORD], columns[_WORD]))

    def _read_named_entity(self, cell: str, word: int) -> None:
        """`(PERSON*` opens a named entity, `*)` closes it, `(GPE)` does both."""
        match = _NAMED.fullmatch(cell)
        if not match or len(match["close"]) > len(self._open_names) + match["open"].count("("):
            raise ValueError(f"named entity {cell!r}, expected such as '(PERSON*', '*' or '*)'")
        self._open_names += [word] * match["open"].count("(")
        for _ in match["close"]:
            mention = Mention(len(self.sentences), self._open_names.pop(), word + 1)
            self.named_entities.append(mention)

    def end_sentence(self) -> None:
        super().end_sentence()
        if self._open_names:
            raise ValueError("a named entity is still open at the sentence's end, expected '*)'")

    def end(self) -> Document:
        self.end_sentence()
        if not self.ended:
            raise ValueError("the document does not end, expected '#end document'")
        return replace(super().end(), part=self.part, named_entities=self.named_entities)


_NEWDOC = re.compile(r"#\s*+newdoc(?:\s++id\s*+=(?P<name>.*))?+$", re.DOTALL)
_HEADER = re.compile(r"#\s*+global\.Entity\s*+=\s*+(?P<fields>\S++)")
_BRACKET_U = re.compile(r"\((?P<single>[^()]++)\)|\((?P<open>[^()]++)|(?P<close>[^()]++)\)")
_PIECE = re.compile(r"\[(?P<number>\d+)/\d+\]$")
_WORD_ID = re.compile(r"(?P<word>\d+)$|\d+-\d+$|\d+\.\d+$")
_COLUMNS = 10


def blocks_u(path: Path) -> Iterator[Block]:
    """One block per `# newdoc`; a file without one is a single document."""
    lines: list[bytes] = []
    first, is_document = 1, False
    header = latest = ""
    for number, line in numbered_lines(path):
        comment = line.decode(errors="replace") if line.startswith(b"#") else ""
        begins = _newdoc(comment) is not None
        if begins and is_document:
            yield Block(str(path), first, lines, header=header)
            lines, header = [], latest
        first = first if lines else number
        latest = comment if _HEADER.match(comment) else latest
        # Comments before the first document belong to it.
        is_document |= begins or bool(not comment and line.strip())
        lines.append(line)
    if is_document:
        yield Block(str(path), first, lines, header=header)


def _newdoc(line: str) -> str | None:
    """The name after `# newdoc`, possibly empty; None for other lines."""
    match = _NEWDOC.match(line.strip())
    if match is None:
        return None
    name = (match["name"] or "").strip()
    return None if match["name"] is not None and not name else name


def parse_u(block: Block) -> Document:
    """Read one document."""
    name = block.label or Path(block.path).stem
    reader = _ReaderU(name=name, allow_crossing=True, line=block.first_line)
    lines = itertools.chain([(block.first_line, block.header)], block.text_lines())
    return _parse(block, reader, lines)


@dataclass
class _ReaderU(_Reader):
    line: int = 1
    """The first line: names a document without a name."""
    chain_field: int | None = None
    """Index of the field with the chain; None without a header."""

    def read_line(self, line: str) -> None:
        if not line.startswith("#"):
            self._read_columns(line.split("\t"))
        elif (name := _newdoc(line)) is not None:
            self.name = name or f"{self.name}:{self.line}"
        elif match := _HEADER.match(line):
            fields = match["fields"].split("-")
            known = [i for i, name in enumerate(fields) if name in ("eid", "GRP")]
            if not known:
                raise ValueError(f"global.Entity {match['fields']!r}, expected a field eid or GRP")
            self.chain_field = known[0]

    def _read_columns(self, columns: list[str]) -> None:
        if len(columns) != _COLUMNS:
            raise ValueError(f"{len(columns)} columns between tabs, expected {_COLUMNS}")
        identifier, start = _WORD_ID.match(columns[0]), len(self.words)
        if not identifier:
            raise ValueError(f"word number {columns[0]!r}, expected 3, 3-4 or 3.1")
        if identifier["word"] is not None:
            if identifier["word"] != str(start + 1):
                raise ValueError(f"word number {columns[0]}, expected {start + 1}")
            self.words.append(columns[1])
        for attribute in columns[9].split("|"):
            if attribute.startswith("Entity="):
                cell = attribute.removeprefix("Entity=")
                found = split_brackets(cell, _BRACKET_U, "(e1-person(e2)e3)")
                chains = [(self._chain(opened), self._chain(closed)) for opened, closed in found]
                self.read_brackets(chains, start, len(self.words))

    def _chain(self, text: str) -> str:
        """The chain of a bracket; empty for the later pieces of a discontinuous mention."""
        fields, index = text.split("-"), self.chain_field or 0
        if self.chain_field is None and len(fields) > 1:
            fields = [name for name in fields[:2] if re.search(r"\d", name)]
            if len(fields) != 1:
                expected = "expected one number, such as 3-person or person-3"
                raise ValueError(f"entity {text!r:.80} without '# global.Entity', {expected}")
        chain = fields[index] if len(fields) > index else fields[0]
        piece = _PIECE.search(chain)
        if piece is None:
            return chain
        return chain[: piece.start()] if piece["number"] == "1" else ""

    def end(self) -> Document:
        """The document, without mentions that have no words."""
        document = super().end()
        with_words = ([m for m in chain if m.end > m.start] for chain in document.chains)
        return replace(document, chains=[chain for chain in with_words if chain])
