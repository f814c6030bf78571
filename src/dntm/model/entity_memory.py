"""EntityMemory: every state d_{e,i} of a window, as rows of one table (Sections 2.2 and 3).

    d'_{e,i} = ContextEncoder(e, i)                                     Eqs. 6 to 8
    d_{e,i}  = merge(d'_{e,i}, d_{e,i-1})                               Eq. 4
    d_{e,i}  = d_{e,i-1}   if sentence i does not mention e,   d_{e,0} = 0

The table begins with the states from before the window. The encoder first reads everything that
depends only on these. Then, level by level, contexts are encoded with the embeddings from before
their sentence and merged; each merge appends its results. The input and output layers read the
finished table. Several mentions in one sentence are merged left to right at its end, as in
`reference`.

The memory also keeps the states of evicted entities (`corpus.entity_slots`) until they return.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.entity_slots import NOBODY
from dntm.corpus.vocabulary import UNK
from dntm.model.config import ModelConfig
from dntm.model.context_encoder import ContextEncoder, SentenceWords, around
from dntm.model.core import CarriedState, Core, Dropout
from dntm.model.dynamic_embedding import add_dynamic_terms
from dntm.model.fast.layout import Level, Rest, indices
from dntm.model.fast.recurrence import Cells, Deferred, ragged_lstm
from dntm.model.fast.window import Window
from dntm.model.merging import merging_function


@dataclass(frozen=True, slots=True)
class MemoryState(CarriedState):
    """What is known of each document's entities."""

    d: Float[Tensor, "batch entities state_dim"]
    """d_{e,i}, followed by whatever else the merging function keeps."""
    evicted: tuple[Mapping[int, Float[Tensor, " state_dim"]], ...]
    """The same for each document's evicted entities."""

    def detach(self) -> "MemoryState":
        """The same values without gradients."""
        evicted = tuple({e: d.detach() for e, d in known.items()} for known in self.evicted)
        return MemoryState(self.d.detach(), evicted)

    def table(
        self, window: Window, initial: Float[Tensor, " state_dim"]
    ) -> Float[Tensor, "old_states state_dim"]:
        """The rows from before the window's contexts; an unseen entity starts with `initial`."""
        rows = self.d.flatten(0, 1)
        if not window.restored:
            return rows
        restored = [self.evicted[c.document].get(c.entity, initial) for c in window.restored]
        return torch.cat((rows, torch.stack(restored)))

    def after(self, window: Window, table: Float[Tensor, "states state_dim"]) -> "MemoryState":
        """The state after a window with this table."""
        rows = torch.from_numpy(window.memory.ravel()).to(table.device)
        d = table.index_select(0, rows).view_as(self.d)
        if not window.changes:
            return MemoryState(d, self.evicted)
        evicted = [dict(known) for known in self.evicted]
        for change in window.changes:
            evicted[change.document].pop(change.entity, None)
            if change.evicted != NOBODY:
                evicted[change.document][change.evicted] = table[change.before].clone()
        return MemoryState(d, tuple(evicted))


