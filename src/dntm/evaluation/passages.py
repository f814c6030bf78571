"""Passages: short texts in which some entities stand for words.

There are two kinds. In a part of a held-out document, known words are hidden: all occurrences of a
word become one entity, and the word is the answer. In a text with gaps, `___` stands for an
invented or omitted word. Both are processed like any other text: names and unknown words are
entities, too, numbered by first appearance.

The file formats of the public test sets (see docs/data.md):

    trials         id <tab> text with ___ @@ text with ___ <tab> probe,probe <tab> rating,rating
    definitions    word <tab> definition with ___
    pairs          word, word, similarity; separated by tabs, commas or spaces; # starts a comment
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from dntm.corpus.anonymize import AnonymizeConfig, find_entities
from dntm.corpus.document import (
    AnonymizedDocument,
    Block,
    Document,
    InputError,
    Mention,
    Token,
    files_below,
    text_lines,
)
from dntm.corpus.entities import Lexicon
from dntm.corpus.entity_slots import encode
from dntm.corpus.text import Documents, blocks, parse, sentences_in
from dntm.corpus.vocabulary import SPECIALS, UNK, Vocabulary

SENTENCES = 24
"""Documents are cut into near-equal parts of at most this many sentences."""

_GAP = re.compile(r"_{3,}")
_GAP_WORD = "[999999]"
"""Replaces a gap while the text is tokenized."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text as rows of the vocabulary, with some entities that stand for words."""

    sentences: Sequence[Sequence[int]]
    """<bos> and <eos> around each sentence."""
    hidden: Mapping[int, int]
    """The row of each such entity and the row of its word; <unk> if the word is not known."""

    def mentions(self) -> list[tuple[int, int, int]]:
        """Sentence, position and row of every mention of a hidden word, in reading order."""
        return [
            (s, t, row)
            for s, sentence in enumerate(self.sentences)
            for t, row in enumerate(sentence)
            if row in self.hidden
        ]


def passage_of(
    document: AnonymizedDocument, hidden: Mapping[Token, int], vocabulary: Vocabulary
) -> Passage:
    """Make entities of the `hidden` words (or entities), given the row of each answer.

    If there are more entities than the vocabulary has rows, other entities become unknown words.
    """
    free = vocabulary.entities - len(hidden)
    if free < 0:
        raise ValueError(f"{len(hidden)} hidden words, expected at most {vocabulary.entities}")
    numbers: dict[Token, int] = {}
    sentences: list[list[Token]] = []
    for sentence in document.sentences:
        sentences.append([])
        for token in sentence:
            if isinstance(token, str) and token not in hidden:
                sentences[-1].append(token)
                continue
            if token not in numbers and (token in hidden or free > 0):
                free -= token not in hidden
                numbers[token] = len(numbers) + 1
            sentences[-1].append(numbers.get(token, SPECIALS[UNK]))
    numbered = AnonymizedDocument(name=document.name, sentences=sentences)
    return Passage(
        encode(numbered, vocabulary).sentences,
        {vocabulary.row(numbers[t]): answer for t, answer in hidden.items() if t in numbers},
    )


def hide_words(
    documents: Iterable[AnonymizedDocument],
    words: Bool[np.ndarray, " vocabulary"],
    vocabulary: Vocabulary,
    *,
    most: int,
    seed: int,
) -> Iterator[Passage]:
    """Hide up to `most` of the `words` in each document, of those that occur at least twice.

    Documents without such a word, or without a free row for an entity, are left out.
    """
    random = np.random.default_rng(seed)
    for document in documents:
        counts = Counter(t for s in document.sentences for t in s if isinstance(t, str))
        rows = {word: vocabulary.row(word) for word, count in counts.items() if count > 1}
        able = [word for word, row in rows.items() if words[row]]
        free = vocabulary.entities - document.entities
        if able and free > 0:
            chosen = [able[i] for i in random.permutation(len(able))[: min(most, free)]]
            yield passage_of(document, {word: rows[word] for word in chosen}, vocabulary)


def text_blocks(files: Iterable[Path], documents: Documents) -> Iterator[Block]:
    """The documents of text files, not yet parsed."""
    for source in files:
        for path in files_below(source):
            yield from blocks(path, documents)


