"""EntityNLM: a baseline with the entity states of Ji et al. (2017); the entities are given.

The core is that of variant A, in which entities have static rows. Each entity has one vector v_e.
Every mention moves v_e toward h at the mention, immediately rather than at the end of the sentence.
v_0 is its value before the first mention:

    delta = sigmoid(h_t . W_delta v_e),   v_e <- unit length of  delta v_e + (1 - delta) h_t

The states enter the prediction of words through the last mentioned entity (v_c; 0 before any), and
the prediction of entities directly, with a feature of the distance in sentences (`ago`):

    logit_w = (h + W_c v_c) . y_w + b_w
    logit_e = (h + W_c v_c) . y_e + b_e + h . W_e v_e + w exp(-r ago_e)      for every e mentioned

in one softmax. An entity that takes over a slot starts with v_0, even if it had a state before. Ji
et al. first predict whether a mention follows, then its entity, then its words. Here a mention is
one token, so one softmax over words and entities replaces these decisions.

Departure: this is not the paper's model. `--model.variant A --model.extensions entity-nlm` trains
it as a term of the output layer.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.core import CarriedState
from dntm.model.extensions.salience import Mentions, MentionState, follow
from dntm.model.output_layer import Query
from dntm.model.term import Observation, Term


@dataclass(frozen=True, slots=True)
class EntityState(CarriedState):
    """The vectors of each document."""

    v: Float[Tensor, "batch entities dim"]
    current: Float[Tensor, "batch dim"]
    """v_c"""
    mentions: MentionState


class _Tracked(NamedTuple):
    """The entities of a window at each of its tokens, in reading order, once it is read."""

    table: Float[Tensor, "states dim"]
    """Every v; the first two are 0 and v_0."""
    entity: Int[np.ndarray, "read entities"]
    """Index of each entity's v; meaningless before its first mention."""
    current: Int[np.ndarray, " read"]
    """Index of v_c."""
    mentions: Mentions


class EntityNLM(Term):
    """The parameters in addition to those of the baseline."""

    def __init__(self, entities: int, dim: int) -> None:
        super().__init__()
        self.entities = entities
        self.v_0 = nn.Parameter(torch.empty(dim))
        self.W_delta = nn.Parameter(torch.empty(dim, dim))
        self.W_e = nn.Parameter(torch.empty(dim, dim))
        self.W_c = nn.Parameter(torch.zeros(dim, dim))
        self.w = nn.Parameter(torch.zeros(()))
        self.log_r = nn.Parameter(torch.zeros(()))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; at first the prediction of words ignores entities."""
        for weight in (self.v_0, self.W_delta, self.W_e):
            nn.init.normal_(weight, 0.0, len(self.v_0) ** -0.5, generator=generator)

    def initial(self, documents: int) -> EntityState:
        """No mentions."""
        zeros = self.v_0.new_zeros(documents, len(self.v_0))
        v = zeros.unsqueeze(1).expand(-1, self.entities, -1)
        return EntityState(v, zeros, MentionState.initial(documents, self.entities))

    def forward(
        self, query: Query, seen: _Tracked, positions: Int[np.ndarray, " positions"]
    ) -> Query:
        """Add W_c v_c to h, and the logits of the entities mentioned before."""
        h = query.h
        current = torch.from_numpy(seen.current[positions]).to(h.device)
        entity = torch.from_numpy(seen.entity[positions]).to(h.device)
        ago = torch.from_numpy(seen.mentions.ago[positions]).to(h)
        known = torch.from_numpy(seen.mentions.times[positions] > 0).to(h.device)
        own = ((h @ self.W_e) @ seen.table.t()).gather(1, entity)
        near = self.w * torch.exp(-self.log_r.exp() * torch.where(known, ago, 0))
        words = h + seen.table.index_select(0, current) @ self.W_c.t()
        return replace(query.add(torch.where(known, own + near, 0)), h=words)

    def observe(self, observation: Observation, state: EntityState) -> tuple[_Tracked, EntityState]:
        """Update every entity at its mentions."""
        window, h = observation.window, observation.h
        mentions, counts = follow(window, state.mentions)
        layout, (batch, entities, dim) = window.layout, state.v.shape
        rows, document = layout.tokens[layout.read], layout.document[layout.sentence]
        number = rows - entity_rows(entities).start
        base = torch.cat(
            (h.new_zeros(1, dim), self.v_0.unsqueeze(0), state.current, state.v.flatten(0, 1))
        )
        moved: list[Tensor] = []
        memory = 2 + batch + np.arange(batch * entities).reshape(batch, entities)
        # Index 1 is v_0, the vector of an entity that has not been mentioned.
        held, last = np.where(state.mentions.times > 0, memory, 1), 2 + np.arange(batch)
        new: defaultdict[int, list[int]] = defaultdict(list)
        for change in window.changes:
            new[change.token].append(change.slot)
        entity, current = np.empty((len(rows), entities), np.int64), np.empty(len(rows), np.int64)
        for token, (text, e) in enumerate(zip(document.tolist(), number.tolist(), strict=True)):
            for slot in new.get(token, ()):
                held[text, slot] = 1
            if 0 <= e < entities:
                index = int(held[text, e])
                v = base[index] if index < len(base) else moved[index - len(base)]
                held[text, e] = last[text] = len(base) + len(moved)
                h_t = h[int(layout.read[token])]
                delta = torch.sigmoid(h_t @ self.W_delta @ v)
                moved.append(nn.functional.normalize(delta * v + (1 - delta) * h_t, dim=0))
            entity[token], current[token] = held[text], last[text]
        table = torch.cat((base, *(v.unsqueeze(0) for v in moved)))
        after = table.index_select(0, torch.from_numpy(held.ravel()).to(h.device))
        ending = table.index_select(0, torch.from_numpy(last).to(h.device))
        tracked = _Tracked(table, entity, current, mentions)
        return tracked, EntityState(after.view_as(state.v), ending, counts)