class EntityMemory(nn.Module):
    """Context encoder and merging function; the baseline (A) has neither and remembers nothing."""

    def __init__(self, config: ModelConfig, encoder: ContextEncoder | None = None) -> None:
        super().__init__()
        self.entities = config.entities
        self.encoder, self.merging = encoder, None
        if encoder is not None:
            self.merging = merging_function(config.merging, config.context_dim)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights."""
        if self.encoder is not None and self.merging is not None:
            self.encoder.reset_parameters(generator)
            self.merging.reset_parameters(generator)

    def initial_row(self, like: Float[Tensor, "..."]) -> Float[Tensor, " state_dim"]:
        """The state of an entity before its first context."""
        return like.new_empty(0) if self.merging is None else self.merging.initial(like)

    def initial(self, documents: int, like: Float[Tensor, "..."]) -> MemoryState:
        """The state before the first sentence."""
        d = self.initial_row(like).expand(documents, self.entities, -1)
        return MemoryState(d, ({},) * documents)

    def forward(  # noqa: PLR0917
        self,
        window: Window,
        words: Sequence[Float[Tensor, "_ embedding_dim"]],
        state: MemoryState,
        W_dx: Deferred | None,
        dropout: Dropout,
        core: Core,  # noqa: ARG002 (for memories that read with the core)
        past: Any,  # noqa: ARG002
    ) -> tuple[Float[Tensor, "states state_dim"], tuple[Tensor, Any] | None]:
        """The table of all states, and what the core has already read, if anything.

        `words` are the static embeddings of the window's tokens and of `encoder_tokens`.
        """
        table = state.table(window, self.initial_row(state.d))
        if not window.levels or self.encoder is None or self.merging is None:
            return table, None
        directions = (self.encoder.forward_lstm.bind(), self.encoder.backward_lstm.bind())
        merger, static, ahead = self.merging.bind(), iter(words[1:]), []
        # In both loops over directions: Eq. 7 (forward), then Eq. 8 (backward).
        for direction, (call, weights) in enumerate(zip(window.ahead, directions, strict=True)):
            x = add_dynamic_terms(next(static), W_dx, table, call.entity_places, call.entity_rows)
            rests = [level.rests[direction] for level in window.levels]
            ahead.append(_per_level(ragged_lstm(x, weights, call.widths), rests))
        for level, *begins in zip(window.levels, *ahead, strict=True):
            adjacent_h = []
            for rest, weights, (adjacent, before) in zip(
                level.rests, directions, begins, strict=True
            ):
                call = rest.call
                x = add_dynamic_terms(
                    next(static), W_dx, table, call.entity_places, call.entity_rows
                )
                h = adjacent
                if len(x):
                    h = torch.cat((adjacent, ragged_lstm(x, weights, call.widths, before).h))
                adjacent_h.append(h.index_select(0, indices(rest.adjacent, h)))
            read_again = partial(sentence_words, window, level, words[0])
            contexts = self.encoder.contexts(adjacent_h[0], adjacent_h[1], read_again)  # Eq. 6
            inputs = merger.inputs(dropout(contexts))
            for merge in level.merges:
                merged = inputs.index_select(0, indices(merge.contexts, inputs))
                previous = table.index_select(0, indices(merge.previous, table))
                table = torch.cat((table, merger.merge(merged, previous)))  # Eq. 4
        return table, None


def sentence_words(
    window: Window, level: Level, words: Float[Tensor, "places embedding_dim"]
) -> SentenceWords:
    """The sentences of a level's mentions; `words` are the embeddings of the window's tokens."""
    layout = window.layout
    starts = np.searchsorted(layout.sentence, level.sentence)
    lengths = np.searchsorted(layout.sentence, level.sentence, side="right") - starts
    time, seen = around(level.position, lengths)
    places = layout.read[np.minimum(starts[:, None] + time, len(layout.read) - 1)]
    rows = np.where(seen, layout.tokens[places], UNK)
    x = words.index_select(0, indices(places.ravel(), words)).view(*places.shape, -1)
    return SentenceWords(rows, x, np.abs(time - level.position[:, None]))


def encoder_tokens(window: Window) -> list[Int[np.ndarray, " _"]]:
    """The vocabulary rows that the encoder reads, call by call."""
    rests = [rest.call for level in window.levels for rest in level.rests]
    return [call.tokens for call in (*window.ahead, *rests)]


def _per_level(
    ahead: Cells, rests: Sequence[Rest]
) -> Iterator[tuple[Float[Tensor, "ahead encoder_dim"], Cells]]:
    """For each level, the h next to its mentions and the states from which its rests continue.

    One selection for all levels, so that its gradient is a single table.
    """

    def select(
        values: Float[Tensor, "places encoder_dim"], wanted: Sequence[Int[np.ndarray, " _"]]
    ) -> tuple[Float[Tensor, "_ encoder_dim"], ...]:
        found = values.index_select(0, indices(np.concatenate(wanted), values))
        return torch.split(found, [len(places) for places in wanted])

    begins = [rest.begins for rest in rests]
    h = select(ahead.h, [rest.ahead for rest in rests] + begins)
    c = select(ahead.c, begins)
    states = map(Cells, h[len(rests) :], c)
    return zip(h[: len(rests)], states, strict=True)
