"""Schedule: which sentences can be encoded side by side (Section 3, made fast but not changed).

A stretch is the next few sentences of every document of a batch. With dynamic input a sentence
waits only for the last earlier sentences that mention one of the entities it reads:

    level(sentence) = max over these entities e of 1 + level(last earlier sentence that mentions e)

so all sentences of a level, over all documents, are encoded in one call. The encoder reads up to a
mention, never the mention itself: a sentence's only mention is merged, which takes no level of its
own, but not read. With static input there is one level. Every state d_{e,i} is a row of one growing
table: first the memory the stretch begins with, a row for each document and entity, then each
merged context, level by level. Each sentence knows the row of every entity as of its start. A
context nobody reads is never encoded.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from dntm.corpus.vocabulary import SPECIALS
from dntm.layout.encoding import Context, Level, Reading, Run, lay_out_encoding, read_up_to
from dntm.layout.segments import Layout, Sentence, lay_out

FIRST = len(SPECIALS)
"""The row of entity 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """How to read the next sentences of every document of a batch."""

    layout: Layout
    ahead: tuple[Run, Run]
    """What the encoder reads before anything else, forward and backward."""
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

    def begins(self) -> Int[np.ndarray, "sentences entities"]:
        """The table row of each entity's state as each sentence begins."""
        rows = np.empty_like(self.known)
        for document, states in enumerate(self.states):
            mine = self.layout.document == document
            rows[mine] = states[self.known[mine]]
        return rows


@dataclass(frozen=True, slots=True)
class _Sentence:
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
    contexts: list[Context] = []
    current = np.arange(len(documents) * entities).reshape(len(documents), entities)
    for document, text in enumerate(documents):
        found = [_mentions(rows, entities) for rows in text]
        last = {entity: s for s, mentions in enumerate(found) for _, entity in mentions}
        for s, (rows, mentions) in enumerate(zip(text, found, strict=True)):
            sentence = _Sentence(rows, mentions, current[document].copy())
            read_as_output = dynamic_output and (goes_on[document] or s + 1 < len(text))
            encoded = [
                (position, entity)
                for position, entity in mentions
                if read_as_output or (dynamic_input and (goes_on[document] or last[entity] > s))
            ]
            level = _level(sentence, encoded, contexts, current.size) if dynamic_input else 0
            for position, entity in encoded:
                previous = int(current[document, entity])
                step = _step(previous - current.size, level, contexts)
                current[document, entity] = current.size + len(contexts)
                contexts.append(Context(document, len(sentences), position, previous, level, step))
            sentences.append(sentence)
    made_before = current.size + (0 if dynamic_input else len(contexts))
    readings = _readings(sentences, contexts, made_before)
    return _assemble(lay_out(documents, goes_on), (sentences, contexts, readings), current)


def _mentions(rows: Sentence, entities: int) -> tuple[tuple[int, int], ...]:
    return tuple((t, r - FIRST) for t, r in enumerate(rows) if FIRST <= r < FIRST + entities)


def _level(
    sentence: _Sentence,
    encoded: Sequence[tuple[int, int]],
    contexts: Sequence[Context],
    memory: int,
) -> int:
    """The level of a sentence; its mention to encode, if it is only one, is not read."""
    level = 0
    for mention in sentence.mentions if encoded else ():
        state = int(sentence.before[mention[1]]) - memory
        if state >= 0:
            level = max(level, contexts[state].level + (encoded != [mention]))
    return level


def _step(previous: int, level: int, contexts: Sequence[Context]) -> int:
    """How many merges of the same level come before one that follows context `previous`."""
    if previous < 0 or contexts[previous].level < level:
        return 0
    return contexts[previous].step + 1


def _readings(
    sentences: Sequence[_Sentence], contexts: Sequence[Context], made_before: int
) -> dict[int, tuple[Reading, Reading]]:
    """How the encoder reads each sentence that has something to encode."""
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for context in contexts:
        positions[context.sentence].append(context.position)
    readings = {}
    for number, found in positions.items():
        sentence = sentences[number]
        states = {position: int(sentence.before[entity]) for position, entity in sentence.mentions}
        _check_edges(sentence.rows, states)
        readings[number] = read_up_to(sentence.rows, states, found, made_before)
    return readings


def _check_edges(rows: Sentence, entities: Iterable[int]) -> None:
    for position in entities:
        if not 0 < position < len(rows) - 1:
            raise ValueError(
                f"row {rows[position]} is an entity at the edge of sentence {list(rows)}, "
                "expected <bos> before and <eos> after it"
            )


def _assemble(
    layout: Layout,
    encoding: tuple[Sequence[_Sentence], Sequence[Context], Mapping[int, tuple[Reading, Reading]]],
    current: Int[np.ndarray, "documents entities"],
) -> Stretch:
    """Number the states by their table rows and make the arrays."""
    sentences, contexts, readings = encoding
    documents, entities = current.shape
    ranked = sorted(range(len(contexts)), key=lambda c: (contexts[c].level, contexts[c].step))
    row = np.arange(current.size + len(contexts))
    row[current.size + np.array(ranked, dtype=np.int64)] = current.size + np.arange(len(ranked))
    owned = [list(range(d * entities, (d + 1) * entities)) for d in range(documents)]
    local = np.arange(current.size + len(contexts)) % max(entities, 1)
    for number, context in enumerate(contexts, start=current.size):
        local[number] = len(owned[context.document])
        owned[context.document].append(number)
    starts = np.cumsum([0, *(len(s.rows) for s in sentences)])
    tokens = [
        (start + position, s.before[entity])
        for start, s in zip(starts, sentences, strict=False)
        for position, entity in s.mentions
    ]
    places, states = np.array(tokens, dtype=np.int64).reshape(-1, 2).T
    known = np.array([s.before for s in sentences], dtype=np.int64)
    ahead, levels = lay_out_encoding(readings, contexts, row)
    return Stretch(
        layout=layout,
        ahead=ahead,
        levels=levels,
        entity_places=layout.read[places],
        entity_rows=row[states],
        states=tuple(row[numbers] for numbers in owned),
        known=local[known.reshape(len(sentences), entities)],
        memory=row[current],
    )
