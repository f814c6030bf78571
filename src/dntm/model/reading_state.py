"""ReadingState: what the model carries from one sentence of a document to the next.

An entity that loses its row (`corpus.rows`) leaves its state d behind, and when it was mentioned
last and how often (salience); with these it comes back. A newcomer begins with the initial state
and no mention. Who has which row in a window is part of its plan (`fast.window`): a loan takes
place at a mention, and what a model says of the words before it does not know of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import BOS
from dntm.model.fast.layout import Layout
from dntm.model.fast.window import Window
from dntm.model.history import History
from dntm.model.salience import Mentions, follow
from dntm.model.transformer import Past


class LastMention(NamedTuple):
    """Of an entity without a row."""

    sentence: int = 0
    """Counted from 1; 0 and below are sentences before those that are counted."""
    times: int = 0


Lost = Mapping[tuple[int, int], LastMention]
"""By document and entity."""


class Memory(NamedTuple):
    """What an entity without a row remembers."""

    d: Float[Tensor, " state_dim"]
    last: LastMention


@dataclass(frozen=True, slots=True)
class Kept:
    """What those entities of one document remember that have no row at present."""

    memories: Mapping[int, Memory] = field(default_factory=dict)
    sentences: int = 0
    """Sentences begun since the document's first loan, from whose window on they are counted."""

    def detach(self) -> "Kept":
        """The same values, cut off from their gradients."""
        return replace(
            self, memories={e: m._replace(d=m.d.detach()) for e, m in self.memories.items()}
        )


@dataclass(frozen=True, slots=True)
class Followed:
    """Mentions through a window."""

    tokens: Mentions
    """As of each token in reading order."""
    after: Mentions
    """Of each document after the window."""
    lost: Lost
    """The last mentions of those that have no row any more."""


@dataclass(frozen=True, slots=True)
class ReadingState:
    """The LSTM's state and every entity's, for each document of a batch."""

    h: Float[Tensor, "batch hidden_dim"]
    c: Float[Tensor, "batch hidden_dim"]
    memory: Float[Tensor, "batch entities state_dim"]
    """d_{e,i}, and after it what else the merging function remembers."""
    mentions: Mentions | None = None
    """Of each document's entities, where a term of the model needs them."""
    kept: tuple[Kept, ...] = ()
    """Of each document's entities that have no row; empty where no document ever lent one."""
    history: tuple[History, ...] | None = None
    """Of each document, where the model looks back on it."""
    past: tuple[Past, ...] | None = None
    """Of each document, where the model is a Transformer."""
    current: Float[Tensor, "batch hidden_dim"] | None = None
    """v_c of each document, where the model is one after EntityNLM."""

    def detach(self) -> "ReadingState":
        """The same values, cut off from their gradients."""
        return replace(
            self,
            h=self.h.detach(),
            c=self.c.detach(),
            memory=self.memory.detach(),
            kept=tuple(kept.detach() for kept in self.kept),
            current=None if self.current is None else self.current.detach(),
        )

    def select(self, documents: Sequence[int]) -> "ReadingState":
        """The state of these documents only, in this order (one may come several times)."""
        rows = torch.tensor(documents, dtype=torch.long, device=self.h.device)
        return ReadingState(
            self.h.index_select(0, rows),
            self.c.index_select(0, rows),
            self.memory.index_select(0, rows),
            None if self.mentions is None else self.mentions.at(np.array(documents, np.int64)),
            tuple(self.kept[document] for document in documents) if self.kept else (),
            None if self.history is None else tuple(self.history[d] for d in documents),
            None if self.past is None else tuple(self.past[d] for d in documents),
            None if self.current is None else self.current.index_select(0, rows),
        )

    def guests(
        self, window: Window, initial: Float[Tensor, " state_dim"]
    ) -> Float[Tensor, "guests state_dim"]:
        """The states with which a window's guests come in; `initial` is a newcomer's."""
        found = []
        for change in filter(window.is_guest, window.changes):
            kept = self.kept[change.document].memories if self.kept else {}
            found.append(kept[change.entity].d if change.entity in kept else initial)
        return torch.stack(found)

    def follow(self, window: Window) -> Followed | None:
        """The mentions through a window, where a term of the model needs them."""
        if self.mentions is None:
            return None
        tokens, after = follow(window.layout, self.mentions)
        lost = _follow_changes(tokens, window, self.kept)
        if window.changes:
            document = _document(window.layout)
            number, reversed_last = np.unique(document[::-1], return_index=True)
            last = tokens.at(len(document) - 1 - reversed_last)
            after.ago[number], after.times[number] = last
        return Followed(tokens, after, lost)

    def after(
        self,
        window: Window,
        table: Float[Tensor, "states state_dim"],
        h: Float[Tensor, "active hidden_dim"],
        c: Float[Tensor, "active hidden_dim"],
        followed: Followed | None,
    ) -> "ReadingState":
        """The state after a window: the documents it reads, in its order, end with h and c."""
        order = torch.from_numpy(window.layout.order).to(h.device)
        rows = torch.from_numpy(window.memory.ravel()).to(h.device)
        return replace(
            self,
            h=self.h.index_copy(0, order, h),
            c=self.c.index_copy(0, order, c),
            memory=table.index_select(0, rows).view_as(self.memory),
            mentions=None if followed is None else followed.after,
            kept=_keep(self.kept, window, table, {} if followed is None else followed.lost),
        )


