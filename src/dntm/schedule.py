"""Schedule: which sentences can be encoded side by side (Section 3, made fast but not changed).

A stretch is the next few sentences of every document of a batch. With dynamic input a sentence
depends only on the last earlier sentences that mention one of its entities:

    level(sentence) = 1 + max over its entities e of level(last earlier sentence that mentions e)

so all sentences of a level, over all documents, are encoded in one call. With static input there
is one level. Every state d_{e,i} is a row of one growing table: first the memory the stretch
begins with, a row for each document and entity, then each merged context, level by level. Each
sentence knows the row of every entity as of its start. A context nobody reads is never encoded.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from dntm.corpus.vocabulary import SPECIALS
from dntm.layout import Layout, Sentence, lay_out

FIRST = len(SPECIALS)
"""The row of entity 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merge:
    """Contexts to merge at once; the results are the table's next rows."""

    contexts: Int[np.ndarray, " merges"]
    """Which of the level's mentions."""
    previous: Int[np.ndarray, " merges"]
    """The table row of each one's entity before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """Sentences to encode in one call."""

    tokens: Int[np.ndarray, "sentences time"]
    lengths: Int[np.ndarray, " sentences"]
    entity_places: Int[np.ndarray, " places"]
    """Where the flattened tokens hold an entity."""
    entity_rows: Int[np.ndarray, " places"]
    """The table row of its state there."""
    sentence: Int[np.ndarray, " mentions"]
    position: Int[np.ndarray, " mentions"]
    merges: tuple[Merge, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """How to read the next sentences of every document of a batch."""

    layout: Layout
    levels: tuple[Level, ...]
    entity_places: Int[np.ndarray, " places"]
    """Where the language model's tokens hold an entity."""
    entity_rows: Int[np.ndarray, " places"]
    """The table row of its state there."""
    states: tuple[Int[np.ndarray, " states"], ...]
    """The table rows of each document."""
    known: Int[np.ndarray, "sentences entities"]
    """Which of its document's `states` each entity is in, as each sentence begins."""
    memory: Int[np.ndarray, "documents entities"]
    """The table row of each entity's state after the stretch."""


@dataclass(slots=True)
class _Context:
    """A mention to encode; contexts are numbered in reading order, and their states alike."""

    document: int
    sentence: int
    position: int
    previous: int
    level: int
    step: int


@dataclass(frozen=True, slots=True)
class _Sentence:
    document: int
    rows: Sentence
    mentions: tuple[tuple[int, int], ...]
    """Position and entity (from zero)."""
    before: Int[np.ndarray, " entities"]
    """The number of each entity's state as the sentence begins."""


def plan(
    documents: Sequence[Sequence[Sentence]],
    *,
    entities: int,
    dynamic_input: bool,
    dynamic_output: bool,
    goes_on: Sequence[bool] | None = None,
) -> Stretch:
    """Plan the reading of each document's next sentences (none where it ended earlier).

    `goes_on` tells which documents have sentences after these; without it, all. For the others
    whatever only later sentences would need is left out, so their state is of no further use.
    """
    goes_on = [True] * len(documents) if goes_on is None else goes_on
    if len(goes_on) != len(documents):
        raise ValueError(f"goes_on tells of {len(goes_on)} documents, expected {len(documents)}")
    sentences: list[_Sentence] = []
    contexts: list[_Context] = []
    current = np.arange(len(documents) * entities).reshape(len(documents), entities)
    for document, text in enumerate(documents):
        found = [_mentions(rows, entities) for rows in text]
        last = {entity: s for s, mentions in enumerate(found) for _, entity in mentions}
        for s, (rows, mentions) in enumerate(zip(text, found, strict=True)):
            sentences.append(_Sentence(document, rows, mentions, current[document].copy()))
            level = _level(sentences[-1], contexts, current.size) if dynamic_input else 0
            for position, entity in mentions:
                read_as_input = dynamic_input and (goes_on[document] or last[entity] > s)
                read_as_output = dynamic_output and (goes_on[document] or s + 1 < len(text))
                if read_as_input or read_as_output:
                    _check_edges(rows, position)
                    previous = int(current[document, entity])
                    step = _step(previous - current.size, level, contexts)
                    current[document, entity] = current.size + len(contexts)
                    contexts.append(
                        _Context(document, len(sentences) - 1, position, previous, level, step)
                    )
    return _assemble(lay_out(documents, goes_on), sentences, contexts, current)


