"""Passages: short texts in which one entity stands for a word.

There are two kinds. In sentences of held-out text with a known word in common, this word is hidden:
it becomes an entity, and the word is the answer. In a text with gaps, `___` stands for an invented
or omitted word. Both are processed like any other text: names and unknown words are also entities,
numbered by first appearance.

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
from jaxtyping import Int

from dntm.corpus.anonymize import AnonymizeConfig, find_entities
from dntm.corpus.document import (
    AnonymizedDocument,
    Document,
    InputError,
    Mention,
    Token,
    files_below,
    text_lines,
)
from dntm.corpus.entities import Lexicon
from dntm.corpus.entity_slots import encode
from dntm.corpus.text import Documents, documents_in, sentences_in
from dntm.corpus.vocabulary import SPECIALS, UNK, Vocabulary

SENTENCES = 6
"""The most sentences in which a word is hidden."""
SHORTEST = 5
"""Sentences with fewer tokens say little about a word and are not used."""

_GAP = re.compile(r"_{3,}")
_GAP_WORD = "[999999]"
"""Replaces a gap while the text is tokenized."""
_HIDDEN = 0
"""Replaces a hidden word. Other entities have numbers from 1."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text as rows of the vocabulary, in which one entity stands for a word."""

    sentences: Sequence[Sequence[int]]
    """<bos> and <eos> around each sentence."""
    entity: int
    answer: int = UNK
    """The row of the word; <unk> if it is not known."""

    def mentions(self) -> list[tuple[int, int]]:
        """Sentence and position of every mention, in reading order."""
        return [
            (s, t)
            for s, sentence in enumerate(self.sentences)
            for t, row in enumerate(sentence)
            if row == self.entity
        ]


def passage_of(
    sentences: Sequence[Sequence[Token]], entity: int, answer: int, vocabulary: Vocabulary
) -> Passage:
    """A passage in which this entity stands for the answer, given as a row.

    If there are more entities than the vocabulary has rows, other entities become unknown words.
    """
    found = dict.fromkeys(t for sentence in sentences for t in sentence if isinstance(t, int))
    left_out = [other for other in found if other != entity][vocabulary.entities - 1 :]
    kept = (number for number in found if number not in left_out)
    numbers = {number: new for new, number in enumerate(kept, start=1)}
    tokens = [
        [t if isinstance(t, str) else numbers.get(t, SPECIALS[UNK]) for t in sentence]
        for sentence in sentences
    ]
    rows = encode(AnonymizedDocument(name="", sentences=tokens), vocabulary).sentences
    return Passage(rows, vocabulary.row(numbers[entity]), answer)


def hide_types(
    documents: Iterable[Sequence[Sequence[Token]]],
    groups: Mapping[str, Int[np.ndarray, " _"]],
    vocabulary: Vocabulary,
    *,
    most: int,
    seed: int,
) -> dict[str, list[Passage]]:
    """Draw up to `most` words (rows) of each group, all with the same probability, and hide them.

    A passage consists of up to six sentences that contain the word once, in random order, from as
    many documents as possible. Words that occur in no such sentence are not drawn.
    """
    wanted = set(np.concatenate(list(groups.values())).tolist())
    found: dict[int, list[tuple[int, Sequence[Token]]]] = {}
    for number, sentences in enumerate(documents):
        for tokens in sentences:
            if len(tokens) >= SHORTEST:
                counts = Counter(vocabulary.row(t) for t in tokens if isinstance(t, str))
                for row in (row for row, n in counts.items() if n == 1 and row in wanted):
                    found.setdefault(row, []).append((number, tokens))
    random = np.random.default_rng(seed)
    return {
        group: [
            _hide(row, _spread(found[row], random), vocabulary)
            for row in random.permutation([r for r in rows if r in found])[:most].tolist()
        ]
        for group, rows in groups.items()
    }


def _spread(
    places: Sequence[tuple[int, Sequence[Token]]], random: np.random.Generator
) -> list[Sequence[Token]]:
    """Six of these sentences, in random order; a second one of a document only if necessary."""
    rounds: dict[int, list[Sequence[Token]]] = {}
    seen: Counter[int] = Counter()
    for document, sentence in (places[i] for i in random.permutation(len(places))):
        rounds.setdefault(seen[document], []).append(sentence)
        seen[document] += 1
    return [sentence for own in rounds.values() for sentence in own][:SENTENCES]


def _hide(row: int, sentences: Sequence[Sequence[Token]], vocabulary: Vocabulary) -> Passage:
    tokens = [
        [_HIDDEN if isinstance(t, str) and vocabulary.row(t) == row else t for t in sentence]
        for sentence in sentences
    ]
    return passage_of(tokens, _HIDDEN, row, vocabulary)


def held_out_documents(
    files: Iterable[Path], documents: Documents, lexicon: Lexicon
) -> Iterator[Sequence[Sequence[Token]]]:
    """The sentences of each document, with entities; no two documents share an entity number."""
    entities = 0
    paths = (path for source in files for path in files_below(source))
    for found in (document for path in paths for document in documents_in(path, documents)):
        document = _anonymized(found, lexicon)
        yield [
            [t if isinstance(t, str) else t + entities for t in sentence]
            for sentence in document.sentences
        ]
        entities += document.entities


def gap_passage(texts: Sequence[str], lexicon: Lexicon, answer: int = UNK) -> Passage | None:
    """One document of several texts about the entity `___`; None if no text has a `___`."""
    text = "\n".join(_GAP.sub(f" {_GAP_WORD} ", text) for text in texts)
    sentences = [sentence.words for sentence in sentences_in(text, "blank-line", inline=True)]
    gaps = [
        Mention(s, w, w + 1)
        for s, words in enumerate(sentences)
        for w, word in enumerate(words)
        if word == _GAP_WORD
    ]
    if not gaps:
        return None
    document = _anonymized(Document(name="text", sentences=sentences, chains=[gaps]), lexicon)
    entities = [t for sentence in document.sentences for t in sentence if isinstance(t, int)]
    gap = entities[[list(surface) for surface in document.surfaces].index([_GAP_WORD])]
    return passage_of(document.sentences, gap, answer, lexicon.vocabulary)


def _anonymized(document: Document, lexicon: Lexicon) -> AnonymizedDocument:
    """Find the entities of a text; the gap, if any, is its only chain."""
    since = lexicon.vocabulary.entities_from
    config = AnonymizeConfig(keep_single=bool(document.chains), entities_from=since)
    marked = find_entities(document, ("names", "unknown"), lexicon, config)
    return marked.anonymized(lower_case=lexicon.lower_case)


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
            problem = f"{len(probes)} probes and {len(ratings)} ratings, expected pairs"
            raise InputError(str(path), number, problem)
        leading, *rest = re.split(r"[\W_]", cells[0].strip(), maxsplit=1)
        group = leading if rest and leading else ",".join(probes)
        texts = [text.strip() for text in cells[1].split("@@")]
        found.append(Trial(group, texts, probes, ratings))
    return found


def read_definitions(path: Path) -> list[tuple[str, str]]:
    """Read a file of definitions: words and definitions with `___`."""
    return [(word.strip(), definition.strip()) for _, (word, definition) in _table(path, 2)]


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Read word pairs. The first line can be a header; further columns are ignored."""
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