def _keep(
    kept: Sequence[Kept], window: Window, table: Float[Tensor, "states state_dim"], lost: Lost
) -> tuple[Kept, ...]:
    """What is kept after a window with this table of states; nothing where it never was."""
    if not kept and not window.changes:
        return ()
    batch = len(window.memory)
    before = kept or (Kept(),) * batch
    states: list[dict[int, int]] = [{} for _ in range(batch)]
    memories: list[dict[int, Memory]] = [dict(document.memories) for document in before]
    for change in window.changes:
        states[change.document].pop(change.entity, None)
        memories[change.document].pop(change.entity, None)
        states[change.document][change.former] = change.before
    for number, rows in enumerate(states):
        for entity, row in rows.items():
            sentence, times = lost.get((number, entity), LastMention())
            last = LastMention(before[number].sentences + sentence, times)
            memories[number][entity] = Memory(table[row].clone(), last)
    begun = np.bincount(_document(window.layout), _begins(window.layout), minlength=batch)
    return tuple(
        Kept(found, document.sentences + int(more))
        for found, document, more in zip(memories, before, begun, strict=True)
    )


def _follow_changes(mentions: Mentions, window: Window, kept: Sequence[Kept]) -> Lost:
    """Correct the mentions as of each token where rows change hands, in place.

    Returns the last mentions of those that have lost a row in the window and not come back.
    """
    if not window.changes:
        return {}
    ago, times = (column.copy() for column in mentions)
    document, begins = _document(window.layout), _begins(window.layout)
    begun = np.cumsum(begins)
    lost: dict[tuple[int, int], LastMention] = {}
    for number, _, token, row, entity, former, *_ in window.changes:
        first, end = np.searchsorted(document, (number, number + 1))
        sentence = begun - (begun[first] - begins[first])
        came = lost.pop((number, entity), None) or _recalled(kept, number, entity)
        lost[number, former] = LastMention(
            int(sentence[token] - mentions.ago[token, row]), int(mentions.times[token, row])
        )
        own = slice(token, end)
        more = times[own, row] - times[token, row]
        mentions.times[own, row] = came.times + more
        since = sentence[own] - came.sentence
        mentions.ago[own, row] = np.where(more > 0, ago[own, row], since)
    return lost


def _recalled(kept: Sequence[Kept], document: int, entity: int) -> LastMention:
    """The last mention of a guest, in sentences of the window."""
    memory = kept[document].memories.get(entity) if kept else None
    if memory is None:
        return LastMention()
    return LastMention(memory.last.sentence - kept[document].sentences, memory.last.times)


def _document(layout: Layout) -> Int[np.ndarray, " read"]:
    """The document of each token in reading order."""
    document: Int[np.ndarray, " read"] = layout.document[layout.sentence]
    return document


def _begins(layout: Layout) -> Int[np.ndarray, " read"]:
    """1 where a sentence begins, else 0."""
    begins: Int[np.ndarray, " read"] = (layout.tokens[layout.read] == BOS).astype(np.int64)
    return begins