def _mentions(rows: Sentence, entities: int) -> tuple[tuple[int, int], ...]:
    return tuple((t, r - FIRST) for t, r in enumerate(rows) if FIRST <= r < FIRST + entities)


def _check_edges(rows: Sentence, position: int) -> None:
    if not 0 < position < len(rows) - 1:
        raise ValueError(
            f"row {rows[position]} is an entity at the edge of sentence {list(rows)}, "
            "expected <bos> before and <eos> after it"
        )


def _level(sentence: _Sentence, contexts: Sequence[_Context], memory: int) -> int:
    states = (int(sentence.before[entity]) - memory for _, entity in sentence.mentions)
    return max((contexts[state].level + 1 for state in states if state >= 0), default=0)


def _step(previous: int, level: int, contexts: Sequence[_Context]) -> int:
    """How many merges of the same level come before one that follows context `previous`."""
    if previous < 0 or contexts[previous].level < level:
        return 0
    return contexts[previous].step + 1


def _assemble(
    layout: Layout,
    sentences: Sequence[_Sentence],
    contexts: Sequence[_Context],
    current: Int[np.ndarray, "documents entities"],
) -> Stretch:
    """Number the states by their table rows and make the arrays."""
    documents, entities = current.shape
    ranked = sorted(range(len(contexts)), key=lambda c: (contexts[c].level, contexts[c].step))
    row = np.arange(current.size + len(contexts))
    row[current.size + np.array(ranked, dtype=np.int64)] = current.size + np.arange(len(ranked))
    owned = [list(range(d * entities, (d + 1) * entities)) for d in range(documents)]
    local = np.arange(current.size + len(contexts)) % max(entities, 1)
    for number, context in enumerate(contexts, start=current.size):
        local[number] = len(owned[context.document])
        owned[context.document].append(number)
    places, rows = _entity_tokens(sentences)
    known = [s.before for s in sentences]
    return Stretch(
        layout=layout,
        levels=_levels(sentences, contexts, row),
        entity_places=layout.read[places],
        entity_rows=row[rows],
        states=tuple(row[states] for states in owned),
        known=local[np.array(known, dtype=np.int64).reshape(len(known), entities)],
        memory=row[current],
    )


def _entity_tokens(
    sentences: Sequence[_Sentence], width: int | None = None
) -> tuple[Int[np.ndarray, " places"], Int[np.ndarray, " places"]]:
    """Where the sentences, one after another or padded to `width`, hold entities in what state."""
    places: list[int] = []
    states: list[int] = []
    start = 0
    for sentence in sentences:
        places += [start + position for position, _ in sentence.mentions]
        states += [int(sentence.before[entity]) for _, entity in sentence.mentions]
        start += len(sentence.rows) if width is None else width
    return np.array(places, dtype=np.int64), np.array(states, dtype=np.int64)


def _levels(
    sentences: Sequence[_Sentence],
    contexts: Sequence[_Context],
    row: Int[np.ndarray, " states"],
) -> tuple[Level, ...]:
    of_level: defaultdict[int, list[_Context]] = defaultdict(list)
    for context in contexts:
        of_level[context.level].append(context)
    return tuple(_level_arrays(sentences, of_level[n], row) for n in sorted(of_level))


def _level_arrays(
    sentences: Sequence[_Sentence],
    contexts: Sequence[_Context],
    row: Int[np.ndarray, " states"],
) -> Level:
    index = {number: i for i, number in enumerate(dict.fromkeys(c.sentence for c in contexts))}
    chosen = [sentences[number] for number in index]
    lengths = np.array([len(s.rows) for s in chosen], dtype=np.int64)
    tokens = np.zeros((len(chosen), lengths.max()), dtype=np.int64)
    for i, sentence in enumerate(chosen):
        tokens[i, : lengths[i]] = sentence.rows
    places, states = _entity_tokens(chosen, tokens.shape[1])
    steps: defaultdict[int, list[int]] = defaultdict(list)
    for number, context in enumerate(contexts):
        steps[context.step].append(number)
    return Level(
        tokens=tokens,
        lengths=lengths,
        entity_places=places,
        entity_rows=row[states],
        sentence=np.array([index[c.sentence] for c in contexts], dtype=np.int64),
        position=np.array([c.position for c in contexts], dtype=np.int64),
        merges=tuple(
            Merge(
                contexts=np.array(steps[step], dtype=np.int64),
                previous=row[[contexts[n].previous for n in steps[step]]],
            )
            for step in sorted(steps)
        ),
    )
