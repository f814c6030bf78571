"""Layouts: the order in memory in which an LSTM reads the tokens of a batch.

Ragged, for the context encoder (Eqs. 7 and 8): many short sequences without padding, time step by
time step, the longest sequence first. The sequences still running are then always the first rows.

Segments, for the core (Eq. 2): its state is carried through each document, so a batch runs time
step by time step, the longest document first. Whenever a document ends, the batch gets narrower.
The tokens are cut into segments of constant width, and each segment is one LSTM call. A document
that continues after the window needs its state at its exact end, so there is always a cut there;
other cuts are made only if they save more padding than an LSTM call costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Sentence = Sequence[int]
"""Vocabulary rows: <bos>, words and entities, <eos>."""

WORTH_A_CUT = 100
"""Tokens of padding that cost about as much as one more LSTM call at 512 units."""


def indices(array: Int[np.ndarray, "..."], like: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The indices as a tensor on the device of `like`."""
    return torch.from_numpy(array).to(like.device)


@dataclass(frozen=True, slots=True)
class Ragged:
    """Sequences of different lengths, time step by time step, the longest sequence first."""

    widths: list[int]
    """Number of sequences that reach each time step."""
    starts: Int[np.ndarray, " time"]
    """The place where each time step begins."""
    rank: Int[np.ndarray, " sequences"]
    """Position of each sequence within a time step."""
    sequence: Int[np.ndarray, " places"]
    time: Int[np.ndarray, " places"]

    def place(
        self, sequence: Int[np.ndarray, " some"], time: Int[np.ndarray, " some"]
    ) -> Int[np.ndarray, " some"]:
        """The place of a time step of a sequence."""
        places: Int[np.ndarray, " some"] = self.starts[time] + self.rank[sequence]
        return places


def lay_out_ragged(lengths: Int[np.ndarray, " sequences"]) -> Ragged:
    """Lay out sequences of these lengths."""
    order = np.argsort(-lengths, kind="stable")
    steps = np.arange(lengths.max(initial=0))
    widths = np.count_nonzero(lengths > steps[:, None], axis=1)
    starts = np.cumsum(widths) - widths
    time = np.repeat(steps, widths)
    sequence = order[np.arange(len(time)) - starts[time]]
    return Ragged(widths.tolist(), starts, np.argsort(order), sequence, time)


class Segment(NamedTuple):
    """Time steps over which the batch has the same documents."""

    start: int
    steps: int
    width: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Tokens in the core's order, and the way back to reading order.

    Reading order is document by document. A place is an index into `tokens`.
    """

    tokens: Int[np.ndarray, " places"]
    """Rows to read; <unk> as padding after the end of a document."""
    segments: tuple[Segment, ...]
    order: Int[np.ndarray, " active"]
    """The documents that have sentences, longest first."""
    read: Int[np.ndarray, " tokens"]
    """The place of each token in reading order."""
    sentence: Int[np.ndarray, " tokens"]
    """The sentence of each token in reading order, counted through the batch."""
    document: Int[np.ndarray, " sentences"]
    """The document of each sentence."""
    predicting: Int[np.ndarray, " predicted"]
    """Tokens in reading order that are followed by another one of their sentence."""
    targets: Int[np.ndarray, " predicted"]
    """The rows that follow them."""
    predicted: Int[np.ndarray, " batch"]
    """Number of predicted tokens of each document."""


def lay_out(documents: Sequence[Sequence[Sentence]], continues: Sequence[bool]) -> Layout:
    """Lay out the sentences of a batch; `continues[d]`: document d has more."""
    rows = [np.fromiter((r for s in text for r in s), dtype=np.int64) for text in documents]
    lengths = np.array([len(r) for r in rows], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    segments = _cut(lengths[order], [continues[b] for b in order])
    tokens = np.zeros(sum(s.steps * s.width for s in segments), dtype=np.int64)
    places = [np.empty(0, dtype=np.int64)] * len(documents)
    for column, document in enumerate(order):
        place = np.concatenate(
            [s.start + column + s.width * np.arange(s.steps) for s in segments if column < s.width]
        )[: lengths[document]]
        tokens[place] = rows[document]
        places[document] = place
    sizes = np.array([len(s) for text in documents for s in text], dtype=np.int64)
    reading = np.concatenate([np.empty(0, dtype=np.int64), *rows])
    closing = np.zeros(len(reading), dtype=bool)
    closing[np.cumsum(sizes) - 1] = True
    predicting = np.flatnonzero(~closing)
    return Layout(
        tokens=tokens,
        segments=segments,
        order=order,
        read=np.concatenate([np.empty(0, dtype=np.int64), *places]),
        sentence=np.repeat(np.arange(len(sizes)), sizes),
        document=np.repeat(np.arange(len(documents)), [len(text) for text in documents]),
        predicting=predicting,
        targets=reading[np.minimum(predicting + 1, len(reading) - 1)],
        predicted=lengths - np.array([len(text) for text in documents], dtype=np.int64),
    )


def _cut(lengths: Int[np.ndarray, " active"], continues: Sequence[bool]) -> tuple[Segment, ...]:
    """Segments for documents of these lengths, longest first."""
    segments: list[Segment] = []
    start, time, width = 0, 0, len(lengths)
    for column in reversed(range(len(lengths))):
        end = int(lengths[column])
        following = int(lengths[column - 1]) if column else end
        padding = (width - column) * (following - end)
        if end > time and (continues[column] or padding >= WORTH_A_CUT or column == 0):
            segments.append(Segment(start, end - time, width))
            start += (end - time) * width
            time = end
        if end == time:
            width = column
    return tuple(segments)
