"""BPTT windows: the next few sentences of every document of a batch, and how to read them.

`windows` cuts documents into windows; gradients stop between them (truncated backpropagation). A
`Window` is the plan for one of them: which sentences can be encoded in parallel without changing
any result (Section 3). With dynamic input a sentence depends only on the last earlier sentences
that mention one of the entities it reads:

    level(sentence) = max over these entities e of 1 + level(last earlier sentence that mentions e)

All sentences of a level, over all documents, are encoded in one call. The encoder never reads a
lone mention itself, so its previous state may come from the same level. With static input there is
one level.

Every state d_{e,i} is a row of one growing table: first the memory from before the window, one row
per document and entity, then each merged context, level by level. A state is identified by this row
everywhere. Contexts that nothing reads are not encoded.

When a slot is reassigned (`corpus.entity_slots`), it refers to another row of the table from then
on: a restored state, whose entity had no slot when the window began, or the state of an entity that
was evicted within the window. Restored states lie between the memory and the contexts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from dntm.corpus.entity_slots import NOBODY, Eviction
from dntm.corpus.vocabulary import entity_rows
from dntm.model.fast.layout import (
    Call,
    Context,
    Layout,
    Level,
    Sentence,
    Side,
    lay_out,
    lay_out_encoding,
    sides,
)

EncodedDocument = Sequence[Sentence]
"""A document's sentences as vocabulary rows, each from <bos> to <eos>."""
Evictions = Sequence[Sequence[Sequence[Eviction]]]
"""Of each sentence of each document; empty if there are none at all."""


class WindowText(NamedTuple):
    """The sentences of one window, before they are planned."""

    sentences: list[EncodedDocument]
    """The next sentences of every document that has some."""
    continues: list[bool]
    """Whether each of these documents has sentences after the window."""
    kept: list[int]
    """Indices of these documents in the previous window: their state is `state.select(kept)`."""
    documents: list[int]
    """Indices of these documents in the batch."""
    start: int
    """The number of sentences of each document before the window."""
    evictions: Evictions


def windows(
    documents: Sequence[EncodedDocument], size: int, evictions: Evictions = ()
) -> Iterator[WindowText]:
    """Yields the batch `size` sentences at a time; documents that have ended are left out."""
    active = list(range(len(documents)))
    kept = list(range(len(documents)))
    for start in range(0, max(map(len, documents), default=0), size):
        end = start + size
        kept = [i for i, d in enumerate(active) if len(documents[d]) > start] if start else kept
        active = [active[i] for i in kept]
        yield WindowText(
            [documents[d][start:end] for d in active],
            [len(documents[d]) > end for d in active],
            kept,
            active,
            start,
            [evictions[d][start:end] for d in active] if evictions else (),
        )


class Merges(NamedTuple):
    """Every merge of a window, in reading order: document by document, from left to right."""

    document: Int[np.ndarray, " merges"]
    """Index of the document in the window."""
    sentence: Int[np.ndarray, " merges"]
    """Index of the sentence, counted through the documents of the window."""
    position: Int[np.ndarray, " merges"]
    """Index of the mention in its sentence; <bos> is 0."""
    entity: Int[np.ndarray, " merges"]
    """From 1."""
    previous: Int[np.ndarray, " merges"]
    """Table row of d_{e,i-1}."""
    state: Int[np.ndarray, " merges"]
    """Table row of d_{e,i}."""


