"""Core: the language model that turns the embeddings of a document into states h_t (Eq. 2).

The paper's core is an LSTM (`lstm.LSTMCore`); `transformer.Transformer` is the alternative. A core
takes the embeddings x of a window and its own state, and returns h at every position and the next
state. Every core works with every variant and every term of the output layer.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from dntm.model.fast.layout import Layout

Dropout = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]


@runtime_checkable
class Core(Protocol):
    """A language model that reads documents window by window.

    Its state, like that of every part, has `select(documents)` and `detach()`.
    """

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights."""

    def initial(self, documents: int) -> Any:
        """The state before the first sentence."""

    def __call__(
        self,
        x: Float[Tensor, "places embedding_dim"],
        layout: Layout,
        state: Any,
        dropout: Dropout,
    ) -> tuple[Float[Tensor, "places hidden_dim"], Any]:
        """h_t at every place of the layout, and the state after the window."""
