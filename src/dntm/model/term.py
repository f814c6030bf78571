"""Term: a part that contributes to the output layer (Eq. 1).

After the core has read a window, each term observes it once; afterwards it can change the query at
any positions. The paper's only term is `dynamic_embedding.DynamicOutput` (Eq. 10); others are in
`extensions`. A term that depends on earlier windows keeps its own state.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.core import CarriedState
from dntm.model.fast.window import Window
from dntm.model.output_layer import OutputLayer, Query


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """A window that the core has read."""

    window: Window
    h: Float[Tensor, "places hidden_dim"]
    """The core's states, without dropout."""
    d: Float[Tensor, "states context_dim"]
    """The memory's table: `window.known` and `window.merges.state` are indices into it."""
    x: Callable[[Int[Tensor, " rows"]], Float[Tensor, "rows embedding_dim"]]
    """The static input embeddings."""
    output: OutputLayer


class Term(nn.Module):
    """Contributes to the query; this one changes nothing."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights that do not start at fixed values."""

    def initial(self, documents: int) -> Any:  # noqa: ARG002
        """The state before the first sentence; by default, there is nothing to carry."""
        return CarriedState()

    def observe(self, observation: Observation, state: Any) -> tuple[Any, Any]:
        """What `forward` needs of the window, and the state after it."""
        return observation, state

    def forward(
        self,
        query: Query,
        seen: Any,  # noqa: ARG002
        positions: Int[np.ndarray, " positions"],  # noqa: ARG002
    ) -> Query:
        """The query at these positions: rising indices of tokens in reading order."""
        return query
