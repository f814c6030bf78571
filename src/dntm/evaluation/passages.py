"""Passages: short texts in which the meaning of some entities is asked for.

Two kinds. In a part of a held-out document known words are hidden: all occurrences of a word become
one entity, and the answer is the word. In a text of somebody's making `___` stands for an invented
(or left out) word. Both are read as the model reads any text, by the one pipeline of `corpus`:
names and unknown words are entities, too, numbered by first appearance.

The files of the public sets (see docs/meaning.md):

    trials         id <tab> text with ___ @@ text with ___ <tab> probe,probe <tab> rating,rating
    definitions    word <tab> definition with ___
    pairs          word, word, similarity; tabs, commas or blanks between; # begins a comment
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from dntm.corpus.anonymize import AnonymizeConfig, MarkedDocument, find_entities
from dntm.corpus.document import Document, Mention, Span
from dntm.corpus.entities import Lexicon
from dntm.corpus.source import Block, InputError, files_below, numbered_lines
from dntm.corpus.text import Documents, blocks, parse, sentences_in
from dntm.corpus.vocabulary import BOS, EOS, UNK, entity_rows

SENTENCES = 24
"""A document is cut into near-equal parts of at most so many sentences."""
Tokens = Sequence[Sequence[int]]
"""The rows of a text's words; a mention of the entity with key k is -1 - k."""

_GAP = re.compile(r"_{3,}")
_INLINE_GAP = "[999999]"
"""What the gap is while the text is cut into words: one word of its own."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text as a model reads it, with some entities whose meaning is asked for."""

    sentences: Sequence[Sequence[int]]
    """Rows of the vocabulary, <bos> and <eos> around each sentence."""
    asked: Mapping[int, int]
    """By the row of the entity, the row of the word it stands for; 0 where that is not known."""

    def mentions(self) -> list[tuple[int, int, int]]:
        """Sentence, position and row of every mention that is asked for, in reading order."""
        return [
            (s, t, row)
            for s, sentence in enumerate(self.sentences)
            for t, row in enumerate(sentence)
            if row in self.asked
        ]


def passage_of(tokens: Tokens, asked: Mapping[int, int], entities: int) -> Passage:
    """Number the entities by first appearance; `asked` are tokens, with the word they stand for.

    Other entities than those find room in the rows that are left, or are unknown words.
    """
    rows: dict[int, int] = {}
    first, others = entity_rows(entities).start, entities - len(asked)
    if others < 0:
        raise ValueError(f"{len(asked)} entities are asked for, expected at most {entities}")
    sentences = []
    for sentence in tokens:
        read = [BOS]
        for token in sentence:
            if token >= 0 and token not in asked:
                read.append(token)
                continue
            if token not in rows and (token in asked or others > 0):
                others -= token not in asked
                rows[token] = first + len(rows)
            read.append(rows.get(token, UNK))
        sentences.append([*read, EOS])
    return Passage(sentences, {rows[t]: answer for t, answer in asked.items() if t in rows})


def hide(
    tokens: Tokens,
    words: Bool[np.ndarray, " vocabulary"],
    most: int,
    entities: int,
    random: np.random.Generator,
) -> Passage | None:
    """Hide up to `most` words that occur twice or more; None where there is none, or no row."""
    counts = Counter(token for sentence in tokens for token in sentence)
    room = entities - sum(token < 0 for token in counts)
    able = [t for t, count in counts.items() if t >= 0 and words[t] and count > 1]
    if room < 1 or not able:
        return None
    chosen = random.permutation(able)[: min(most, room)].tolist()
    return passage_of(tokens, {row: row for row in chosen}, entities)


def text_blocks(files: Iterable[Path], documents: Documents) -> Iterator[Block]:
    """The documents of text files, not yet parsed."""
    for source in files:
        for path in files_below(source):
            yield from blocks(path, documents)


def parts_of(block: Block, documents: Documents, lexicon: Lexicon) -> Iterator[Tokens]:
    """The parts of a document; none where it has no word."""
    try:
        found = parse(block, documents, spans=False)
    except InputError:
        if any(any(c.isalnum() for c in line) for _, line in block.text_lines()):
            raise
        return
    for part in _marked(found, lexicon).parts(SENTENCES):
        yield _tokens(part, lexicon)


def sampled(found: Sequence[Block], size: int, seed: int) -> list[Block]:
    """Some documents at random, in their order, of `size` bytes of text together."""
    chosen: list[int] = []
    for number in np.random.default_rng(seed).permutation(len(found)).tolist():
        if size <= 0:
            break
        chosen.append(number)
        size -= sum(map(len, found[number].lines))
    return [found[number] for number in sorted(chosen)]


