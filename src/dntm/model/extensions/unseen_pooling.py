"""Pooling of unseen entities: the number of a new entity carries no information.

Entities are numbered by first appearance, so a new entity always takes the first free row. All free
rows together therefore stand for it:

    logit_e = log sum over free rows f of exp(h . y_f + b_f)     for the first free row e
    logit_f = h . y_f + b_f - LATER                              for the free rows after it

The term has no parameters. Without it, a model assigns probability to entities that cannot come
next, and most of the surprisal of a new entity comes from its number.

Departure: the paper has no such rule. `--model.extensions unseen-pooling` adds it to any variant.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int

from dntm.corpus.entity_slots import NOBODY
from dntm.corpus.vocabulary import entity_rows
from dntm.model.core import CarriedState
from dntm.model.output_layer import OutputLayer, Query
from dntm.model.term import Observation, Term

LATER = 30.0
"""Nats. Finite, so that a text with another numbering is improbable rather than an error."""


@dataclass(frozen=True, slots=True)
class Occupied(CarriedState):
    """Which rows have an entity, for each document."""

    rows: Bool[np.ndarray, "batch entities"]


Seen = tuple[Bool[np.ndarray, "tokens entities"], OutputLayer]
"""Occupied rows once each token is read, in reading order."""


class UnseenPooling(Term):
    """Moves the probability of all free rows to the first of them."""

    def __init__(self, entities: int) -> None:
        super().__init__()
        self.entities = entities

    def initial(self, documents: int) -> Occupied:
        """All rows are free."""
        return Occupied(np.zeros((documents, self.entities), bool))

    def observe(self, observation: Observation, state: Occupied) -> tuple[Seen, Occupied]:
        """Find the free rows at every token."""
        layout = observation.window.layout
        document = layout.document[layout.sentence]
        entity = layout.tokens[layout.read] - entity_rows(self.entities).start
        token = np.flatnonzero((entity >= 0) & (entity < self.entities))
        occupied = np.zeros((len(document), self.entities), bool)
        occupied[token, entity[token]] = True
        after = state.rows.copy()
        for number in np.unique(document):
            own = np.flatnonzero(document == number)
            occupied[own[0]] |= state.rows[number]
            mentioned = occupied[own]
            occupied[own] = np.logical_or.accumulate(mentioned)
            for change in observation.window.changes:
                if change.document == number and change.entity == NOBODY:
                    since = change.token - own[0]
                    later = np.logical_or.accumulate(mentioned[since:, change.slot])
                    occupied[own[since:], change.slot] = later
            after[number] = occupied[own[-1]]
        return (occupied, observation.output), Occupied(after)

    def forward(self, query: Query, seen: Seen, positions: Int[np.ndarray, " positions"]) -> Query:
        """Pool the logits of the free rows."""
        occupied, output = seen
        logits = output.entity_logits(query, self.entities)
        free = torch.from_numpy(~occupied[positions]).to(logits.device)
        some = free.any(1, keepdim=True)
        pooled = logits.masked_fill(~free & some, -torch.inf).logsumexp(1, keepdim=True)
        first = free & (free.cumsum(1) == 1)
        new = torch.where(first, pooled, torch.where(free, logits - LATER, logits))
        return query.add(new - logits)
