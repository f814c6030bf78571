"""ReadingState: what the model carries from one sentence of a document to the next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from dntm.model.cache import History, remember
from dntm.model.fast.window import Window
from dntm.model.salience import Mentions, follow
from dntm.model.transformer import Past


@dataclass(frozen=True, slots=True)
class ReadingState:
    """The LSTM's state and every entity's, for each document of a batch."""

    h: Float[Tensor, "batch hidden_dim"]
    c: Float[Tensor, "batch hidden_dim"]
    memory: Float[Tensor, "batch entities state_dim"]
    """d_{e,i}, and after it what else the merging function remembers."""
    mentions: Mentions | None = None
    """Of each document's entities, where the model has a term for their salience."""
    history: tuple[History, ...] | None = None
    """Of each document, where the model has a cache."""
    past: tuple[Past, ...] | None = None
    """Of each document, where the model is a Transformer."""
    current: Float[Tensor, "batch hidden_dim"] | None = None
    """v_c of each document, where the model is one after EntityNLM."""

    def detach(self) -> "ReadingState":
        """The same values, cut off from their gradients."""
        return replace(
            self,
            h=self.h.detach(),
            c=self.c.detach(),
            memory=self.memory.detach(),
            current=None if self.current is None else self.current.detach(),
        )

    def select(self, documents: Sequence[int]) -> "ReadingState":
        """The state of these documents only, in this order (one may come several times)."""
        rows = torch.tensor(documents, dtype=torch.long, device=self.h.device)
        return ReadingState(
            self.h.index_select(0, rows),
            self.c.index_select(0, rows),
            self.memory.index_select(0, rows),
            None if self.mentions is None else self.mentions.at(np.array(documents, np.int64)),
            None if self.history is None else tuple(self.history[d] for d in documents),
            None if self.past is None else tuple(self.past[d] for d in documents),
            None if self.current is None else self.current.index_select(0, rows),
        )

    def follow(self, window: Window) -> tuple[Mentions | None, Mentions | None]:
        """The mentions as of each token of a window, and after it."""
        return (None, None) if self.mentions is None else follow(window.layout, self.mentions)

    def remember(
        self, window: Window, h: Float[Tensor, "places hidden_dim"]
    ) -> tuple[History, ...] | None:
        """The history of each document after a window, where the model has a cache."""
        return None if self.history is None else remember(window.layout, self.history, h)

    def after(
        self,
        window: Window,
        table: Float[Tensor, "states state_dim"],
        h: Float[Tensor, "active hidden_dim"],
        c: Float[Tensor, "active hidden_dim"],
        *,
        mentions: Mentions | None,
        history: tuple[History, ...] | None,
    ) -> "ReadingState":
        """The state after a window: the documents it reads, in its order, end with h and c."""
        order = torch.from_numpy(window.layout.order).to(h.device)
        rows = torch.from_numpy(window.memory.ravel()).to(h.device)
        return ReadingState(
            self.h.index_copy(0, order, h),
            self.c.index_copy(0, order, c),
            table.index_select(0, rows).view_as(self.memory),
            mentions,
            history,
            self.past,
            self.current,
        )
