"""PretrainedCore and CoreMemory: dynamic embeddings on a frozen language model (beyond the paper).

A mention is one token. The entities' rows (`base_model`), the memory and the terms are learned;
everything else is frozen.

The rows of the sentences have <bos> but no <eos>. The first <bos> of a document is the base
model's own beginning of a text; the others stand for the last token of the sentence before them.

The memory's contexts are states of the core instead of a BiLSTM:

    d'_e = ReLU(W_hd [n(g_{t-1}); n(g_end)] + b_d),   n(g) = g / rms(g)   instead of Eq. 6

g are the states after two thirds of the layers: g_{t-1} before the mention and g_end at the end of
its sentence. Both are computed with d_{e,i-1}, so the model reads left to right, sentence by
sentence. In training, a first pass without gradients computes the contexts, and a second pass reads
all sentences at once. Both passes give the same h, so the second one is left out if h needs no
gradients: variant C with frozen x. Gradients reach the memory through x_e and y_e, but not through
the states in the contexts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import BOS
from dntm.model.base_model import BaseModel
from dntm.model.config import ModelConfig
from dntm.model.core import Core, Dropout, Past
from dntm.model.dynamic_embedding import add_dynamic_terms
from dntm.model.entity_memory import EntityMemory, MemoryState
from dntm.model.fast.layout import Layout, indices
from dntm.model.fast.recurrence import Deferred
from dntm.model.fast.window import Window
from dntm.model.merging import merging_function

MIDDLE = 2 / 3
"""Depth of the middle layer. Chosen on cached states with the output layer alone (docs/log.md)."""
ALTERNATIVES = 16
"""Alternative sentences per call; each needs a copy of the past in memory."""


class ReadText(NamedTuple):
    """What one document has read, without gradients; None at its beginning."""

    keys: tuple[tuple[tuple[Tensor, ...], ...], ...]
    """Keys and values of every layer, one part per call; later states share the parts."""
    h: Float[Tensor, "depths hidden_dim"]
    """The last states of the last and the middle layer."""


class Unread(NamedTuple):
    """The next sentences of one document."""

    x: Float[Tensor, "time embedding_dim"]
    begins: Bool[np.ndarray, " time"]
    """Whether each token is a <bos>."""
    past: ReadText | None


class ReadOn(NamedTuple):
    """Sentences of one document that have been read."""

    h: Float[Tensor, "time hidden_dim"]
    middle: Float[Tensor, "time hidden_dim"]
    """The states of the middle layer."""
    past: ReadText


class PretrainedCore(nn.Module):
    """The layers of a base model. They are not parameters of the core: no checkpoint has them."""

    base: BaseModel

    def __init__(self, base: BaseModel) -> None:
        super().__init__()
        object.__setattr__(self, "base", base)
        self.middle = round(MIDDLE * base.layers)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Nothing to draw."""

    def initial(self, documents: int) -> Past:
        """Nothing has been read."""
        return Past((None,) * documents)

    def forward(
        self,
        x: Float[Tensor, "places embedding_dim"],
        layout: Layout,
        state: Past,
        dropout: Dropout,  # noqa: ARG002 (the base model is frozen)
    ) -> tuple[Float[Tensor, "places hidden_dim"], Past]:
        """Every h_t, and each document's past after the window."""
        document = layout.document[layout.sentence]
        numbers = np.unique(document).tolist()
        places = [layout.read[document == number] for number in numbers]
        found = self.read(
            [
                Unread(x[indices(own, x)], layout.tokens[own] == BOS, state.documents[number])
                for own, number in zip(places, numbers, strict=True)
            ]
        )
        after = list(state.documents)
        h = torch.zeros_like(x)
        for own, number, read in zip(places, numbers, found, strict=True):
            h = h.index_copy(0, indices(own, x), read.h)
            after[number] = read.past
        return h, Past(tuple(after))

    def read(self, documents: Sequence[Unread]) -> list[ReadOn]:
        """Read the next sentences of some documents.

        Alternatives with the same past and sentence lengths (cloze test) are read in one call.
        """
        groups: dict[tuple[int, bytes], list[int]] = {}
        for number, (_, begins, past) in enumerate(documents):
            groups.setdefault((id(past), begins.tobytes()), []).append(number)
        found: dict[int, ReadOn] = {}
        for numbers in groups.values():
            for start in range(0, len(numbers), ALTERNATIVES):
                some = numbers[start : start + ALTERNATIVES]
                x = torch.stack([documents[number].x for number in some])
                read = self._read_alternatives(x, *documents[some[0]][1:])
                found.update(zip(some, read, strict=True))
        return [found[number] for number in range(len(documents))]

    def _read_alternatives(
        self,
        x: Float[Tensor, "alternatives time embedding_dim"],
        begins: Bool[np.ndarray, " time"],
        past: ReadText | None,
    ) -> list[ReadOn]:
        from transformers import DynamicCache

        count, real = len(x), ~begins
        if past is None:
            real[0] = True
        # Each <bos> has the state of the last token before it.
        last = np.cumsum(real) - (past is None)
        keys, before, parts = [], 0, past.keys if past else ()
        h = x.new_empty(count, 2, 0, x.shape[2])
        if past is not None:
            for layer in zip(*parts, strict=True):
                joined = [torch.cat(part, 2) for part in zip(*layer, strict=True)]
                keys.append(tuple(part.expand(count, -1, -1, -1) for part in joined))
            before, h = keys[0][0].shape[2], past.h.unsqueeze(1).expand(count, 2, 1, -1)
        if (length := before + int(real.sum())) > self.base.positions:
            expected = f"the base model reads at most {self.base.positions:,}: divide the text"
            raise ValueError(f"a text of {length:,} pieces or more, but {expected}")
        cache: Any = DynamicCache(keys or None)
        if real.any():
            decoder, dtype = self.base.decoder_for(x, training=self.training)
            output = decoder(
                inputs_embeds=x.index_select(1, indices(np.flatnonzero(real), x)).to(dtype),
                past_key_values=cache,
                use_cache=True,
                output_hidden_states=True,
            )
            depths = (output.last_hidden_state, output.hidden_states[self.middle])
            h = torch.cat((h, torch.stack(depths, 1).to(h)), 2)
        states = h.index_select(2, indices(last, h))
        found = []
        for i, (own, end) in enumerate(zip(states, h[:, :, -1].detach(), strict=True)):
            new = tuple(
                tuple(t[i : i + 1, :, before:].detach().clone() for t in (layer.keys, layer.values))
                for layer in cache.layers
            )
            read = ReadText((*parts, new) if real.any() else parts, end)
            found.append(ReadOn(own[0], own[1], read))
        return found