def parts_of(block: Block, documents: Documents, lexicon: Lexicon) -> Iterator[AnonymizedDocument]:
    """The parts of a document, with words as the vocabulary spells them; none without a word."""
    try:
        found = parse(block, documents, spans=False)
    except InputError:
        if any(any(c.isalnum() for c in line) for _, line in block.text_lines()):
            raise
        return
    vocabulary = lexicon.vocabulary
    for part in _marked(found, lexicon).parts(SENTENCES):
        document = part.anonymized(lower_case=lexicon.lower_case)
        spelled = [
            [t if isinstance(t, int) else vocabulary.label(vocabulary.row(t)) for t in sentence]
            for sentence in document.sentences
        ]
        yield AnonymizedDocument(name=document.name, sentences=spelled)


def sampled(found: Sequence[Block], size: int, seed: int) -> list[Block]:
    """Random documents of `size` bytes in total, in their order."""
    chosen: list[int] = []
    for number in np.random.default_rng(seed).permutation(len(found)).tolist():
        if size <= 0:
            break
        chosen.append(number)
        size -= sum(map(len, found[number].lines))
    return [found[number] for number in sorted(chosen)]


def gap_passage(texts: Sequence[str], lexicon: Lexicon) -> Passage | None:
    """One document of several texts about the entity `___`; None if no text has a `___`."""
    text = "\n".join(_GAP.sub(f" {_GAP_WORD} ", text) for text in texts)
    found = sentences_in(text, "blank-line", inline=True)
    sentences = [sentence.words for sentence in found]
    gaps = [
        Mention(s, w, w + 1)
        for s, words in enumerate(sentences)
        for w, word in enumerate(words)
        if word == _GAP_WORD
    ]
    if not gaps:
        return None
    marked = _marked(Document(name="text", sentences=sentences, chains=[gaps]), lexicon)
    document = marked.anonymized(lower_case=lexicon.lower_case)
    entities = [t for sentence in document.sentences for t in sentence if isinstance(t, int)]
    gap = entities[[list(surface) for surface in document.surfaces].index([_GAP_WORD])]
    return passage_of(document, {gap: UNK}, lexicon.vocabulary)


def _marked(document: Document, lexicon: Lexicon) -> Document:
    """Find the entities of a text; the gap, if any, is its only chain."""
    since = lexicon.vocabulary.entities_from
    config = AnonymizeConfig(keep_single=bool(document.chains), entities_from=since)
    return find_entities(document, ("names", "unknown"), lexicon, config)


@dataclass(frozen=True, slots=True)
class Trial:
    """Human similarity ratings of an invented word."""

    group: str
    """The same for all trials of one invented word."""
    texts: Sequence[str]
    probes: Sequence[str]
    ratings: Sequence[float]
    """Similarity of the invented word to each probe, on any scale."""


def read_trials(path: Path) -> list[Trial]:
    """Read a file of trials.

    Trials of one invented word share the part of their id before the first punctuation mark, as in
    `wampimuk_2`. Ids without punctuation are grouped by their probes.
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
    """Read a file of definitions: words and definitions with `___`."""
    return [(word.strip(), definition.strip()) for _, (word, definition) in _table(path, 2)]


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Read a file of word pairs. Further columns are ignored.

    The first line is a header if its third column is not a number.
    """
    found = []
    header = True
    for number, text in text_lines(path):
        if not (line := text.split("#")[0].strip()):
            continue
        separator = next((s for s in ("\t", ",") if s in line), None)
        cells = [cell.strip() for cell in line.split(separator)]
        if len(cells) < 3 or not all(cells[:3]):
            problem = f"found {line[:60]!r}, expected two words and a number"
            raise InputError(str(path), number, problem)
        try:
            found.append((cells[0], cells[1], _number(cells[2], path, number)))
        except InputError:
            if not header:
                raise
        header = False
    if not found:
        raise InputError(str(path), None, "no word pair")
    return found


def _table(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not blank; InputError if there is none."""
    lines = [(number, line) for number, line in text_lines(path) if line.strip()]
    if not lines:
        raise InputError(str(path), None, "empty file")
    for number, line in lines:
        cells = line.rstrip("\t").split("\t")
        if len(cells) != columns:
            problem = f"{len(cells)} columns, expected {columns}, separated by tabs"
            raise InputError(str(path), number, problem)
        yield number, cells


def _number(cell: str, path: Path, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(str(path), line, f"found {cell.strip()[:40]!r}, expected a number")
    return value
