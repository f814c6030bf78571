"""Salience: how recently and how often an entity was mentioned.

    logit_e = h . y_e + b_e + h . (r_a + f_n + k_e) + r'_a + f'_n     for every e mentioned so far

a is the number of sentences since the last mention of e, n the number of its mentions; r and f have
one row per class of a and n. k_e distinguishes the row of a known entity from b_e^y, the row of an
unseen one. d_e represents the meaning of an entity; salience represents its recency and frequency.

`follow` counts the mentions at every token of a window. Sentences are numbered from 1 through the
document and begin with <bos>. The counts of evicted entities are kept until they return.

Departure: the paper has no such term. `--model.extensions salience` adds it to any variant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from dntm.corpus.entity_slots import NOBODY
from dntm.corpus.vocabulary import BOS, entity_rows
from dntm.model.core import CarriedState
from dntm.model.fast.window import SlotChange, Window
from dntm.model.output_layer import Query
from dntm.model.term import Observation, Term

SENTENCES = (1, 2, 3, 5, 9)
"""First value of each class of a after 0: 1, 2, 3 and 4, 5 to 8, more."""
TIMES = (2, 3, 5, 9)
"""First value of each class of n after 1: 2, 3 and 4, 5 to 8, more."""


class Mentions(NamedTuple):
    """The mentions of each entity up to some moments."""

    ago: Int[np.ndarray, "moments entities"]
    """Sentences since the last mention, 0 in the same sentence; meaningless if there was none."""
    times: Int[np.ndarray, "moments entities"]


class Count(NamedTuple):
    """The mentions of one entity."""

    last: int = 0
    """The sentence of the last one; 0 if there was none."""
    times: int = 0


@dataclass(frozen=True, slots=True)
class MentionState(CarriedState):
    """The mentions in each document so far."""

    sentences: Int[np.ndarray, " batch"]
    """Number of sentences begun."""
    last: Int[np.ndarray, "batch entities"]
    """The sentence of each entity's last mention; 0 if there was none."""
    times: Int[np.ndarray, "batch entities"]
    evicted: tuple[Mapping[int, Count], ...]

    @classmethod
    def initial(cls, documents: int, entities: int) -> "MentionState":
        """Before the first sentence."""
        zeros = np.zeros((documents, entities), np.int64)
        return cls(np.zeros(documents, np.int64), zeros, zeros, ({},) * documents)


def follow(window: Window, before: MentionState) -> tuple[Mentions, MentionState]:
    """The mentions once each token is read, in reading order, and the state after the window."""
    layout, entities = window.layout, before.times.shape[1]
    rows, document = layout.tokens[layout.read], layout.document[layout.sentence]
    ago, times = np.empty((2, len(rows), entities), np.int64)
    begun, last_after, times_after = (
        array.copy() for array in (before.sentences, before.last, before.times)
    )
    evicted = list(before.evicted)
    for number in np.unique(document):
        tokens = np.flatnonzero(document == number)
        entity = rows[tokens] - entity_rows(entities).start
        mentions = np.flatnonzero((entity >= 0) & (entity < entities))
        sentence = before.sentences[number] + np.cumsum(rows[tokens] == BOS)
        last, count = np.zeros((2, 1 + len(tokens), entities), np.int64)
        last[0], count[0] = before.last[number], before.times[number]
        last[1 + mentions, entity[mentions]] = sentence[mentions]
        count[1 + mentions, entity[mentions]] = 1
        last, count = np.maximum.accumulate(last)[1:], np.cumsum(count, 0)[1:]
        changes = [change for change in window.changes if change.document == number]
        if changes:
            evicted[number] = _reassign(changes, int(tokens[0]), last, count, evicted[number])
        ago[tokens], times[tokens] = sentence[:, None] - last, count
        begun[number] = sentence[-1]
        last_after[number], times_after[number] = last[-1], count[-1]
    return Mentions(ago, times), MentionState(begun, last_after, times_after, tuple(evicted))


def _reassign(
    changes: Sequence[SlotChange],
    begins: int,
    last: Int[np.ndarray, "tokens entities"],
    times: Int[np.ndarray, "tokens entities"],
    evicted: Mapping[int, Count],
) -> Mapping[int, Count]:
    """Give reassigned slots the counts of their new occupants, in place."""
    slot_last, slot_times, known = last.copy(), times.copy(), dict(evicted)
    for change in changes:
        token, slot = change.token - begins, change.slot
        before = max(token - 1, 0)  # the token may be the first mention of the new occupant
        restored = known.pop(change.entity, Count())
        if change.evicted != NOBODY:
            known[change.evicted] = Count(int(last[before, slot]), int(times[before, slot]))
        since = slot_times[token:, slot] - slot_times[before, slot]
        times[token:, slot] = restored.times + since
        last[token:, slot] = np.where(since > 0, slot_last[token:, slot], restored.last)
    return known


class Salience(Term):
    """The rows of r, f and k. All start at zero, so that the term starts without effect."""

    def __init__(self, entities: int, dim: int) -> None:
        super().__init__()
        recency, frequency = 1 + len(SENTENCES), 1 + len(TIMES)
        self.r = nn.Parameter(torch.zeros(recency, dim))
        self.r_b = nn.Parameter(torch.zeros(recency))
        self.f = nn.Parameter(torch.zeros(frequency, dim))
        self.f_b = nn.Parameter(torch.zeros(frequency))
        self.k = nn.Parameter(torch.zeros(entities, dim))

    def initial(self, documents: int) -> MentionState:
        """No mentions."""
        return MentionState.initial(documents, len(self.k))

    def observe(
        self, observation: Observation, state: MentionState
    ) -> tuple[Mentions, MentionState]:
        """Count the mentions."""
        return follow(observation.window, state)

    def forward(
        self, query: Query, seen: Mentions, positions: Int[np.ndarray, " positions"]
    ) -> Query:
        """Add to the logits of entities; nothing before their first mention."""
        h, times = query.h, seen.times[positions]
        recency = np.searchsorted(SENTENCES, seen.ago[positions], side="right")
        frequency = np.searchsorted(TIMES, times, side="right")
        both = torch.from_numpy(recency * len(self.f) + frequency).to(h.device)
        known = torch.from_numpy(times > 0).to(h.device)
        rows = (self.r.unsqueeze(1) + self.f).flatten(0, 1)
        bias = (self.r_b.unsqueeze(1) + self.f_b).flatten()
        classes = torch.addmm(bias, h, rows.t())
        return query.add(torch.where(known, classes.gather(1, both) + h @ self.k.t(), 0))
