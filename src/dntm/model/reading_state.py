"""ReadingState: what the model carries from one sentence of a document to the next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from dntm.model.cache import History
from dntm.model.fast.window import Window
from dntm.model.lending import Kept, Lost, follow_changes, guests, keep
from dntm.model.salience import Mentions, follow
from dntm.model.transformer import Past


@dataclass(frozen=True, slots=True)
class Followed:
    """Mentions through a window."""

    tokens: Mentions
    """As of each token in reading order."""
    after: Mentions
    """Of each document after the window."""
    lost: Lost
    """The last mentions of those that have no row any more."""


@dataclass(frozen=True, slots=True)
class ReadingState:
    """The LSTM's state and every entity's, for each document of a batch."""

    h: Float[Tensor, "batch hidden_dim"]
    c: Float[Tensor, "batch hidden_dim"]
    memory: Float[Tensor, "batch entities state_dim"]
    """d_{e,i}, and after it what else the merging function remembers."""
    mentions: Mentions | None = None
    """Of each document's entities, where the model has a term for their salience."""
    kept: tuple[Kept, ...] = ()
    """Of each document's entities that have no row; empty where no document ever lent one."""
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
            kept=tuple(kept.detach() for kept in self.kept),
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
            tuple(self.kept[document] for document in documents) if self.kept else (),
            None if self.history is None else tuple(self.history[d] for d in documents),
            None if self.past is None else tuple(self.past[d] for d in documents),
            None if self.current is None else self.current.index_select(0, rows),
        )

    def guests(
        self, window: Window, initial: Float[Tensor, " state_dim"]
    ) -> Float[Tensor, "guests state_dim"]:
        """The states with which a window's guests come in; `initial` is a newcomer's."""
        return guests(self.kept, window, initial)

    def follow(self, window: Window) -> Followed | None:
        """The mentions through a window, where the model has a term for salience."""
        if self.mentions is None:
            return None
        tokens, after = follow(window.layout, self.mentions)
        lost = follow_changes(tokens, window, self.kept)
        if window.changes:
            document = window.layout.document[window.layout.sentence]
            number, reversed_last = np.unique(document[::-1], return_index=True)
            last = tokens.at(len(document) - 1 - reversed_last)
            after.ago[number], after.times[number] = last
        return Followed(tokens, after, lost)

    def after(
        self,
        window: Window,
        table: Float[Tensor, "states state_dim"],
        h: Float[Tensor, "active hidden_dim"],
        c: Float[Tensor, "active hidden_dim"],
        followed: Followed | None,
    ) -> "ReadingState":
        """The state after a window: the documents it reads, in its order, end with h and c."""
        order = torch.from_numpy(window.layout.order).to(h.device)
        rows = torch.from_numpy(window.memory.ravel()).to(h.device)
        return replace(
            self,
            h=self.h.index_copy(0, order, h),
            c=self.c.index_copy(0, order, c),
            memory=table.index_select(0, rows).view_as(self.memory),
            mentions=None if followed is None else followed.after,
            kept=keep(self.kept, window, table, {} if followed is None else followed.lost),
        )
