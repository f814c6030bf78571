"""Lending: what an entity without a row remembers until it has one again (`corpus.rows`).

An entity that loses its row leaves its state d behind, and when it was mentioned last and how often
(salience); with these it comes back. A newcomer begins with the initial state and no mention. Who
has which row in a window is part of its plan (`fast.window`): a loan takes place at a mention, and
what a model says of the words before it does not know of it.
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
from dntm.model.salience import Mentions


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


def guests(
    kept: Sequence[Kept], window: Window, initial: Float[Tensor, " state_dim"]
) -> Float[Tensor, "guests state_dim"]:
    """The states with which a window's guests come in."""
    found = []
    for change in filter(window.is_guest, window.changes):
        memory = kept[change.document].memories.get(change.entity) if kept else None
        found.append(initial if memory is None else memory.d)
    return torch.stack(found)


def keep(
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


def follow_changes(mentions: Mentions, window: Window, kept: Sequence[Kept]) -> Lost:
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
