"""Entity residual: after a mention, the output layer also reads d_e itself.

    h_t <- h_t + W_dh d_e     if token t is a mention of e

Without this term, predictions after a mention depend on d_e only through x_e and the core. W_dh is
initialized to zero.

Departure: the paper has no such term. `--model.extensions entity-residual` adds it to variants with
a memory.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from dntm.model.fast.layout import indices
from dntm.model.output_layer import Query
from dntm.model.term import Observation, Term


class EntityResidual(Term):
    """W_dh, which maps d_e to the space of h."""

    def __init__(self, hidden_dim: int, context_dim: int) -> None:
        super().__init__()
        self.W_dh = nn.Parameter(torch.zeros(hidden_dim, context_dim))

    def forward(
        self, query: Query, seen: Observation, positions: Int[np.ndarray, " positions"]
    ) -> Query:
        """Add W_dh d_e at mentions."""
        states = seen.window.mentioned(positions)
        mentions = np.flatnonzero(states >= 0)
        d = seen.d.index_select(0, indices(states[mentions], seen.d))
        h = query.h.index_add(0, indices(mentions, query.h), d @ self.W_dh.t())
        return replace(query, h=h)
