"""BPTT windows: the next few sentences of every document of a batch, and how to read them.

`windows` cuts documents into windows; gradients stop between them (truncated backpropagation). A
`Window` is the plan for one of them: which sentences can be encoded side by side (Section 3, made
fast but not changed). With dynamic input a sentence waits only for the last earlier sentences that
mention one of the entities it reads:

    level(sentence) = max over these entities e of 1 + level(last earlier sentence that mentions e)

so all sentences of a level, over all documents, are encoded in one call. A lone mention is never
read by the encoder, so its previous state may come from the same level. With static input there is
one level.

Every state d_{e,i} is a row of one growing table: first the memory the window begins with, a row
for each document and entity, then each merged context, level by level. A state is known by this row
everywhere. A context nobody reads is never encoded.

Where a row of the vocabulary changes hands (`corpus.rows`), the state it stands for is another row
of the table from there on: that of a guest, who had no row as the window began, or of one that lost
its row inside the window. The guests' states lie between the memory and the contexts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from dntm.corpus.rows import Loan
from dntm.corpus.vocabulary import entity_rows
from dntm.model.fast.encoding import Call, Context, Level, Side, lay_out_encoding, sides
from dntm.model.fast.layout import Layout, Sentence, lay_out

EncodedDocument = Sequence[Sentence]
"""A document's sentences as vocabulary rows, <bos> and <eos> around each."""
Loans = Sequence[Sequence[Sequence[Loan]]]
"""Of each sentence of each document; empty where there are none at all."""


class WindowText(NamedTuple):
    """The sentences of one window, before they are planned."""

    sentences: list[EncodedDocument]
    """The next sentences of every document that has some."""
    continues: list[bool]
    """Whether each of these documents has sentences after the window."""
    kept: list[int]
    """Indices of these documents in the window before: their state is `state.select(kept)`."""
    documents: list[int]
    """Indices of these documents in the batch."""
    loans: Loans


def windows(
    documents: Sequence[EncodedDocument], size: int, loans: Loans = ()
) -> Iterator[WindowText]:
    """Yields the batch `size` sentences at a time; a document that has ended is left out."""
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
            [loans[d][start:end] for d in active] if loans else (),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Merges:
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


class Change(NamedTuple):
    """A row changes hands; tokens count in reading order through the documents."""

    document: int
    begins: int
    """The <bos> of the sentence."""
    token: int
    """The token that predicts the new owner's mention, and knows of the change."""
    row: int
    """From zero."""
    entity: int
    """The new owner's number in its document."""
    former: int
    before: int
    """Table row of the former owner's state."""
    after: int
    """Table row of the new owner's."""


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
    changes: tuple[Change, ...]
    guests: int
    """How many states of guests there are, in the order of the changes that bring them in."""

    def mentioned(self, positions: Int[np.ndarray, " positions"]) -> Int[np.ndarray, " positions"]:
        """Table row of the state of the entity at each position in reading order, else -1."""
        states = np.full(len(self.layout.tokens), -1, dtype=np.int64)
        states[self.entity_places] = self.entity_rows
        found: Int[np.ndarray, " positions"] = states[self.layout.read[positions]]
        return found

    def is_guest(self, change: Change) -> bool:
        """Whether the new owner had no row as the window began."""
        return 0 <= change.after - self.memory.size < self.guests


def plan(
    documents: Sequence[EncodedDocument],
    *,
    entities: int,
    dynamic_input: bool,
    dynamic_output: bool,
    continues: Sequence[bool] | None = None,
    loans: Loans = (),
    every_context: bool = False,
) -> Window:
    """Plan the reading of each document's next sentences (none where it ended earlier).

    `continues[d]`: document d has sentences after these; all have if it is None. Of the others no
    context is encoded that only later sentences would need, so their state is of no further use;
    with `every_context` all are.
    """
    continues = [True] * len(documents) if continues is None else continues
    if len(continues) != len(documents):
        raise ValueError(
            f"continues tells of {len(continues)} documents, expected {len(documents)}"
        )
    contexts: list[Context] = []
    changes: list[Change] = []
    before: list[Int[np.ndarray, " entities"]] = []
    mentions = [[_mentions(sentence, entities) for sentence in text] for text in documents]
    current = np.arange(len(documents) * entities).reshape(len(documents), entities)
    guests = _guests(loans)
    made = current.size + guests
    unused, begins = iter(range(current.size, made)), 0
    for document, found in enumerate(mentions):
        lent = loans[document] if loans else [()] * len(found)
        lost: dict[int, int] = {}
        # Where rows are lent, what comes back may come back in another row.
        last = {entity: s for s, mentioned in enumerate(found) for _, entity in mentioned}
        if any(lent):
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
            for loan in lent[s]:
                after = lost.pop(loan.entity) if loan.entity in lost else next(unused)
                lost[loan.former] = int(current[document, loan.row - 1])
                current[document, loan.row - 1] = after
                token = begins + loan.position
                owners = loan.entity, loan.former, lost[loan.former], after
                changes.append(Change(document, begins, token, loan.row - 1, *owners))
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
    read = _sides(sentences, flat, known, contexts, made_before)
    layout = lay_out(documents, continues)
    window = _assemble(layout, flat, read, contexts, known, row[current])
    return _with_changes(window, changes, guests) if changes else window


Mentioned = tuple[tuple[int, int], ...]
"""Position and entity (from zero) of a sentence's mentions."""


def _guests(loans: Loans) -> int:
    """How many new owners there are that did not lose a row to an earlier loan of the window."""
    count = 0
    for sentences in loans:
        lost: set[int] = set()
        for loan in (loan for sentence in sentences for loan in sentence):
            count += loan.entity not in lost
            lost.discard(loan.entity)
            lost.add(loan.former)
    return count


def _with_changes(window: Window, changes: Sequence[Change], guests: int) -> Window:
    """The window with its changes, and with the guests' states among those of their documents."""
    window = replace(window, changes=tuple(changes), guests=guests)
    brought: list[list[int]] = [[] for _ in window.states]
    for change in window.changes:
        if window.is_guest(change):
            brought[change.document].append(change.after)
    states = zip(window.states, brought, strict=True)
    return replace(window, states=tuple(np.array([*own, *more], np.int64) for own, more in states))


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
    """How many merges of the same level come before one that follows context `previous`."""
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
    """What the encoder reads of each sentence that has a context to encode."""
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
    read: dict[int, tuple[Side, Side]],
    contexts: Sequence[Context],
    known: Int[np.ndarray, "sentences entities"],
    memory: Int[np.ndarray, "batch entities"],
) -> Window:
    """Make the arrays."""
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
    ahead, levels = lay_out_encoding(read, contexts)
    return Window(
        layout=layout,
        ahead=ahead,
        levels=levels,
        merges=Merges(
            document=document,
            sentence=sentence,
            position=position,
            entity=entity + 1,
            previous=previous,
            state=state,
        ),
        entity_places=layout.read[places],
        entity_rows=rows,
        states=tuple(
            np.concatenate((np.arange(d * entities, (d + 1) * entities), state[document == d]))
            for d in range(batch)
        ),
        known=known,
        memory=memory,
        changes=(),
        guests=0,
    )
