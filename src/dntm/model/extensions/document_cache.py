"""Document cache: every predicted token of a document so far, as keys and values.

Entry i has the key h_i, the token w_i that was just read, and the value w_{i+1} that followed. From
position t, entries i < t of the same document are visible, <eos> included, up to the last `SIZE`.

Values are rows of the vocabulary. When an entity is evicted (`corpus.entity_slots`), its entries
are hidden until it has a slot again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import row_of_entity
from dntm.model.fast.layout import indices
from dntm.model.fast.window import Window

SIZE = 10_000
"""Number of tokens of a document that are kept."""

Entries = tuple[Float[Tensor, "_ hidden_dim"], Int[np.ndarray, "2 _"]]
"""Keys, and the rows of the values and of the tokens before them; -e for an evicted entity e."""


class CacheState(NamedTuple):
    """The entries of each document, one part per window; later states share the parts."""

    documents: tuple[tuple[Entries, ...], ...]

    def select(self, documents: Sequence[int]) -> "CacheState":
        """The state of these documents, in this order."""
        return CacheState(tuple(self.documents[document] for document in documents))

    def detach(self) -> "CacheState":
        """The state itself: its keys have no gradients."""
        return self

    def after(self, window: Window, h: Float[Tensor, "places hidden_dim"]) -> "CacheState":
        """The state after a window."""
        found = []
        for number, before in enumerate(self.documents):
            parts = before
            own, rows = _entries(window, number)
            if not len(own):
                found.append(parts)
                continue
            if any(change.document == number for change in window.changes):
                *_, (_, labels) = _labels(window, number, parts, own, rows)
                ends = np.cumsum([len(keys) for keys, _ in parts], dtype=np.int64)
                *earlier, rows = np.split(labels, ends, axis=1)
                parts = tuple((keys, old) for (keys, _), old in zip(parts, earlier, strict=True))
            keys = h.detach()[indices(window.layout.read[own], h)]
            found.append(_forget((*parts, (keys, rows))))
        return CacheState(tuple(found))


def _forget(parts: tuple[Entries, ...]) -> tuple[Entries, ...]:
    """The parts that reach into the last `SIZE` entries."""
    sizes = [len(keys) for keys, _ in parts]
    later = np.cumsum(sizes[::-1])[::-1] - sizes
    return tuple(part for part, n in zip(parts, later, strict=True) if n < SIZE)


def _entries(
    window: Window, document: int
) -> tuple[Int[np.ndarray, " own"], Int[np.ndarray, "2 own"]]:
    """Positions of a document's new entries, and the rows of their values and tokens."""
    layout = window.layout
    inside = np.flatnonzero(layout.document[layout.sentence[layout.predicting]] == document)
    own = layout.predicting[inside]
    return own, np.stack([layout.targets[inside], layout.tokens[layout.read[own]]])


def _labels(
    window: Window,
    document: int,
    parts: Sequence[Entries],
    own: Int[np.ndarray, " own"],
    rows: Int[np.ndarray, "2 own"],
) -> Iterator[tuple[int, Int[np.ndarray, "2 entries"]]]:
    """The rows of all entries from a position on; once more after each change of a slot.

    The entries of an evicted entity lose their row, those of a restored one get one again.
    """
    labels = np.concatenate([*(part for _, part in parts), rows], axis=1)
    yield 0, labels
    for change in window.changes:
        if change.document == document:
            row = row_of_entity(change.slot + 1)
            # Values predicted before the change, and tokens read up to it.
            until = [[np.sum(own < change.token)], [np.sum(own <= change.token)]]
            past = np.arange(labels.shape[1]) < labels.shape[1] - len(own) + np.array(until)
            hidden = np.where(past & (labels == row), -change.evicted, labels)
            labels = np.where(labels == -change.entity, row, hidden)
            yield change.token, labels


class CacheEntries(NamedTuple):
    """Some positions of one document, and the entries they look up."""

    chosen: slice
    """Which of the requested positions."""
    keys: tuple[Float[Tensor, "_ hidden_dim"], ...]
    """h_i of every entry, in parts, so that they need not be copied."""
    values: Int[Tensor, " entries"]
    """The row of w_{i+1}; negative for an evicted entity."""
    tokens: Int[np.ndarray, " entries"]
    """The row of w_i."""
    current: Int[np.ndarray, " positions"]
    """The row of w_t."""
    age: Int[np.ndarray, "positions entries"]
    """t - i in predicted tokens; below 1 for entries still to come."""
    hidden: Bool[Tensor, "positions entries"]
    """Entries that a position cannot see."""

    def similarity(
        self, queries: Float[Tensor, "positions hidden_dim"]
    ) -> Float[Tensor, "positions entries"]:
        """The product of each query with every key."""
        return torch.cat([queries @ keys.t() for keys in self.keys], 1)

    def same_token(self) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
        """The pairs of a position and an entry with w_i = w_t."""
        pairs = np.nonzero(self.tokens == self.current[:, None])
        position, entry = (torch.from_numpy(p).to(self.values.device) for p in pairs)
        return position, entry


def lookup(
    window: Window,
    before: CacheState,
    h: Float[Tensor, "places hidden_dim"],
    positions: Int[np.ndarray, " positions"],
) -> Iterator[CacheEntries]:
    """The entries that rising positions of a window look up.

    One item per document, and one more after each of its slot changes.
    """
    layout = window.layout
    document = layout.document[layout.sentence[positions]]
    for number in np.unique(document).tolist():
        parts = before.documents[number]
        own, rows = _entries(window, number)
        first, end = np.searchsorted(document, (number, number + 1)).tolist()
        at = positions[first:end]
        keys = (*(key for key, _ in parts), h[indices(layout.read[own], h)])
        earlier = sum(len(key) for key, _ in parts)
        # An entry is visible once its value has been read.
        seen = earlier + np.searchsorted(own + 1, at, side="right")
        age = seen[:, None].astype(np.int32) - np.arange(earlier + len(own), dtype=np.int32)
        found = list(_labels(window, number, parts, own, rows))
        cuts = np.searchsorted(at, [start for start, _ in found[1:]]).tolist()
        for (_, (values, tokens)), *part in zip(found, [0, *cuts], [*cuts, len(at)], strict=True):
            inside = slice(*part)
            hidden = (age[inside] < 1) | (age[inside] > SIZE) | (values < 0)
            yield CacheEntries(
                slice(first + part[0], first + part[1]),
                keys,
                indices(values, h),
                tokens,
                layout.tokens[layout.read[at[inside]]],
                age[inside],
                torch.from_numpy(hidden).to(h.device),
            )