class SlotChange(NamedTuple):
    """A slot is reassigned. Tokens are counted in reading order through the documents."""

    document: int
    begins: int
    """The <bos> of the sentence."""
    token: int
    """The change applies to predictions from this token on."""
    slot: int
    """From zero."""
    entity: int
    """The new occupant's number in its document, or NOBODY."""
    evicted: int
    before: int
    """Table row of the evicted entity's state."""
    after: int
    """Table row of the new occupant's state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """How to read the next sentences of every document of a batch."""

    layout: Layout
    ahead: tuple[Call, Call]
    """What the encoder reads before anything else, forward and backward."""
    levels: tuple[Level, ...]
    merges: Merges
    entity_places: Int[np.ndarray, " entity_places"]
    """Indices into `layout.tokens` of the entity tokens."""
    entity_rows: Int[np.ndarray, " entity_places"]
    """Table row of the state each of them has there."""
    states: tuple[Int[np.ndarray, " _"], ...]
    """The table rows of each document."""
    known: Int[np.ndarray, "sentences entities"]
    """`known[s, e]`: table row of d_e before sentence s."""
    memory: Int[np.ndarray, "batch entities"]
    """`memory[d, e]`: table row of d_e after the window."""
    changes: tuple[SlotChange, ...]
    restored: int
    """Number of restored states, in the order of the changes that need them."""

    def mentioned(self, positions: Int[np.ndarray, " positions"]) -> Int[np.ndarray, " positions"]:
        """Table row of the state of the entity at each position in reading order, or -1."""
        states = np.full(len(self.layout.tokens), -1, dtype=np.int64)
        states[self.entity_places] = self.entity_rows
        found: Int[np.ndarray, " positions"] = states[self.layout.read[positions]]
        return found

    def is_restored(self, change: SlotChange) -> bool:
        """Whether the new occupant had no slot when the window began."""
        return 0 <= change.after - self.memory.size < self.restored


def plan(
    documents: Sequence[EncodedDocument],
    *,
    entities: int,
    dynamic_input: bool,
    dynamic_output: bool,
    continues: Sequence[bool] | None = None,
    evictions: Evictions = (),
    every_context: bool = False,
    encoder: bool = True,
) -> Window:
    """Plan the reading of each document's next sentences (none if it has ended).

    `continues[d]` says whether document d has sentences after these; None means that all have. For
    the others, contexts that only later sentences would need are not encoded, so their state must
    not be used any further. `every_context` encodes all of them. Without an `encoder`, contexts
    come from elsewhere and only their merges are planned.
    """
    continues = [True] * len(documents) if continues is None else continues
    if len(continues) != len(documents):
        raise ValueError(f"continues has {len(continues)} items, expected {len(documents)}")
    contexts: list[Context] = []
    changes: list[SlotChange] = []
    before: list[Int[np.ndarray, " entities"]] = []
    mentions = [[_mentions(sentence, entities) for sentence in text] for text in documents]
    current = np.arange(len(documents) * entities).reshape(len(documents), entities)
    restored = _restored(evictions)
    made = current.size + restored
    unused, begins = iter(range(current.size, made)), 0
    for document, found in enumerate(mentions):
        evicted = evictions[document] if evictions else [()] * len(found)
        lost: dict[int, int] = {}
        # An evicted entity may return in another slot.
        last = {entity: s for s, mentioned in enumerate(found) for _, entity in mentioned}
        if any(evicted):
            last = dict.fromkeys(last, len(found) - 1)
        for s, mentioned in enumerate(found):
            read_as_output = dynamic_output and (continues[document] or s + 1 < len(found))
            encoded = [
                (position, entity)
                for position, entity in mentioned
                if every_context
                or read_as_output
                or (dynamic_input and (continues[document] or last[entity] > s))
            ]
            for eviction in evicted[s]:
                position, slot, entity, old = eviction
                after = lost.pop(entity) if entity in lost else next(unused)
                before_it = int(current[document, slot - 1])
                if old != NOBODY:
                    lost[old] = before_it
                current[document, slot - 1] = after
                token = begins + position
                changes.append(
                    SlotChange(document, begins, token, slot - 1, entity, old, before_it, after)
                )
            begins += len(documents[document][s])
            before.append(current[document].copy())
            level = 0
            if dynamic_input and encoded:
                level = _level(mentioned, encoded, before[-1] - made, contexts)
            for position, entity in encoded:
                previous = int(current[document, entity])
                step = _step(previous - made, level, contexts)
                state = made + len(contexts)
                current[document, entity] = state
                contexts.append(
                    Context(
                        document, len(before) - 1, position, entity, previous, state, level, step
                    )
                )
    row = _table_rows(contexts, made)
    changes = [c._replace(before=int(row[c.before]), after=int(row[c.after])) for c in changes]
    contexts = [
        c._replace(previous=int(row[c.previous]), state=int(row[c.state])) for c in contexts
    ]
    known = row[np.array(before, dtype=np.int64).reshape(len(before), entities)]
    made_before = made + (0 if dynamic_input else len(contexts))
    sentences = [sentence for text in documents for sentence in text]
    flat = [mentioned for found in mentions for mentioned in found]
    read = _sides(sentences, flat, known, contexts if encoder else (), made_before)
    encoding = lay_out_encoding(read, contexts if encoder else ())
    layout = lay_out(documents, continues)
    window = _assemble(layout, flat, encoding, contexts, known, row[current])
    return _with_changes(window, changes, restored) if changes else window


Mentioned = tuple[tuple[int, int], ...]
"""Position and entity (from zero) of each mention of a sentence."""


def _restored(evictions: Evictions) -> int:
    """Number of new occupants that were not evicted earlier in the same window."""
    count = 0
    for sentences in evictions:
        lost: set[int] = set()
        for eviction in (eviction for sentence in sentences for eviction in sentence):
            count += eviction.entity not in lost
            lost.discard(eviction.entity)
            lost.update({eviction.evicted} - {NOBODY})
    return count


def _with_changes(window: Window, changes: Sequence[SlotChange], restored: int) -> Window:
    """Add the changes, and the restored states to those of their documents."""
    window = replace(window, changes=tuple(changes), restored=restored)
    more: list[list[int]] = [[] for _ in window.states]
    for change in window.changes:
        if window.is_restored(change):
            more[change.document].append(change.after)
    states = zip(window.states, more, strict=True)
    return replace(window, states=tuple(np.array([*own, *new], np.int64) for own, new in states))


def _mentions(sentence: Sentence, entities: int) -> Mentioned:
    rows = entity_rows(entities)
    return tuple((t, r - rows.start) for t, r in enumerate(sentence) if rows.start <= r < rows.stop)


def _level(
    mentioned: Mentioned,
    encoded: Sequence[tuple[int, int]],
    before: Int[np.ndarray, " entities"],
    contexts: Sequence[Context],
) -> int:
    """The level of a sentence; `before[e]` is the index of e's last context, or negative."""
    level = 0
    for mention in mentioned:
        if (last := int(before[mention[1]])) >= 0:
            level = max(level, contexts[last].level + (encoded != [mention]))
    return level


