"""Filling gaps: a sentence's likelihood with each candidate in the place of one of its entities.

    p(e | w_1 ... w_{t-1})                       in the gap, one distribution for all candidates
    p(w_{t+1} ... w_n | w_1 ... w_{t-1}, e)      the rest of the sentence, for each of them

Embeddings change only between sentences, so a candidate changes nothing but what the LSTM of Eq. 2
reads in the gap: the window is read once, and each candidate goes on from the h and c before the
gap. The rests of all gaps run side by side, those of like length together. A pointer looks back on
the document before the gap, on the candidate in it, and on the rest as it is with this candidate.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import entity_of_row, row_of_entity
from dntm.model import history
from dntm.model.fast.entity_memory import indices
from dntm.model.fast.layout import lay_out_ragged
from dntm.model.fast.read import Read, distribution, entity_logits, point_at
from dntm.model.fast.recurrence import State, ragged_lstm
from dntm.model.history import Moments, look_back
from dntm.model.parameters import Parameters
from dntm.model.pointer import Pointed
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
    _, log_p = distribution(model, read, blanks.token - 1)
    rows = row_of_entity(blanks.entity)
    scores: Scores = log_p.cpu().numpy()[blanks.gap, rows].astype(np.float64)
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
        h = keys = h.index_select(0, indices(order, h))
        mentioned = read.window.mentioned(position)
        gap = position == token[sequence]
        mentioned[gap] = states[chosen[sequence[gap]]]
        h = model.output.directly(h, read.d, mentioned)
        mentions = _had_it_been(read, blanks, chosen[sequence], position)
        entities = entity_logits(model, read, h, position, mentions)
        targets = indices(layout.tokens[layout.read[position + 1]], h)
        found, log_sum = model.output.score(h, entities, targets)
        if model.pointer is not None:
            for at, moments in _rests(read, blanks, chosen[sequence], position, targets, keys):
                terms = None if entities is None else entities[at]
                pointed = Pointed(((point_at(model, moments, h[at], terms), moments.said),))
                found[at] = pointed.mixture(log_sum[at]).score(found[at], targets[at])
        each = found.cpu().numpy().astype(np.float64)
        scores[chosen] = np.bincount(sequence, each, minlength=len(chosen))
    return scores


def _rests(  # noqa: PLR0917
    read: Read,
    blanks: Blanks,
    candidate: Int[np.ndarray, " positions"],
    position: Int[np.ndarray, " positions"],
    targets: Int[Tensor, " positions"],
    keys: Float[Tensor, "positions hidden_dim"],
) -> Iterator[tuple[Int[Tensor, " own"], Moments]]:
    """For each gap the positions of all its candidates' rests, and what these look back on.

    First what was said before the gap, then the gap with each candidate, then each candidate's
    rest; of the last two only their own.
    """
    assert read.history is not None
    layout, gap = read.window.layout, blanks.gap[candidate]
    for number in np.unique(gap).tolist():
        own = np.flatnonzero(gap == number)
        token = int(blanks.token[number])
        who, whose = np.unique(candidate[own], return_inverse=True)
        [before] = look_back(read.window, read.history, read.h, np.array([token - 1]))
        seen, rows = int(before.ago[0, 0]), row_of_entity(blanks.entity[who])
        at, since = indices(own, keys), position[own] - token
        now = np.where(since == 0, rows[whose], layout.tokens[layout.read[position[own]]])
        place = np.concatenate((np.arange(seen), np.full(len(who), seen), seen + 1 + since))
        owner = np.concatenate((np.full(seen, -1), np.arange(len(who)), whose))
        ago = seen + 1 + since[:, None] - place
        hidden = (ago < 1) | (ago > history.SIZE) | ((owner >= 0) & (owner != whose[:, None]))
        earlier = torch.cat(before.keys)[: seen + 1]
        at_gap = earlier[-1].expand(len(who), -1)
        yield (
            at,
            Moments(
                chosen=slice(0, len(own)),
                keys=(earlier[:-1], at_gap, keys.index_select(0, at)),
                said=torch.cat((before.said[:seen], indices(rows, keys), targets[at])),
                read=np.concatenate(
                    (before.read[:seen], np.full(len(who), before.read[seen]), now)
                ),
                now=now,
                ago=ago,
                hidden=torch.from_numpy(hidden).to(keys.device),
            ),
        )


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