class CoreMemory(EntityMemory):
    """A memory whose contexts are states of the core."""

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)
        self.entities, self.encoder = config.entities, None
        self.drops_words = config.dropout_embedding > 0
        self.merging = merging_function(config.merging, config.context_dim)
        self.W_hd = nn.Parameter(torch.empty(config.context_dim, 2 * config.hidden_dim))
        self.b_d = nn.Parameter(torch.empty(config.context_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialize the weights; W_hd preserves the variance of its input through the ReLU."""
        nn.init.kaiming_uniform_(self.W_hd, nonlinearity="relu", generator=generator)
        nn.init.zeros_(self.b_d)
        assert self.merging is not None
        self.merging.reset_parameters(generator)

    def forward(  # noqa: PLR0917
        self,
        window: Window,
        words: Sequence[Float[Tensor, "_ embedding_dim"]],
        state: MemoryState,
        W_dx: Deferred | None,
        dropout: Dropout,
        core: Core,
        past: Past,
    ) -> tuple[
        Float[Tensor, "states state_dim"],
        tuple[Float[Tensor, "places hidden_dim"], Past] | None,
    ]:
        """The table of all states; if h needs no gradients, also h and the state of the core."""
        assert isinstance(core, PretrainedCore)
        h, middle, after = self._read_ahead(window, words[0], state, W_dx, core, past)
        table = self._table(window, middle, state, dropout)
        is_learned = W_dx is not None or words[0].requires_grad or self.drops_words
        return table, None if torch.is_grad_enabled() and is_learned else (h, after)

    @torch.no_grad()
    def _read_ahead(  # noqa: PLR0917
        self,
        window: Window,
        words: Float[Tensor, "places embedding_dim"],
        state: MemoryState,
        W_dx: Deferred | None,
        core: PretrainedCore,
        past: Past,
    ) -> tuple[Float[Tensor, "places hidden_dim"], Float[Tensor, "places hidden_dim"], Past]:
        """Read left to right, each sentence with the entity states from before the sentence.

        Sentences are read together if none of them uses a state that another one updates.
        """
        layout, merges = window.layout, window.merges
        assert self.merging is not None
        merger = self.merging.bind()
        known = state.table(window, self.initial_row(state.d))
        table = torch.cat((known, known.new_zeros(len(merges.state), known.shape[1])))
        h, middle, after = torch.zeros_like(words), torch.zeros_like(words), list(past.documents)
        state_at = np.full(len(layout.tokens), -1)
        state_at[window.entity_places] = window.entity_rows
        starts = np.searchsorted(layout.sentence, np.arange(len(layout.document) + 1))
        runs = self._together(window, starts, state_at, dynamic=W_dx is not None)
        while some := [own.pop(0) for own in runs.values() if own]:
            unread, places = [], [layout.read[starts[first] : starts[end]] for first, end in some]
            for (first, _), own in zip(some, places, strict=True):
                mentions = np.flatnonzero(state_at[own] >= 0)
                x = words.index_select(0, indices(own, words))
                x = add_dynamic_terms(x, W_dx, table, mentions, state_at[own[mentions]])
                begins = layout.tokens[own] == BOS
                unread.append(Unread(x, begins, after[layout.document[first]]))
            for (first, end), own, read in zip(some, places, core.read(unread), strict=True):
                h[indices(own, h)], middle[indices(own, h)] = read.h, read.middle
                after[layout.document[first]] = read.past
                merged = np.flatnonzero((merges.sentence >= first) & (merges.sentence < end))
                merged = merged[np.argsort(merges.state[merged])]
                inputs = merger.inputs(self._contexts_of(window, middle, merged))
                for m, context in zip(merged.tolist(), inputs, strict=True):
                    previous = table[merges.previous[m]].unsqueeze(0)
                    table[merges.state[m]] = merger.merge(context.unsqueeze(0), previous)[0]
        return h, middle, Past(tuple(after))

    @staticmethod
    def _together(
        window: Window,
        starts: Int[np.ndarray, " bounds"],
        state_at: Int[np.ndarray, " places"],
        *,
        dynamic: bool,
    ) -> dict[int, list[tuple[int, int]]]:
        """For each document, runs of sentences whose inputs do not depend on each other."""
        layout, merges = window.layout, window.merges
        runs: dict[int, list[tuple[int, int]]] = {}
        fresh: set[int] = set()
        for sentence, document in enumerate(layout.document.tolist()):
            used = state_at[layout.read[starts[sentence] : starts[sentence + 1]]].tolist()
            own = runs.setdefault(document, [])
            if not own or (dynamic and not fresh.isdisjoint(used)):
                own.append((sentence, sentence))
                fresh = set()
            own[-1] = (own[-1][0], sentence + 1)
            fresh.update(merges.state[merges.sentence == sentence].tolist())
        return runs

    def _contexts_of(
        self,
        window: Window,
        middle: Float[Tensor, "places hidden_dim"],
        merged: Int[np.ndarray, " mentions"],
    ) -> Float[Tensor, "mentions context_dim"]:
        """The contexts of these mentions, given the states of the middle layer."""
        layout, sentence = window.layout, window.merges.sentence[merged]
        before = np.searchsorted(layout.sentence, sentence) + window.merges.position[merged] - 1
        ends = np.searchsorted(layout.sentence, sentence, side="right") - 1
        g = (middle.index_select(0, indices(layout.read[p], middle)) for p in (before, ends))
        states = torch.cat([nn.functional.rms_norm(h, h.shape[1:]) for h in g], 1)
        return torch.relu(torch.addmm(self.b_d, states, self.W_hd.t()))

    def _table(
        self,
        window: Window,
        middle: Float[Tensor, "places hidden_dim"],
        state: MemoryState,
        dropout: Dropout,
    ) -> Float[Tensor, "states state_dim"]:
        """The table of all states, given the middle layer's states in the window."""
        table = state.table(window, self.initial_row(state.d))
        assert self.merging is not None
        merger, order = self.merging.bind(), np.argsort(window.merges.state)
        inputs = merger.inputs(dropout(self._contexts_of(window, middle, order)))
        previous, done = window.merges.previous[order], 0
        while done < len(order):
            # All merges whose previous states are in the table.
            waiting = np.flatnonzero(previous[done:] >= len(table))
            until = done + int(waiting[0]) if len(waiting) else len(order)
            states = table.index_select(0, indices(previous[done:until], table))
            table = torch.cat((table, merger.merge(inputs[done:until], states)))
            done = until
        return table
