"""History: what a document has said so far, and how it is said again.

A moment i is one predicted token: h_i, the token w_i just read and the token w_{i+1} that followed.
The neural cache (`cache`) and the pointer (`pointer`) look back from a moment t on those before it
in the document, <eos> too, up to the last `SIZE`; each document begins without any.

An entity is a row like any other, and what was said of it counts for it: where its row is lent to
another one (`corpus.rows`), its tokens are left out until it has a row again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import row_of_entity
from dntm.model.fast.window import Window

SIZE = 10_000
"""How many tokens of a document are remembered."""


class History(NamedTuple):
    """What one document has said: each predicted token with the h and the token before it."""

    parts: tuple[tuple[Float[Tensor, "_ hidden_dim"], Int[np.ndarray, "2 _"]], ...] = ()
    """A part a window, which later histories share: h, and the rows of the predicted token and of
    the one before it; -e for an entity e whose row another one has."""

    def and_then(
        self, h: Float[Tensor, "tokens hidden_dim"], rows: Int[np.ndarray, "2 tokens"]
    ) -> "History":
        """The history after these tokens; parts too long ago are forgotten."""
        parts = (*self.parts, (h, rows))
        sizes = [len(h) for h, _ in parts]
        later = np.cumsum(sizes[::-1])[::-1] - sizes
        return History(tuple(part for part, n in zip(parts, later, strict=True) if n < SIZE))


def remember(
    window: Window, before: Sequence[History], h: Float[Tensor, "places hidden_dim"]
) -> tuple[History, ...]:
    """The history of each document after a window."""
    found = []
    for number, history in enumerate(before):
        own, rows = _said(window, number)
        if not len(own):
            found.append(history)
            continue
        parts = history.parts
        if any(change.document == number for change in window.changes):
            *_, (_, labels) = _labels(window, number, history, own, rows)
            ends = np.cumsum([len(key) for key, _ in parts], dtype=np.int64)
            *earlier, rows = np.split(labels, ends, axis=1)
            parts = tuple((key, said) for (key, _), said in zip(parts, earlier, strict=True))
        keys = h.detach()[torch.from_numpy(window.layout.read[own]).to(h.device)]
        found.append(History(parts).and_then(keys, rows))
    return tuple(found)


def _said(
    window: Window, document: int
) -> tuple[Int[np.ndarray, " own"], Int[np.ndarray, "2 own"]]:
    """Positions before the tokens that a document predicts in a window; their rows and those of
    the tokens at these positions.
    """
    layout = window.layout
    inside = np.flatnonzero(layout.document[layout.sentence[layout.predicting]] == document)
    own = layout.predicting[inside]
    return own, np.stack([layout.targets[inside], layout.tokens[layout.read[own]]])


def _labels(
    window: Window,
    document: int,
    history: History,
    own: Int[np.ndarray, " own"],
    rows: Int[np.ndarray, "2 own"],
) -> Iterator[tuple[int, Int[np.ndarray, "2 said"]]]:
    """Whose is what was said: the rows from a position on, once more each time that one is lent.

    What the former owner said has no row from then on, what the new one said before has again.
    """
    labels = np.concatenate([*(part for _, part in history.parts), rows], axis=1)
    yield 0, labels
    for change in window.changes:
        if change.document == document:
            row = row_of_entity(change.row + 1)
            # Predicted tokens up to the change, and tokens up to it that were read.
            until = [[np.sum(own < change.token)], [np.sum(own <= change.token)]]
            past = np.arange(labels.shape[1]) < labels.shape[1] - len(own) + np.array(until)
            lost = np.where(past & (labels == row), -change.former, labels)
            labels = np.where(labels == -change.entity, row, lost)
            yield change.token, labels


class Moments(NamedTuple):
    """Some positions of one document, and the moments they can look back on."""

    chosen: slice
    """Which of the positions that were asked for."""
    keys: tuple[Float[Tensor, "_ hidden_dim"], ...]
    """h_i of every moment, in parts: together they would have to be copied."""
    said: Int[Tensor, " said"]
    """The row of w_{i+1}; negative where an entity has none."""
    read: Int[np.ndarray, " said"]
    """The row of w_i."""
    now: Int[np.ndarray, " positions"]
    """The row of w_t."""
    ago: Int[np.ndarray, "positions said"]
    """t - i, counted in predicted tokens; below 1 where i is still to come."""
    hidden: Bool[Tensor, "positions said"]
    """Moments that a position does not see."""

    def likeness(
        self, queries: Float[Tensor, "positions hidden_dim"]
    ) -> Float[Tensor, "positions said"]:
        """The products of a query at each position with every h_i."""
        return torch.cat([queries @ keys.t() for keys in self.keys], 1)

    def same(self) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
        """The pairs of a position and a moment with w_i = w_t."""
        pairs = np.nonzero(self.read == self.now[:, None])
        position, moment = (torch.from_numpy(p).to(self.said.device) for p in pairs)
        return position, moment


def look_back(
    window: Window,
    before: Sequence[History],
    h: Float[Tensor, "places hidden_dim"],
    positions: Int[np.ndarray, " positions"],
) -> Iterator[Moments]:
    """What positions of a window can look back on: one document after the other, cut where rows
    are lent. Positions are rising, in reading order.
    """
    layout = window.layout
    document = layout.document[layout.sentence[positions]]
    for number in np.unique(document).tolist():
        own, rows = _said(window, number)
        first, end = np.searchsorted(document, (number, number + 1)).tolist()
        at, parts = positions[first:end], before[number].parts
        keys = (*(key for key, _ in parts), h[_at(layout.read[own], h)])
        earlier = sum(len(key) for key, _ in parts)
        # A token may be recalled from the moment on at which it has been read itself.
        seen = earlier + np.searchsorted(own + 1, at, side="right")
        ago = seen[:, None].astype(np.int32) - np.arange(earlier + len(own), dtype=np.int32)
        found = list(_labels(window, number, before[number], own, rows))
        cuts = np.searchsorted(at, [start for start, _ in found[1:]]).tolist()
        for (_, labels), *part in zip(found, [0, *cuts], [*cuts, len(at)], strict=True):
            inside = slice(*part)
            said, read = labels
            out = (ago[inside] < 1) | (ago[inside] > SIZE) | (said < 0)
            yield Moments(
                slice(first + part[0], first + part[1]),
                keys,
                _at(said, h),
                read,
                layout.tokens[layout.read[at[inside]]],
                ago[inside],
                torch.from_numpy(out).to(h.device),
            )


def _at(rows: Int[np.ndarray, " some"], like: Tensor) -> Int[Tensor, " some"]:
    return torch.from_numpy(rows).to(like.device)


class Mixture(NamedTuple):
    """What was said, mixed into the distributions of a model at some positions.

    For scoring: its logarithm of zero shares has no gradient.
    """

    parts: tuple[tuple[Float[Tensor, "_ said"], Int[Tensor, " said"]], ...]
    """The share of every moment, and the rows of what was said; negative ones have no share."""
    log_weight: Float[Tensor, " positions"]
    """The logarithm of lambda, what was said weighs in the mixture,"""
    log_rest: Float[Tensor, " positions"]
    """and of 1 - lambda; 0 where nothing was said."""

    def score(
        self, log_p: Float[Tensor, " positions"], targets: Int[Tensor, " positions"]
    ) -> Float[Tensor, " positions"]:
        """The mixture's log-probability of each target, of which the model says log_p."""
        wanted = torch.split(targets, [len(shares) for shares, _ in self.parts])
        said = [
            torch.where(rows == own.unsqueeze(1), shares, 0).sum(1)
            for (shares, rows), own in zip(self.parts, wanted, strict=True)
        ]
        return torch.logaddexp(log_p + self.log_rest, torch.cat(said).log() + self.log_weight)

    def distribution(
        self, log_p: Float[Tensor, "positions vocabulary"]
    ) -> Float[Tensor, "positions vocabulary"]:
        """The mixture's log-probability of every row."""
        said = [
            shares.new_zeros(len(shares), log_p.shape[1]).index_add(1, rows.clamp(min=0), shares)
            for shares, rows in self.parts
        ]
        weight, rest = self.log_weight.unsqueeze(1), self.log_rest.unsqueeze(1)
        return torch.logaddexp(log_p + rest, torch.cat(said).log() + weight)
