"""DynamicEmbedding: input embeddings; those of entities follow their contexts (Section 3).

    x_e = W_dx d_{e,i} + b_e^x     Eq. 9

b_e^x is the entity's own row of the table; with d_{e,0} = 0 an unseen entity has only that.
The output layer's counterpart (Eq. 10) is `dynamic_output`.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.fast.layout import indices
from dntm.model.fast.recurrence import Deferred


class DynamicEmbedding(nn.Module):
    """A table of embeddings and, if the input layer is dynamic, W_dx."""

    def __init__(self, rows: int, dim: int, context_dim: int | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, dim))
        self.W_dx = None if context_dim is None else nn.Parameter(torch.empty(dim, context_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw embeddings within 0.1 of zero; W_dx preserves the variance of d."""
        nn.init.uniform_(self.weight, -0.1, 0.1, generator=generator)
        if self.W_dx is not None:
            nn.init.xavier_uniform_(self.W_dx, generator=generator)

    def entity(
        self, rows: Int[Tensor, " entities"], d: Float[Tensor, "entities context_dim"]
    ) -> Float[Tensor, "entities dim"]:
        """The embeddings of the entities in these rows, given their states d."""
        x = nn.functional.embedding(rows, self.weight)
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
