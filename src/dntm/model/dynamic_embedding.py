"""DynamicEmbedding: word embeddings of which an entity's follow its contexts (Section 3).

    x_e = W_dx d_{e,i} + b_e^x     Eq. 9, input layer
    y_e = W_dy d_{e,i} + b_e^y     Eq. 10, output layer

b_e is the entity's own row of the table; with d_{e,0} = 0 it is all there is.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class DynamicEmbedding(nn.Module):
    """A table of embeddings and, where entities are dynamic in this layer, W_dx or W_dy."""

    def __init__(
        self, rows: int, dim: int, context_dim: int | None, *, name: Literal["W_dx", "W_dy"]
    ) -> None:
        super().__init__()
        self.name = name
        self.weight = nn.Parameter(torch.empty(rows, dim))
        W_d = None if context_dim is None else nn.Parameter(torch.empty(dim, context_dim))
        self.register_parameter(name, W_d)

    @property
    def W_d(self) -> nn.Parameter | None:
        """W_dx or W_dy; None where this layer is static."""
        return self._parameters[self.name]

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw embeddings within 0.1 of zero; W_d keeps the variance of d."""
        nn.init.uniform_(self.weight, -0.1, 0.1, generator=generator)
        if self.W_d is not None:
            nn.init.xavier_uniform_(self.W_d, generator=generator)

    def term(self, d: Float[Tensor, "*states context_dim"]) -> Float[Tensor, "*states dim"]:
        """The dynamic term W_d d; zero where this layer is static."""
        if self.W_d is None:
            return d.new_zeros(*d.shape[:-1], self.weight.shape[1])
        return nn.functional.linear(d, self.W_d)

    def entity(
        self, rows: Int[Tensor, " entities"], d: Float[Tensor, "entities context_dim"]
    ) -> Float[Tensor, "entities dim"]:
        """The embeddings of the entities in these rows of the table, in states d."""
        return nn.functional.embedding(rows, self.weight) + self.term(d)
