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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from dntm.corpus.entity_slots import NOBODY, Eviction
from dntm.corpus.vocabulary import entity_rows
from dntm.model.config import ModelConfig
from dntm.model.fast.layout import (
    Call,
    Context,
    Layout,
    Level,
    Sentence,
    Side,
    lay_out,
    lay_out_encoding,
    side,
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
    active = kept = list(range(len(documents)))
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
    """Every merge of a window, in reading order: document by document, from left to right.

    These are the first fields of `Context`, one value per merge.
    """

    document: Int[np.ndarray, " merges"]
    sentence: Int[np.ndarray, " merges"]
    position: Int[np.ndarray, " merges"]
    entity: Int[np.ndarray, " merges"]
    previous: Int[np.ndarray, " merges"]
    state: Int[np.ndarray, " merges"]


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
    restored: tuple[SlotChange, ...]
    """The changes whose new occupants had no slot when the window began."""

    def mentioned(self, positions: Int[np.ndarray, " positions"]) -> Int[np.ndarray, " positions"]:
        """Table row of the state of the entity at each position in reading order, or -1."""
        states = np.full(len(self.layout.tokens), -1, dtype=np.int64)
        states[self.entity_places] = self.entity_rows
        found: Int[np.ndarray, " positions"] = states[self.layout.read[positions]]
        return found


def plan(
    documents: Sequence[EncodedDocument],
    config: ModelConfig,
    continues: Sequence[bool] | None = None,
    *,
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
    entities, dynamic_input = config.entities, config.dynamic_input
    contexts: list[Context] = []
    changes: list[SlotChange] = []
    restored: list[int] = []
    """Indices of changes. Restored states are numbered -1, -2, ... until all are known."""
    before: list[Int[np.ndarray, " entities"]] = []
    mentions = [[_mentions(sentence, entities) for sentence in text] for text in documents]
    current = np.arange(len(documents) * entities).reshape(len(documents), entities)
    memory, begins = current.size, 0
    for document, found in enumerate(mentions):
        evicted = evictions[document] if evictions else [()] * len(found)
        lost: dict[int, int] = {}
        # An evicted entity may return in another slot.
        last = {entity: s for s, mentioned in enumerate(found) for _, entity in mentioned}
        if any(evicted):
            last = dict.fromkeys(last, len(found) - 1)
        for s, mentioned in enumerate(found):
            read_as_output = config.dynamic_output and (continues[document] or s + 1 < len(found))
            encoded = [
                (position, entity)
                for position, entity in mentioned
                if every_context
                or read_as_output
                or (dynamic_input and (continues[document] or last[entity] > s))
            ]
            for position, slot, entity, old in evicted[s]:
                if entity not in lost:
                    restored.append(len(changes))
                after = lost.pop(entity, -len(restored))
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
                level = _level(mentioned, encoded, before[-1] - memory, contexts)
            for position, entity in encoded:
                previous, step = int(current[document, entity]), 0
                if previous >= memory and contexts[previous - memory].level >= level:
                    step = contexts[previous - memory].step + 1
                current[document, entity] = state = memory + len(contexts)
                own = (document, len(before) - 1, position, entity + 1, previous, state)
                contexts.append(Context(*own, level, step))
    row = _table_rows(contexts, memory, len(restored))
    changes = [c._replace(before=int(row[c.before]), after=int(row[c.after])) for c in changes]
    contexts = [
        c._replace(previous=int(row[c.previous]), state=int(row[c.state])) for c in contexts
    ]
    known = row[np.array(before, dtype=np.int64).reshape(len(before), entities)]
    made_before = memory + len(restored) + (0 if dynamic_input else len(contexts))
    sentences = [sentence for text in documents for sentence in text]
    flat = [mentioned for found in mentions for mentioned in found]
    read = _sides(sentences, flat, known, contexts if encoder else (), made_before)
    ahead, levels = lay_out_encoding(read, contexts if encoder else ())
    back = [changes[change] for change in restored]
    merges = Merges(*np.array([c[:6] for c in contexts], dtype=np.int64).reshape(-1, 6).T)
    states = [
        [np.arange(d * entities, (d + 1) * entities), merges.state[merges.document == d]]
        for d in range(len(documents))
    ]
    for change in back:
        states[change.document].append(np.array([change.after]))
    layout = lay_out(documents, continues)
    number = layout.tokens[layout.read] - entity_rows(entities).start
    mentioned_at = np.flatnonzero((number >= 0) & (number < entities))
    return Window(
        layout=layout,
        ahead=ahead,
        levels=levels,
        merges=merges,
        entity_places=layout.read[mentioned_at],
        entity_rows=known[layout.sentence[mentioned_at], number[mentioned_at]],
        states=tuple(np.concatenate(own) for own in states),
        known=known,
        memory=row[current],
        changes=tuple(changes),
        restored=tuple(back),
    )


Mentioned = tuple[tuple[int, int], ...]
"""Position and entity (from zero) of each mention of a sentence."""


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


def _table_rows(
    contexts: Sequence[Context], memory: int, restored: int
) -> Int[np.ndarray, " states"]:
    """The table row of each state: memory, restored states, contexts by level and step."""
    ranked = sorted(range(len(contexts)), key=lambda c: (contexts[c].level, contexts[c].step))
    row = np.arange(memory + len(contexts) + restored)
    row[memory + np.array(ranked, dtype=np.int64)] = memory + restored + np.arange(len(ranked))
    row[memory + len(contexts) :] = np.arange(memory, memory + restored)[::-1]
    return row


def _sides(
    sentences: Sequence[Sentence],
    mentions: Sequence[Mentioned],
    known: Int[np.ndarray, "sentences entities"],
    contexts: Sequence[Context],
    made_before: int,
) -> dict[int, tuple[Side, Side]]:
    """What the encoder reads of each sentence with contexts to encode, forward and backward."""
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for context in contexts:
        positions[context.sentence].append(context.position)
    found = {}
    for s, encoded in positions.items():
        rows, states = sentences[s], {t: int(known[s, entity]) for t, entity in mentions[s]}
        end = len(rows) - 1
        assert states.keys().isdisjoint((0, end)), "<bos> and <eos> surround every sentence"
        mirrored = {end - t: state for t, state in states.items()}
        found[s] = (
            side(rows, states, {t: t - 1 for t in encoded}, made_before),
            side(rows[::-1], mirrored, {t: end - t - 1 for t in encoded}, made_before),
        )
    return found
