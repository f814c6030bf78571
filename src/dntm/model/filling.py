"""Filling gaps: a sentence's likelihood with each candidate in the place of one of its entities.

    p(e | w_1 ... w_{t-1})                       in the gap, one distribution for all candidates
    p(w_{t+1} ... w_n | w_1 ... w_{t-1}, e)      the rest of the sentence, for each of them

Embeddings change only between sentences, so a candidate changes nothing but what the LSTM of Eq. 2
reads in the gap: the stretch is read once, and each candidate goes on from the h and c before the
gap. The rests of all gaps run side by side, those of like length together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.layout.ragged import lay_out_ragged
from dntm.model.entity_memory import indices
from dntm.model.language_model import DynamicTextModel
from dntm.model.ragged_lstm import State, ragged_lstm
from dntm.model.reading_state import ReadingState
from dntm.model.salience import Mentions
from dntm.schedule import FIRST, Stretch

PLACES = 4096
"""Tokens of rests that are read at once."""

Scores = Float[np.ndarray, " candidates"]


@dataclass(frozen=True, slots=True)
class Trace:
    """A stretch once it has been read: what stood at each place of its layout."""

    stretch: Stretch
    x: Float[Tensor, "places embedding_dim"]
    lstm: State
    d: Float[Tensor, "states context_dim"]
    """Every state of the stretch's table."""
    mentions: Mentions | None
    """As of each token, where the model has a term for salience."""


@dataclass(frozen=True, slots=True)
class Blanks:
    """Gaps of a stretch in reading order, and all their candidates, one after the other."""

    token: Int[np.ndarray, " gaps"]
    """Which token of the stretch, in reading order, is the gap."""
    gap: Int[np.ndarray, " candidates"]
    """The gap of each candidate."""
    entity: Int[np.ndarray, " candidates"]
    """From 1."""


@torch.no_grad()
def trace(
    model: DynamicTextModel, documents: Sequence[Sequence[Sequence[int]]], state: ReadingState
) -> tuple[Trace, ReadingState]:
    """Read the next sentences of each document, keeping the h and c of every token.

    Every context is encoded, even of entities that do not come back: they are candidates.
    """
    stretch = model.plan(documents)
    layout = stretch.layout
    x, table = model.embed(stretch, state)
    order = indices(layout.order, x)
    widths = [segment.width for segment in layout.segments for _ in range(segment.steps)]
    before = State(state.h.index_select(0, order), state.c.index_select(0, order))
    lstm = ragged_lstm(x, model.lstm.ready(), widths, before)
    lengths = np.bincount(layout.document[layout.sentence], minlength=len(documents))
    ends = indices(layout.read[(np.cumsum(lengths) - 1)[layout.order]], x)
    h, c = lstm.h.index_select(0, ends), lstm.c.index_select(0, ends)
    d = table[:, : model.config.context_dim]
    mentions, last = state.follow(stretch)
    return Trace(stretch, x, lstm, d, mentions), state.after(stretch, table, h, c, last)


@torch.no_grad()
def fill(model: DynamicTextModel, read: Trace, blanks: Blanks) -> tuple[Scores, Scores]:
    """Log-likelihood of every candidate in its gap, and of the rest of the sentence after it."""
    if not len(blanks.token):
        return np.zeros(0), np.zeros(0)
    return _in_gap(model, read, blanks), _of_rest(model, read, blanks)


def _in_gap(model: DynamicTextModel, read: Trace, blanks: Blanks) -> Scores:
    layout, before = read.stretch.layout, blanks.token - 1
    h = read.lstm.h.index_select(0, indices(layout.read[before], read.lstm.h))
    mentions = None if read.mentions is None else read.mentions.at(before)
    entities = model.entity_logits(read.stretch, h, read.d, before, mentions)
    rows = model.output.log_distribution(h, entities).cpu().numpy()
    scores: Scores = rows[blanks.gap, FIRST - 1 + blanks.entity].astype(np.float64)
    return scores


def _of_rest(model: DynamicTextModel, read: Trace, blanks: Blanks) -> Scores:
    layout = read.stretch.layout
    ends = np.flatnonzero(np.diff(layout.sentence, append=-1))
    lengths = (ends[layout.sentence[blanks.token]] - blanks.token)[blanks.gap]
    weights = model.lstm.ready()
    candidates = _candidates(model, read, blanks)
    scores = np.zeros(len(blanks.entity))
    for chosen in _batches(lengths):
        ragged = lay_out_ragged(lengths[chosen])
        token = blanks.token[blanks.gap[chosen]]
        position = token[ragged.sequence] + ragged.time
        x = read.x.index_select(0, indices(layout.read[position], read.x))
        x[: len(chosen)] = candidates.index_select(0, indices(chosen, candidates))
        begin = indices(layout.read[token - 1], x)
        before = State(read.lstm.h.index_select(0, begin), read.lstm.c.index_select(0, begin))
        h = ragged_lstm(x, weights, ragged.widths, before).h
        # `entity_logits` takes the documents one after the other.
        order = np.argsort(position, kind="stable")
        position, sequence = position[order], ragged.sequence[order]
        h = h.index_select(0, indices(order, h))
        mentions = _had_it_been(read, blanks, chosen[sequence], position)
        entities = model.entity_logits(read.stretch, h, read.d, position, mentions)
        targets = indices(layout.tokens[layout.read[position + 1]], h)
        found = model.output.score(h, entities, targets).cpu().numpy().astype(np.float64)
        scores[chosen] = np.bincount(sequence, found, minlength=len(chosen))
    return scores


def _candidates(
    model: DynamicTextModel, read: Trace, blanks: Blanks
) -> Float[Tensor, "candidates embedding_dim"]:
    """The x of every candidate, as its sentence begins (Eq. 9)."""
    stretch, layout = read.stretch, read.stretch.layout
    sentence = layout.sentence[blanks.token[blanks.gap]]
    first = np.cumsum([0, *(len(states) for states in stretch.states)])
    local = stretch.known[sentence, blanks.entity - 1]
    rows = np.concatenate(stretch.states)[first[layout.document[sentence]] + local]
    d = read.d.index_select(0, indices(rows, read.d))
    return model.x.entity(indices(FIRST - 1 + blanks.entity, read.x), d)


def _had_it_been(
    read: Trace,
    blanks: Blanks,
    candidate: Int[np.ndarray, " positions"],
    position: Int[np.ndarray, " positions"],
) -> Mentions | None:
    """The mentions at positions after a gap, with its candidate and not what stands there."""
    if read.mentions is None:
        return None
    gap = blanks.token[blanks.gap[candidate]]
    layout, row = read.stretch.layout, np.arange(len(position))
    there = layout.tokens[layout.read[gap]] - FIRST
    ago, times = (values.copy() for values in read.mentions.at(position))
    again = times[row, there] > read.mentions.times[gap, there]
    ago[row, there] = np.where(again, ago[row, there], read.mentions.ago[gap - 1, there])
    times[row, there] -= 1
    instead = blanks.entity[candidate] - 1
    ago[row, instead] = 0
    times[row, instead] += 1
    return Mentions(ago, times)


def _batches(lengths: Int[np.ndarray, " candidates"]) -> Iterator[Int[np.ndarray, " chosen"]]:
    """Candidates whose rests are read together, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    batch = (np.cumsum(lengths[order]) - 1) // PLACES
    yield from np.split(order, np.flatnonzero(np.diff(batch)) + 1)
