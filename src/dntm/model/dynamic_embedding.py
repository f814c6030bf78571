"""Dynamic embeddings: embeddings of entities that depend on their contexts (Section 3).

    x_e = W_dx d_{e,i} + b_e^x     Eq. 9, input layer: `add_dynamic_terms`
    y_e = W_dy d_{e,i} + b_e^y     Eq. 10, output layer: `DynamicOutput`

b_e is the entity's own row of the table. d_{e,0} = 0, so b_e is the embedding of an unseen entity.
In the output layer, `DynamicOutput` adds h . (W_dy d_e) to the static logit of an entity.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.core import CarriedState
from dntm.model.fast.layout import indices
from dntm.model.fast.recurrence import Deferred
from dntm.model.fast.window import Window
from dntm.model.output_layer import Query
from dntm.model.term import Observation, Term


class DynamicEmbedding(nn.Module):
    """A table of embeddings and, if the input layer is dynamic, W_dx."""

    weight: Tensor

    def __init__(self, rows: int, dim: int, context_dim: int | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, dim))
        self.W_dx = None if context_dim is None else nn.Parameter(torch.empty(dim, context_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw embeddings within 0.1 of zero; W_dx preserves the variance of d."""
        nn.init.uniform_(self.weight, -0.1, 0.1, generator=generator)
        if self.W_dx is not None:
            nn.init.xavier_uniform_(self.W_dx, generator=generator)

    def forward(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows dim"]:
        """The static embeddings of these rows."""
        return nn.functional.embedding(rows, self.weight)

    def entity(
        self, rows: Int[Tensor, " entities"], d: Float[Tensor, "entities context_dim"]
    ) -> Float[Tensor, "entities dim"]:
        """The embeddings of the entities in these rows, given their states d."""
        x: Tensor = self(rows)
        return x if self.W_dx is None else x + nn.functional.linear(d, self.W_dx)


def add_dynamic_terms(
    words: Float[Tensor, "places embedding_dim"],
    W_dx: Deferred | None,
    table: Float[Tensor, "states state_dim"],
    places: Int[np.ndarray, " entity_places"],
    rows: Int[np.ndarray, " entity_places"],
) -> Float[Tensor, "places embedding_dim"]:
    """Eq. 9 at the places of entity tokens: their static embeddings plus W_dx d."""
    if W_dx is None or not len(places):
        return words
    d = table.index_select(0, indices(rows, table))[:, : W_dx.W.shape[1]]
    return words.index_add(0, indices(places, words), W_dx(d))


class _Seen(NamedTuple):
    window: Window
    dynamic: Float[Tensor, "states hidden_dim"]
    """W_dy d of all states, document by document."""
    column: Int[np.ndarray, " states"]
    """Of each table row: its index within the block of its document."""


class DynamicOutput(Term):
    """Adds h . (W_dy d_e) to the logit of every entity e."""

    def __init__(self, hidden_dim: int, context_dim: int) -> None:
        super().__init__()
        self.W_dy = nn.Parameter(torch.empty(hidden_dim, context_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw W_dy, which preserves the variance of d."""
        nn.init.xavier_uniform_(self.W_dy, generator=generator)

    def observe(self, observation: Observation, state: CarriedState) -> tuple[_Seen, CarriedState]:
        """Multiply all states with W_dy once."""
        window = observation.window
        owned, lengths = np.concatenate(window.states), [len(states) for states in window.states]
        column = np.empty_like(owned)
        column[owned] = np.arange(len(owned)) - np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        d = observation.d.index_select(0, indices(owned, observation.d))
        return _Seen(window, nn.functional.linear(d, self.W_dy), column), state

    def forward(self, query: Query, seen: _Seen, positions: Int[np.ndarray, " positions"]) -> Query:
        """One product per document with all its states."""
        window, dynamic, column = seen
        sentence = window.layout.sentence[positions]
        counts = np.bincount(window.layout.document[sentence], minlength=len(window.states))
        states = window.known[sentence]
        for change in reversed(window.changes):
            first, end = np.searchsorted(positions, (change.begins, change.token))
            states[first:end, change.slot] = change.before
        known = indices(column[states], query.h)
        logits = [
            (h @ term.t()).gather(1, state)
            for h, term, state in zip(
                torch.split(query.h, counts.tolist()),
                torch.split(dynamic, [len(states) for states in window.states]),
                torch.split(known, counts.tolist()),
                strict=True,
            )
        ]
        return query.add(torch.cat(logits))
