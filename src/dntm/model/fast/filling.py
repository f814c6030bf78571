"""Filling gaps: a sentence's likelihood with each candidate in the place of one of its entities.

    p(e | w_1 ... w_{t-1})                       in the gap, one distribution for all candidates
    p(w_{t+1} ... w_n | w_1 ... w_{t-1}, e)      the rest of the sentence, for each of them

Embeddings change only between sentences, so a candidate changes nothing but what the LSTM of Eq. 2
reads in the gap: the window is read once, and each candidate goes on from the h and c before the
gap. The rests of all gaps run side by side, those of like length together.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from dntm.corpus.vocabulary import entity_of_row, row_of_entity
from dntm.model.fast.entity_memory import indices
from dntm.model.fast.layout import lay_out_ragged
from dntm.model.fast.read import Read, entity_logits, predict
from dntm.model.fast.recurrence import State, ragged_lstm
from dntm.model.parameters import Parameters
from dntm.model.salience import Mentions

PLACES = 4096
"""Tokens of rests that are read at once."""

Scores = Float[np.ndarray, " candidates"]


@dataclass(frozen=True, slots=True)
class Blanks:
    """Gaps of a window in reading order, and all their candidates, one after the other."""

    token: Int[np.ndarray, " gaps"]
    """Index of the gap among the window's tokens in reading order."""
    gap: Int[np.ndarray, " candidates"]
    """The gap of each candidate."""
    entity: Int[np.ndarray, " candidates"]
    """From 1."""


@torch.no_grad()
def fill(model: Parameters, read: Read, blanks: Blanks) -> tuple[Scores, Scores]:
    """Log-likelihood of every candidate in its gap, and of the rest of the sentence after it."""
    if not len(blanks.token):
        return np.zeros(0), np.zeros(0)
    return _in_gap(model, read, blanks), _of_rest(model, read, blanks)


def _in_gap(model: Parameters, read: Read, blanks: Blanks) -> Scores:
    h, entities = predict(model, read, blanks.token - 1)
    rows = model.output.log_distribution(h, entities).cpu().numpy()
    scores: Scores = rows[blanks.gap, row_of_entity(blanks.entity)].astype(np.float64)
    return scores


def _of_rest(model: Parameters, read: Read, blanks: Blanks) -> Scores:
    layout = read.window.layout
    assert read.c is not None, "filling needs a window that was read with its cells"
    ends = np.flatnonzero(np.diff(layout.sentence, append=-1))
    lengths = (ends[layout.sentence[blanks.token]] - blanks.token)[blanks.gap]
    weights = model.lstm.ready()
    states = _states(read, blanks)
    d = read.d.index_select(0, indices(states, read.d))
    candidates = model.x.entity(indices(row_of_entity(blanks.entity), read.x), d)
    scores = np.zeros(len(blanks.entity))
    for chosen in _batches(lengths):
        ragged = lay_out_ragged(lengths[chosen])
        token = blanks.token[blanks.gap[chosen]]
        position = token[ragged.sequence] + ragged.time
        x = read.x.index_select(0, indices(layout.read[position], read.x))
        x[: len(chosen)] = candidates.index_select(0, indices(chosen, candidates))
        begin = indices(layout.read[token - 1], x)
        before = State(read.h.index_select(0, begin), read.c.index_select(0, begin))
        h = ragged_lstm(x, weights, ragged.widths, before).h
        # `entity_logits` wants positions in reading order.
        order = np.argsort(position, kind="stable")
        position, sequence = position[order], ragged.sequence[order]
        h = h.index_select(0, indices(order, h))
        mentioned = read.window.mentioned(position)
        gap = position == token[sequence]
        mentioned[gap] = states[chosen[sequence[gap]]]
        h = model.output.directly(h, read.d, mentioned)
        mentions = _had_it_been(read, blanks, chosen[sequence], position)
        entities = entity_logits(model, read, h, position, mentions)
        targets = indices(layout.tokens[layout.read[position + 1]], h)
        found = model.output.score(h, entities, targets).cpu().numpy().astype(np.float64)
        scores[chosen] = np.bincount(sequence, found, minlength=len(chosen))
    return scores


def _states(read: Read, blanks: Blanks) -> Int[np.ndarray, " candidates"]:
    """The table row of every candidate's d, as its sentence begins."""
    sentence = read.window.layout.sentence[blanks.token[blanks.gap]]
    found: Int[np.ndarray, " candidates"] = read.window.known[sentence, blanks.entity - 1]
    return found


def _had_it_been(
    read: Read,
    blanks: Blanks,
    candidate: Int[np.ndarray, " positions"],
    position: Int[np.ndarray, " positions"],
) -> Mentions | None:
    """The mentions at positions after a gap, with its candidate and not what stands there."""
    if read.mentions is None:
        return None
    gap = blanks.token[blanks.gap[candidate]]
    layout, row = read.window.layout, np.arange(len(position))
    there = entity_of_row(layout.tokens[layout.read[gap]]) - 1
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