def gap_passage(texts: Sequence[str], lexicon: Lexicon) -> Passage | None:
    """A document of several texts, each of which begins a sentence, about the entity `___`.

    None where it has no `___`.
    """
    text = "\n".join(_GAP.sub(f" {_INLINE_GAP} ", text) for text in texts)
    found = sentences_in(text, "blank-line", inline=True)
    sentences = [sentence.words for sentence in found]
    gaps = [
        Mention(s, w, w + 1)
        for s, words in enumerate(sentences)
        for w, word in enumerate(words)
        if word == _INLINE_GAP
    ]
    if not gaps:
        return None
    marked = _marked(Document(name="text", sentences=sentences, chains=[gaps]), lexicon)
    return passage_of(_tokens(marked, lexicon), {-1: UNK}, lexicon.vocabulary.entities)


def _marked(document: Document, lexicon: Lexicon) -> MarkedDocument:
    """The entities of a text; the gap, where it has one, is its only chain, of key 0."""
    settings = lexicon.vocabulary.settings
    hindsight = settings is not None and settings.entities_from == "repeated"
    config = AnonymizeConfig(
        keep_single=bool(document.chains), entities_from="repeated" if hindsight else "first"
    )
    return find_entities(document, ("names", "unknown"), lexicon, config)


def _tokens(marked: MarkedDocument, lexicon: Lexicon) -> Tokens:
    found: list[list[int]] = []
    for words, mentions in zip(marked.sentences, marked.mentions, strict=True):
        found.append([])
        place = 0
        for start, end, entity in (*mentions, Span(len(words), len(words))):
            found[-1] += [lexicon.row(word) for word in words[place:start]]
            if entity is not None:
                found[-1].append(-1 - entity)
            place = end
    return found


@dataclass(frozen=True, slots=True)
class Trial:
    """What people made of an invented word."""

    group: str
    """Trials of one invented word have the same."""
    texts: Sequence[str]
    probes: Sequence[str]
    ratings: Sequence[float]
    """How near the invented word is to each probe, on any scale."""


def read_trials(path: Path) -> list[Trial]:
    """Read a file of trials.

    Those of one invented word are told by what stands before the first sign of their id, as in
    `wampimuk_2`, or where an id has none by their probes.
    """
    found = []
    for number, cells in _table(path, 4):
        probes = [probe.strip() for probe in cells[2].split(",")]
        ratings = [_number(rating, path, number) for rating in cells[3].split(",")]
        if len(probes) != len(ratings) or not all(probes):
            raise InputError(
                str(path),
                number,
                f"{len(probes)} probes and {len(ratings)} ratings, expected pairs",
            )
        leading, *rest = re.split(r"[\W_]", cells[0].strip(), maxsplit=1)
        group = leading if rest and leading else ",".join(probes)
        texts = [text.strip() for text in cells[1].split("@@")]
        found.append(Trial(group, texts, probes, ratings))
    return found


def read_definitions(path: Path) -> list[tuple[str, str]]:
    """Read a file of definitions: the word, and what is said of `___`."""
    found = []
    for number, (word, definition) in _table(path, 2):
        if not word.strip():
            raise InputError(str(path), number, "no word before the definition")
        found.append((word.strip(), definition.strip()))
    return found


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Read a file of word pairs; what stands behind the similarity is not looked at.

    A first line without a number in its third place is a header.
    """
    found = []
    header = True
    for number, written in _lines(path):
        if not (line := written.split("#")[0].strip()):
            continue
        separator = next((s for s in ("\t", ",") if s in line), None)
        cells = [cell.strip() for cell in line.split(separator)]
        if len(cells) < 3 or not all(cells[:3]):
            raise InputError(
                str(path), number, f"found {line[:60]!r}, expected two words, a number"
            )
        if not (header and not _is_number(cells[2])):
            found.append((cells[0], cells[1], _number(cells[2], path, number)))
        header = False
    if not found:
        raise InputError(str(path), None, "no pair of words")
    return found


def _table(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file with tabs that are not empty; InputError where there is none."""
    empty = True
    for number, line in _lines(path):
        if not line.strip():
            continue
        cells = line.rstrip("\t").split("\t")
        if len(cells) != columns:
            raise InputError(
                str(path), number, f"{len(cells)} columns, expected {columns} with tabs between"
            )
        empty = False
        yield number, cells
    if empty:
        raise InputError(str(path), None, "an empty file")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, raw in numbered_lines(path):
        try:
            yield number, raw.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError(str(path), number, "not UTF-8, expected UTF-8 text") from None


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _number(cell: str, path: Path, line: int) -> float:
    if not _is_number(cell):
        raise InputError(str(path), line, f"found {cell.strip()[:40]!r}, expected a number")
    return float(cell)
