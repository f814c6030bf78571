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

The header names the fields between the hyphens; `eid` or `GRP` is the chain. A discontinuous
mention, `e1[1/2]` ... `e1[2/2]`, is represented by its longest piece. Words are the syntactic
words: lines of multi-word tokens and empty nodes are skipped. Mentions may cross.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dntm.corpus.document import Document, Mention
from dntm.corpus.source import Block, check_size, numbered_lines

Bracket = tuple[str, str]
"""The chain that a bracket opens and the chain it closes; empty if none."""


@dataclass
class Brackets:
    """Collects mentions from the brackets of the coreference column.

    Errors are plain ValueErrors: the reader adds file and line.
    """

    allow_crossing: bool
    chains: dict[str, list[Mention]] = field(default_factory=dict)
    """The mentions of each chain; a mention of an empty node has no words (start == end)."""
    _open: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Chain and first word of every open mention, in the order of opening."""
    _of_chain: dict[str, list[int]] = field(default_factory=dict)
    _opened: int = 0

    def read(self, brackets: Iterable[Bracket], sentence: int, start: int, end: int) -> None:
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
                begin = self._close(closing)
                self.chains[closing].append(Mention(sentence, begin, end))
                closed.append((closing, begin))
        # The mention opened last begins last: if it does not cross, none does.
        inner, inner_begin = next(reversed(self._open.values()), ("", -1))
        for chain, begin in closed:
            if inner_begin > begin and not self.allow_crossing:
                raise ValueError(f"'{chain})' crosses '({inner}', expected '{inner})' first")

    def _close(self, chain: str) -> int:
        """Close the innermost open mention of `chain` and return its first word."""
        if not (opened := self._of_chain.get(chain)):
            raise ValueError(f"'{chain})' closes a mention that is not open, expected '({chain}'")
        return self._open.pop(opened.pop())[1]

    def end_sentence(self) -> None:
        """Check that no mention is open."""
        if self._open:
            chain, _ = next(reversed(self._open.values()))
            raise ValueError(f"'({chain}' is still open at the sentence's end, expected '{chain})'")


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
    first, size = 1, 0
    for number, line in numbered_lines(path):
        if line.startswith(b"#begin document"):
            if lines:
                yield Block(str(path), first, lines)
            lines, first, size = [], number, 0
        size += len(line)
        check_size(path, first, size)
        if lines or line.strip():
            lines.append(line)
            first = first if len(lines) > 1 else number
    if lines:
        yield Block(str(path), first, lines)


def parse_2012(block: Block) -> Document:
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
                    found = split_brackets(columns[-1], _BRACKET_2012, "(12(13)|6)")
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
    named = line.removeprefix(_BEGIN).rstrip()
    # The part is at the end: searching only there is linear in the line.
    found = _PART.search(named, max(0, len(named) - 40))
    name = (named[: found.start()] if found else named).removeprefix("(").removesuffix(")")
    if not line.startswith(_BEGIN) or not name:
        raise ValueError(f"found {line!r:.200}, expected '#begin document (NAME); part N'")
    return name, (found["part"].lstrip("0") or "0") if found else ""


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


_NEWDOC = re.compile(r"#\s*+newdoc(?:\s++id\s*+=(?P<name>.*))?+$", re.DOTALL)
_HEADER = re.compile(r"#\s*+global\.Entity\s*+=\s*+(?P<fields>\S++)")
_BRACKET_U = re.compile(r"\((?P<single>[^()]++)\)|\((?P<open>[^()]++)|(?P<close>[^()]++)\)")
_PIECE = re.compile(r"(?P<chain>[^\[\]]+)(?:\[(?P<number>\d+)/(?P<count>\d+)\])?$")
_WORD_ID = re.compile(r"(?P<word>\d+)$|\d+-\d+$|\d+\.\d+$")
_COLUMNS = 10


def blocks_u(path: Path) -> Iterator[Block]:
    """One block per `# newdoc`; a file without one is a single document."""
    lines: list[bytes] = []
    first, header, size = 1, "", 0
    for number, line in numbered_lines(path):
        if line.startswith(b"#") and _newdoc(line.decode(errors="replace")) is not None:
            if _is_document(lines):
                yield Block(str(path), first, lines, header=header)
                header = _header(lines) or header
                lines, size = [], 0
            first = first if lines else number
        lines.append(line)
        size += len(line)
        check_size(path, first, size)
    if _is_document(lines):
        yield Block(str(path), first, lines, header=header)


def _newdoc(line: str) -> str | None:
    """The name after `# newdoc`, possibly empty; None for other lines."""
    match = _NEWDOC.match(line.strip())
    if match is None:
        return None
    name = (match["name"] or "").strip()
    return None if match["name"] is not None and not name else name


def _is_document(lines: list[bytes]) -> bool:
    """Whether the lines have a `# newdoc` or words, not only comments."""
    return any(
        not line.startswith(b"#") or _newdoc(line.decode(errors="replace")) is not None
        for line in lines
        if line.strip()
    )


def _header(lines: list[bytes]) -> str:
    """The last `# global.Entity` of the lines: it applies to the rest of the file."""
    found = [line.decode(errors="replace") for line in lines if line.startswith(b"#")]
    return next((line for line in reversed(found) if _HEADER.match(line)), "")


def parse_u(block: Block) -> Document:
    """Read one document."""
    state = _State(name=block.label or Path(block.path).stem, line=block.first_line)
    number = block.first_line
    for number, line in itertools.chain([(block.first_line, block.header)], block.text_lines()):
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
    """The part of a document read so far."""

    name: str
    line: int
    chain_field: int = 0
    sentences: list[list[str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    brackets: Brackets = field(default_factory=lambda: Brackets(allow_crossing=True))

    def read_comment(self, line: str) -> None:
        if (name := _newdoc(line)) is not None:
            self.name = name or f"{self.name}:{self.line}"
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
        found = split_brackets(cell, _BRACKET_U, "(e1-person(e2)e3)")
        chains = [(self._piece(opening), self._piece(closing)) for opening, closing in found]
        self.brackets.read(chains, len(self.sentences), start, len(self.words))

    def _piece(self, text: str) -> str:
        """The chain of a bracket, with `[1/2]` if it is a piece of a discontinuous mention."""
        fields = text.split("-")
        return fields[self.chain_field] if len(fields) > self.chain_field else fields[0]

    def end_sentence(self) -> None:
        self.brackets.end_sentence()
        if self.words:
            self.sentences.append(self.words)
            self.words = []

    def chains(self) -> list[list[Mention]]:
        """Chains in order of appearance; a discontinuous mention is its longest piece."""
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
    """The longest piece of each mention that has `count` pieces."""
    if str(len(pieces)) != count or len({len(spans) for spans in pieces.values()}) != 1:
        raise ValueError(f"mentions of {entity} in {count} pieces, expected as many of each")
    return [
        max(mention, key=lambda piece: piece.end - piece.start)
        for mention in zip(*pieces.values(), strict=True)
    ]
