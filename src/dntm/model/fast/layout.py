"""Layouts: the order in memory in which an LSTM reads the tokens of a batch.

Ragged, for the context encoder (Eqs. 7 and 8): many short sequences without padding, time step by
time step, the longest sequence first. The sequences still running are then always the first rows.

Segments, for the core (Eq. 2): its state is carried through each document, so a batch runs time
step by time step, the longest document first. Whenever a document ends, the batch gets narrower.
The tokens are cut into segments of constant width, and each segment is one LSTM call. A document
that continues after the window needs its state at its exact end, so there is always a cut there;
other cuts are made only if they save more padding than an LSTM call costs.

Encoding, for the context encoder, defines the tokens of each call: each direction reads a sentence
up to the furthest mention it has to reach. Tokens before the first entity whose state changes
within the window can be read first, for all sentences in one call. The remaining tokens follow
level by level; each sentence continues from the state after its first part. States are identified
by their table rows.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
    starts = np.cumsum([0, *(s.steps * s.width for s in segments)])
    tokens = np.zeros(starts[-1], dtype=np.int64)
    places = [np.empty(0, dtype=np.int64)] * len(documents)
    for column, document in enumerate(order):
        steps = [
            start + column + s.width * np.arange(s.steps)
            for start, s in zip(starts, segments, strict=False)
            if column < s.width
        ]
        place = places[document] = np.concatenate(steps)[: lengths[document]]
        tokens[place] = rows[document]
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
    time, width = 0, len(lengths)
    for column in reversed(range(len(lengths))):
        end = int(lengths[column])
        following = int(lengths[column - 1]) if column else end
        padding = (width - column) * (following - end)
        if end > time and (continues[column] or padding >= WORTH_A_CUT or column == 0):
            segments.append(Segment(end - time, width))
            time = end
        if end == time:
            width = column
    return tuple(segments)


class Context(NamedTuple):
    """A mention to encode and merge."""

    document: int
    """Its index in the window."""
    sentence: int
    """Counted through the documents."""
    position: int
    """In its sentence; <bos> is 0."""
    entity: int
    """From 1."""
    previous: int
    """Table row of d_{e,i-1}."""
    state: int
    """Table row of d_{e,i}."""
    level: int
    step: int
    """How many merges of its entity come before it on the same level."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """What one direction reads in one call of the ragged LSTM."""

    tokens: Int[np.ndarray, " places"]
    """Vocabulary rows, laid out as `Ragged`."""
    widths: list[int]
    entity_places: Int[np.ndarray, " entity_places"]
    """Indices into `tokens` of the entity tokens."""
    entity_rows: Int[np.ndarray, " entity_places"]
    """Table row of the state each of them has there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rest:
    """The rest of a level's sentences in one direction, and the h next to each mention."""

    call: Call
    begins: Int[np.ndarray, " sequences"]
    """Index into the call ahead where each sequence left off."""
    ahead: Int[np.ndarray, " ahead"]
    """Indices into the call ahead of the tokens next to a mention."""
    adjacent: Int[np.ndarray, " mentions"]
    """Index of the mention's neighboring h in `cat(h of ahead, h of call)`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merge:
    """Contexts to merge at once; the results are the table's next rows."""

    contexts: Int[np.ndarray, " merges"]
    """Indices of the level's mentions."""
    previous: Int[np.ndarray, " merges"]
    """Table row of each d_{e,i-1}."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """Mentions to encode together, from both directions, and to merge."""

    rests: tuple[Rest, Rest]
    sentence: Int[np.ndarray, " mentions"]
    """Counted through the documents."""
    position: Int[np.ndarray, " mentions"]
    merges: tuple[Merge, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """What one direction reads of a sentence, in its order."""

    rows: Sequence[int]
    states: Mapping[int, int]
    """`states[t]`: table row of the state of the entity at time step t."""
    adjacent: Mapping[int, int]
    """`adjacent[p]`: the last time step before position p."""
    free: int
    """Number of initial time steps that depend on no state computed in this window."""


def side(
    rows: Sequence[int], states: Mapping[int, int], adjacent: Mapping[int, int], made_before: int
) -> Side:
    """Read up to the last adjacent time step; rows from `made_before` on are made in the window."""
    reach = max(adjacent.values()) + 1
    read = {time: state for time, state in states.items() if time < reach}
    waits = (time for time, state in read.items() if state >= made_before)
    return Side(rows[:reach], read, adjacent, min(waits, default=reach))


def lay_out_encoding(
    read: Mapping[int, tuple[Side, Side]], contexts: Sequence[Context]
) -> tuple[tuple[Call, Call], tuple[Level, ...]]:
    """The two calls ahead, and the levels; `read` has every sentence with a context."""
    of_level: defaultdict[int, list[Context]] = defaultdict(list)
    for context in contexts:
        of_level[context.level].append(context)
    levels = [of_level[number] for number in sorted(of_level)]
    forward, forward_rests = _direction({s: side for s, (side, _) in read.items()}, levels)
    backward, backward_rests = _direction({s: side for s, (_, side) in read.items()}, levels)
    return (forward, backward), tuple(
        Level(
            rests=rests,
            sentence=np.array([context.sentence for context in level], dtype=np.int64),
            position=np.array([context.position for context in level], dtype=np.int64),
            merges=_merges(level),
        )
        for level, rests in zip(
            levels, zip(forward_rests, backward_rests, strict=True), strict=True
        )
    )


def _direction(
    read: Mapping[int, Side], levels: Sequence[Sequence[Context]]
) -> tuple[Call, list[Rest]]:
    """What one direction reads ahead, and of each level."""
    ahead = _Pieces({s: (side, 0, side.free) for s, side in read.items()})
    rests = []
    for level in levels:
        sentences = dict.fromkeys(context.sentence for context in level)
        waiting = {s: read[s] for s in sentences if read[s].free < len(read[s].rows)}
        pieces = _Pieces({s: (r, r.free, len(r.rows)) for s, r in waiting.items()})
        early: list[int] = []
        adjacent: list[tuple[bool, int]] = []
        for context in level:
            side = read[context.sentence]
            time = side.adjacent[context.position]
            if time < side.free:
                adjacent.append((False, len(early)))
                early.append(ahead.place(context.sentence, time))
            else:
                adjacent.append((True, pieces.place(context.sentence, time - side.free)))
        left_off = [ahead.place(s, waiting[s].free - 1) for s in pieces.in_order()]
        rests.append(
            Rest(
                call=pieces.call(),
                begins=np.array(left_off, dtype=np.int64),
                ahead=np.array(early, dtype=np.int64),
                adjacent=np.array([len(early) * late + i for late, i in adjacent], dtype=np.int64),
            )
        )
    return ahead.call(), rests


class _Pieces:
    """Time steps from `start` to `end` of some sentences, by the index of the sentence."""

    def __init__(self, pieces: Mapping[int, tuple[Side, int, int]]) -> None:
        lengths = [end - start for _, start, end in pieces.values()]
        self.ragged = lay_out_ragged(np.array(lengths, dtype=np.int64))
        self.pieces, self.sequence = pieces, {s: i for i, s in enumerate(pieces)}

    def place(self, sentence: int, time: int) -> int:
        return int(self.ragged.starts[time] + self.ragged.rank[self.sequence[sentence]])

    def in_order(self) -> list[int]:
        """The sentences, longest piece first."""
        return sorted(self.sequence, key=lambda s: self.ragged.rank[self.sequence[s]])

    def call(self) -> Call:
        found = [side.rows[start:end] for side, start, end in self.pieces.values()]
        flat = np.fromiter((r for rows in found for r in rows), dtype=np.int64)
        starts = np.cumsum([0, *map(len, found)])
        entities = [
            (self.place(sentence, time - start), state)
            for sentence, (side, start, end) in self.pieces.items()
            for time, state in side.states.items()
            if start <= time < end
        ]
        places, states = np.array(entities, dtype=np.int64).reshape(-1, 2).T
        return Call(
            tokens=flat[starts[self.ragged.sequence] + self.ragged.time],
            widths=self.ragged.widths,
            entity_places=places,
            entity_rows=states,
        )


def _merges(level: Sequence[Context]) -> tuple[Merge, ...]:
    steps: defaultdict[int, list[int]] = defaultdict(list)
    for index, context in enumerate(level):
        steps[context.step].append(index)
    return tuple(
        Merge(
            contexts=np.array(steps[step], dtype=np.int64),
            previous=np.array([level[i].previous for i in steps[step]], dtype=np.int64),
        )
        for step in sorted(steps)
    )