def _step(previous: int, level: int, contexts: Sequence[Context]) -> int:
    """Number of merges on the same level before one that follows context `previous`."""
    if previous < 0 or contexts[previous].level < level:
        return 0
    return contexts[previous].step + 1


def _table_rows(contexts: Sequence[Context], memory: int) -> Int[np.ndarray, " states"]:
    """The table row of each state, the contexts sorted by level and step."""
    ranked = sorted(range(len(contexts)), key=lambda c: (contexts[c].level, contexts[c].step))
    row = np.arange(memory + len(contexts))
    row[memory + np.array(ranked, dtype=np.int64)] = memory + np.arange(len(ranked))
    return row


def _sides(
    sentences: Sequence[Sentence],
    mentions: Sequence[Mentioned],
    known: Int[np.ndarray, "sentences entities"],
    contexts: Sequence[Context],
    made_before: int,
) -> dict[int, tuple[Side, Side]]:
    """What the encoder reads of each sentence with contexts to encode."""
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for context in contexts:
        positions[context.sentence].append(context.position)
    found = {}
    for s, encoded in positions.items():
        states = {position: int(known[s, entity]) for position, entity in mentions[s]}
        _check_edges(sentences[s], states)
        found[s] = sides(sentences[s], states, encoded, made_before)
    return found


def _check_edges(rows: Sentence, entities: Iterable[int]) -> None:
    for position in entities:
        if not 0 < position < len(rows) - 1:
            raise ValueError(
                f"row {rows[position]} is an entity at the edge of sentence {list(rows)}, "
                "expected <bos> before and <eos> after it"
            )


def _assemble(  # noqa: PLR0917
    layout: Layout,
    mentions: Sequence[Mentioned],
    encoding: tuple[tuple[Call, Call], tuple[Level, ...]],
    contexts: Sequence[Context],
    known: Int[np.ndarray, "sentences entities"],
    memory: Int[np.ndarray, "batch entities"],
) -> Window:
    """Build the arrays."""
    batch, entities = memory.shape
    columns = np.array([c[:6] for c in contexts], dtype=np.int64).reshape(-1, 6).T
    document, sentence, position, entity, previous, state = columns
    starts = np.cumsum(np.bincount(layout.sentence, minlength=len(known)))
    starts = np.concatenate(([0], starts))
    tokens = [
        (start + position, known[s, entity])
        for s, (start, mentioned) in enumerate(zip(starts, mentions, strict=False))
        for position, entity in mentioned
    ]
    places, rows = np.array(tokens, dtype=np.int64).reshape(-1, 2).T
    return Window(
        layout=layout,
        ahead=encoding[0],
        levels=encoding[1],
        merges=Merges(document, sentence, position, entity + 1, previous, state),
        entity_places=layout.read[places],
        entity_rows=rows,
        states=tuple(
            np.concatenate((np.arange(d * entities, (d + 1) * entities), state[document == d]))
            for d in range(batch)
        ),
        known=known,
        memory=memory,
        changes=(),
        restored=0,
    )
