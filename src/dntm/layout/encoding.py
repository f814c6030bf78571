"""Encoding: what the context encoder reads in which call (Section 3).

Each direction reads a sentence up to the furthest mention it has to reach. What it reads before the
first entity whose state is made in the same stretch depends on nothing: all these beginnings are
read ahead, in one call. The rests follow level by level, each from where its beginning left off.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Int

from dntm.layout.ragged import Ragged, lay_out_ragged


class Context(NamedTuple):
    """A mention to encode and merge; contexts are numbered in reading order."""

    document: int
    sentence: int
    position: int
    previous: int
    """The number of its entity's state before."""
    level: int
    step: int
    """How many merges of the same level come before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What one direction reads in one call, laid out as `Ragged`."""

    tokens: Int[np.ndarray, " places"]
    widths: list[int]
    entity_places: Int[np.ndarray, " entity_places"]
    """Which places hold an entity."""
    entity_rows: Int[np.ndarray, " entity_places"]
    """The table row of its state there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rest:
    """The rest of a level's sentences in one direction, and the h beside each mention."""

    run: Run
    begins: Int[np.ndarray, " sequences"]
    """The place ahead where each sequence left off, in the order of the run."""
    ahead: Int[np.ndarray, " ahead"]
    """The places ahead that lie beside a mention."""
    beside: Int[np.ndarray, " mentions"]
    """Where the h beside each mention is: among `ahead`, or after these in the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Merge:
    """Contexts to merge at once; the results are the table's next rows."""

    contexts: Int[np.ndarray, " merges"]
    """Which of the level's mentions."""
    previous: Int[np.ndarray, " merges"]
    """The table row of each one's entity before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """Mentions to encode together, from both directions, and to merge."""

    rests: tuple[Rest, Rest]
    merges: tuple[Merge, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one direction reads of a sentence, in its order."""

    rows: Sequence[int]
    states: Mapping[int, int]
    """The number of the state of the entity at each time step that has one."""
    beside: Mapping[int, int]
    """The last time step before each position to encode."""
    free: int
    """How many time steps depend on nothing."""


def read_up_to(
    rows: Sequence[int], states: Mapping[int, int], positions: Sequence[int], made_before: int
) -> tuple[Reading, Reading]:
    """How a sentence with entities in these states is read, forward and backward.

    The states stand at the entities' positions; `positions` are those to encode. States with
    numbers below `made_before` are there from the beginning.
    """
    end = len(rows) - 1
    mirrored = {end - position: state for position, state in states.items()}
    return (
        _reading(rows, states, {p: p - 1 for p in positions}, made_before),
        _reading(rows[::-1], mirrored, {p: end - p - 1 for p in positions}, made_before),
    )


def _reading(
    rows: Sequence[int], states: Mapping[int, int], beside: Mapping[int, int], made_before: int
) -> Reading:
    reach = max(beside.values()) + 1
    read = {time: state for time, state in states.items() if time < reach}
    waits = (time for time, state in read.items() if state >= made_before)
    return Reading(rows[:reach], read, beside, min(waits, default=reach))


def lay_out_encoding(
    readings: Mapping[int, tuple[Reading, Reading]],
    contexts: Sequence[Context],
    row: Int[np.ndarray, " states"],
) -> tuple[tuple[Run, Run], tuple[Level, ...]]:
    """The two calls ahead, and the levels.

    The readings are those of each sentence with a context; `row` gives the table row of each
    state's number.
    """
    of_level: defaultdict[int, list[Context]] = defaultdict(list)
    for context in contexts:
        of_level[context.level].append(context)
    levels = [of_level[number] for number in sorted(of_level)]
    forward, forward_rests = _direction({n: r for n, (r, _) in readings.items()}, levels, row)
    backward, backward_rests = _direction({n: r for n, (_, r) in readings.items()}, levels, row)
    return (forward, backward), tuple(
        Level(rests=rests, merges=_merges(level, row))
        for level, rests in zip(
            levels, zip(forward_rests, backward_rests, strict=True), strict=True
        )
    )


def _direction(
    readings: Mapping[int, Reading],
    levels: Sequence[Sequence[Context]],
    row: Int[np.ndarray, " states"],
) -> tuple[Run, list[Rest]]:
    """What one direction reads ahead, and of each level."""
    ahead = _Pieces.of({number: (r, 0, r.free) for number, r in readings.items()})
    rests = []
    for level in levels:
        numbers = dict.fromkeys(context.sentence for context in level)
        waiting = {n: readings[n] for n in numbers if readings[n].free < len(readings[n].rows)}
        pieces = _Pieces.of({n: (r, r.free, len(r.rows)) for n, r in waiting.items()})
        early: list[int] = []
        beside: list[tuple[bool, int]] = []
        for context in level:
            reading = readings[context.sentence]
            time = reading.beside[context.position]
            if time < reading.free:
                beside.append((False, len(early)))
                early.append(ahead.place(context.sentence, time))
            else:
                beside.append((True, pieces.place(context.sentence, time - reading.free)))
        left_off = [ahead.place(n, waiting[n].free - 1) for n in pieces.in_order()]
        rests.append(
            Rest(
                run=pieces.run(row),
                begins=np.array(left_off, dtype=np.int64),
                ahead=np.array(early, dtype=np.int64),
                beside=np.array([len(early) * late + i for late, i in beside], dtype=np.int64),
            )
        )
    return ahead.run(row), rests


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of some sentences' readings, by the number of the sentence, laid out."""

    pieces: Mapping[int, tuple[Reading, int, int]]
    sequence: Mapping[int, int]
    ragged: Ragged

    @classmethod
    def of(cls, pieces: Mapping[int, tuple[Reading, int, int]]) -> Self:
        lengths = [end - start for _, start, end in pieces.values()]
        ragged = lay_out_ragged(np.array(lengths, dtype=np.int64))
        return cls(pieces, {number: i for i, number in enumerate(pieces)}, ragged)

    def place(self, number: int, time: int) -> int:
        return int(self.ragged.starts[time] + self.ragged.rank[self.sequence[number]])

    def in_order(self) -> list[int]:
        """The sentences, longest piece first."""
        return sorted(self.sequence, key=lambda number: self.ragged.rank[self.sequence[number]])

    def run(self, row: Int[np.ndarray, " states"]) -> Run:
        found = [reading.rows[start:end] for reading, start, end in self.pieces.values()]
        flat = np.fromiter((r for rows in found for r in rows), dtype=np.int64)
        starts = np.cumsum([0, *map(len, found)])
        entities = [
            (self.place(number, time - start), state)
            for number, (reading, start, end) in self.pieces.items()
            for time, state in reading.states.items()
            if start <= time < end
        ]
        places, states = np.array(entities, dtype=np.int64).reshape(-1, 2).T
        return Run(
            tokens=flat[starts[self.ragged.sequence] + self.ragged.time],
            widths=self.ragged.widths,
            entity_places=places,
            entity_rows=row[states],
        )


def _merges(level: Sequence[Context], row: Int[np.ndarray, " states"]) -> tuple[Merge, ...]:
    steps: defaultdict[int, list[int]] = defaultdict(list)
    for number, context in enumerate(level):
        steps[context.step].append(number)
    return tuple(
        Merge(
            contexts=np.array(steps[step], dtype=np.int64),
            previous=row[[level[n].previous for n in steps[step]]],
        )
        for step in sorted(steps)
    )
