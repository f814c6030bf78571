"""PretrainedCore: dynamic embeddings on a frozen language model (beyond the paper).

A mention is one token. Entities have rows in the embedding tables of the base model; these rows,
the memory and the terms are learned, everything else is frozen. Contexts are states of the core
itself instead of a BiLSTM's:

    d'_e = ReLU(W_hd [n(h_{t-1}); n(h_end)] + b_d),   n(h) = h / rms(h)          for Eq. 6

h_{t-1} is the state before the mention, h_end the one at the end of its sentence; both were read
with d_{e,i-1}, so the model reads left to right, sentence by sentence. For training, a first pass
without gradients makes the contexts; a second one reads all sentences at once. Both give the same
h. Gradients reach the memory through x_e and y_e, but not through the states in the contexts.

The rows of the sentences have <bos> but no <eos>. The first <bos> of a document is the base
model's own beginning of a text; the others stand for the last token of the sentence before them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import BOS, SPECIALS, entity_rows
from dntm.model.base_model import BaseModel
from dntm.model.config import ModelConfig
from dntm.model.core import Core, Dropout
from dntm.model.dynamic_embedding import DynamicEmbedding, add_dynamic_terms
from dntm.model.entity_memory import EntityMemory, MemoryState
from dntm.model.fast.layout import Layout, indices
from dntm.model.fast.recurrence import Deferred
from dntm.model.fast.window import Window
from dntm.model.merging import merging_function
from dntm.model.output_layer import MASKED, OutputLayer, Query
from dntm.model.term import Term


class Past(NamedTuple):
    """What one document has read."""

    keys: tuple[tuple[Tensor, Tensor], ...]
    """Keys and values of every layer."""
    h: Float[Tensor, " hidden_dim"]
    """The last state."""

    def detach(self) -> "Past":
        """The same values without gradients."""
        return Past(tuple((k.detach(), v.detach()) for k, v in self.keys), self.h.detach())


class PastState(NamedTuple):
    """The past of each document; None at its beginning."""

    documents: tuple[Past | None, ...]

    def select(self, documents: Sequence[int]) -> "PastState":
        """The state of these documents, in this order."""
        return PastState(tuple(self.documents[document] for document in documents))

    def detach(self) -> "PastState":
        """The same values without gradients."""
        return PastState(tuple(past and past.detach() for past in self.documents))


class PretrainedCore(nn.Module):
    """The layers of a base model. They are not parameters of the core: no checkpoint has them."""

    decoder: Any

    def __init__(self, base: BaseModel) -> None:
        super().__init__()
        object.__setattr__(self, "decoder", base.decoder)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.decoder._apply(fn, recurse)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Nothing to draw."""

    def initial(self, documents: int) -> PastState:
        """Nothing has been read."""
        return PastState((None,) * documents)

    def forward(
        self,
        x: Float[Tensor, "places embedding_dim"],
        layout: Layout,
        state: PastState,
        dropout: Dropout,  # noqa: ARG002 (the base model is frozen)
    ) -> tuple[Float[Tensor, "places hidden_dim"], PastState]:
        """Every h_t, and each document's past after the window."""
        document = layout.document[layout.sentence]
        h, after = torch.zeros_like(x), list(state.documents)
        for number in np.unique(document).tolist():
            places = layout.read[document == number]
            own = indices(places, x)
            found, after[number] = self.read(
                x.index_select(0, own), layout.tokens[places] == BOS, state.documents[number]
            )
            h = h.index_copy(0, own, found)
        return h, PastState(tuple(after))

    def read(
        self,
        x: Float[Tensor, "time embedding_dim"],
        begins: Bool[np.ndarray, " time"],
        past: Past | None,
    ) -> tuple[Float[Tensor, "time hidden_dim"], Past]:
        """Read the next sentences of one document; `begins` marks every <bos>."""
        from transformers import DynamicCache

        real = ~begins
        if past is None:
            real[0] = True
        # Each <bos> has the state of the last token before it.
        last = np.cumsum(real) - (past is None)
        cache: Any = DynamicCache(None if past is None else past.keys)
        h = x[:0] if past is None else past.h.unsqueeze(0)
        if real.any():
            read = x.index_select(0, indices(np.flatnonzero(real), x)).unsqueeze(0)
            output = self.decoder(inputs_embeds=read, past_key_values=cache, use_cache=True)
            h = torch.cat((h, output.last_hidden_state[0]))
        keys = tuple((layer.keys, layer.values) for layer in cache.layers)
        return h.index_select(0, indices(last, h)), Past(keys, h[-1])


class BaseEmbedding(DynamicEmbedding):
    """The frozen input embeddings of a base model, and learned rows for entities."""

    def __init__(self, base: BaseModel, entities: int, context_dim: int | None) -> None:
        nn.Module.__init__(self)
        dim = base.x.shape[1]
        special = base.x.new_zeros(len(SPECIALS) + entities, dim)
        special[BOS] = base.x[base.start]
        self.register_buffer("weight", torch.cat((special, base.x)), persistent=False)
        self.own = nn.Parameter(torch.empty(entities, dim))
        self.W_dx = None if context_dim is None else nn.Parameter(torch.empty(dim, context_dim))
        self.rows, self.beginning = entity_rows(entities), _mean(base.x, base.names)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Entities begin near a mean name; the memory begins without effect."""
        _begin(self.own, self.beginning, generator)
        if self.W_dx is not None:
            nn.init.zeros_(self.W_dx)

    def forward(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows dim"]:
        """The static embeddings of these rows."""
        found = nn.functional.embedding(rows, self.weight)
        entity = rows - self.rows.start
        inside = torch.nonzero((entity >= 0) & (entity < len(self.own))).squeeze(1)
        own = nn.functional.embedding(entity[inside], self.own)
        return found.index_add(0, inside, own)


def _mean(table: Float[Tensor, "pieces dim"], rows: Sequence[int]) -> Float[Tensor, " dim"]:
    return torch.stack([table[row] for row in rows]).mean(0)


def _begin(
    rows: Float[Tensor, "entities dim"],
    at: Float[Tensor, " dim"],
    generator: torch.Generator | None,
) -> None:
    nn.init.normal_(rows, std=0.1 * float(at.pow(2).mean().sqrt()), generator=generator)
    with torch.no_grad():
        rows += at.to(rows.device)


class BaseOutput(OutputLayer):
    """The frozen output embeddings of a base model; special tokens have no probability."""

    def __init__(self, base: BaseModel, x: BaseEmbedding, entities: int) -> None:
        nn.Module.__init__(self)
        special = base.y.new_zeros(entity_rows(entities).stop, base.y.shape[1])
        tied = base.y.data_ptr() == base.x.data_ptr()
        weight = x.weight if tied else torch.cat((special, base.y))
        b = base.y.new_zeros(len(weight))
        b[: len(SPECIALS)] = MASKED
        if base.b is not None:
            b[len(special) :] = base.b
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("b", b, persistent=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Nothing to draw."""


class EntityRows(Term):
    """The learned output embeddings y_e and biases b_e of entities."""

    def __init__(self, base: BaseModel, entities: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(entities, base.y.shape[1]))
        self.b = nn.Parameter(torch.empty(entities))
        self.beginning = _mean(base.y, base.names)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Entities begin near a mean name."""
        _begin(self.weight, self.beginning, generator)
        nn.init.zeros_(self.b)

    def forward(
        self,
        query: Query,
        seen: Any,  # noqa: ARG002
        positions: Int[np.ndarray, " positions"],  # noqa: ARG002
    ) -> Query:
        """Add h . y_e + b_e to the logits of entities."""
        return query.add(torch.addmm(self.b, query.h, self.weight.t()))


class CoreMemory(EntityMemory):
    """A memory whose contexts are states of the core."""

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)
        self.entities, self.encoder = config.entities, None
        self.merging = merging_function(config.merging, config.context_dim)
        self.W_hd = nn.Parameter(torch.empty(config.context_dim, 2 * config.hidden_dim))
        self.b_d = nn.Parameter(torch.empty(config.context_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; W_hd preserves the variance of its input through the ReLU."""
        nn.init.kaiming_uniform_(self.W_hd, nonlinearity="relu", generator=generator)
        nn.init.zeros_(self.b_d)
        assert self.merging is not None
        self.merging.reset_parameters(generator)

    def contexts(
        self,
        before: Float[Tensor, "mentions hidden_dim"],
        end: Float[Tensor, "mentions hidden_dim"],
    ) -> Float[Tensor, "mentions context_dim"]:
        """d'_e from the states before the mentions and at the ends of their sentences."""
        states = torch.cat((_normalized(before), _normalized(end)), 1)
        return torch.relu(torch.addmm(self.b_d, states, self.W_hd.t()))

    def forward(  # noqa: PLR0917
        self,
        window: Window,
        words: Sequence[Float[Tensor, "_ embedding_dim"]],
        state: MemoryState,
        W_dx: Deferred | None,
        dropout: Dropout,
        core: Core,
        past: PastState,
    ) -> tuple[
        Float[Tensor, "states state_dim"],
        tuple[Float[Tensor, "places hidden_dim"], PastState] | None,
    ]:
        """The table of all states; without gradients, also what the core has read."""
        assert isinstance(core, PretrainedCore)
        ahead = self._read_ahead(window, words[0], state, W_dx, core, past)
        table = self._table(window, ahead[0], state, dropout)
        return table, None if torch.is_grad_enabled() else ahead

    @torch.no_grad()
    def _read_ahead(  # noqa: PLR0917
        self,
        window: Window,
        words: Float[Tensor, "places embedding_dim"],
        state: MemoryState,
        W_dx: Deferred | None,
        core: PretrainedCore,
        past: PastState,
    ) -> tuple[Float[Tensor, "places hidden_dim"], PastState]:
        """Read left to right, each sentence with the states of the entities before it.

        Sentences that mention nothing that the others have just merged are read together.
        """
        layout, merges = window.layout, window.merges
        assert self.merging is not None
        merger = self.merging.bind()
        known = state.table(window, self.initial_row(state.d))
        table = torch.cat((known, known.new_zeros(len(merges.state), known.shape[1])))
        h, after = torch.zeros_like(words), list(past.documents)
        state_at = np.full(len(layout.tokens), -1)
        state_at[window.entity_places] = window.entity_rows
        starts = np.searchsorted(layout.sentence, np.arange(len(layout.document) + 1))
        for first, end in self._together(window, starts, state_at, dynamic=W_dx is not None):
            document, places = layout.document[first], layout.read[starts[first] : starts[end]]
            mentions = np.flatnonzero(state_at[places] >= 0)
            x = words.index_select(0, indices(places, words))
            x = add_dynamic_terms(x, W_dx, table, mentions, state_at[places[mentions]])
            own, after[document] = core.read(x, layout.tokens[places] == BOS, after[document])
            h[indices(places, h)] = own
            merged = np.flatnonzero((merges.sentence >= first) & (merges.sentence < end))
            merged = merged[np.argsort(merges.state[merged])]
            inputs = merger.inputs(self._contexts_of(window, h, merged))
            for m, context in zip(merged.tolist(), inputs, strict=True):
                previous = table[merges.previous[m]].unsqueeze(0)
                table[merges.state[m]] = merger.merge(context.unsqueeze(0), previous)[0]
        return h, PastState(tuple(after))

    @staticmethod
    def _together(
        window: Window,
        starts: Int[np.ndarray, " bounds"],
        state_at: Int[np.ndarray, " places"],
        *,
        dynamic: bool,
    ) -> Iterator[tuple[int, int]]:
        """Runs of sentences of one document whose inputs do not depend on each other."""
        layout, merges = window.layout, window.merges
        first, fresh = 0, set[int]()
        for sentence, document in enumerate(layout.document):
            used = state_at[layout.read[starts[sentence] : starts[sentence + 1]]].tolist()
            if document != layout.document[first] or (dynamic and not fresh.isdisjoint(used)):
                yield first, sentence
                first, fresh = sentence, set()
            fresh.update(merges.state[merges.sentence == sentence].tolist())
        yield first, len(layout.document)

    def _contexts_of(
        self,
        window: Window,
        h: Float[Tensor, "places hidden_dim"],
        merged: Int[np.ndarray, " mentions"],
    ) -> Float[Tensor, "mentions context_dim"]:
        """The contexts of these mentions, given the core's states."""
        layout, sentence = window.layout, window.merges.sentence[merged]
        before = np.searchsorted(layout.sentence, sentence) + window.merges.position[merged] - 1
        ends = np.searchsorted(layout.sentence, sentence, side="right") - 1
        states = (h.index_select(0, indices(layout.read[p], h)) for p in (before, ends))
        return self.contexts(*states)

    def _table(
        self,
        window: Window,
        h: Float[Tensor, "places hidden_dim"],
        state: MemoryState,
        dropout: Dropout,
    ) -> Float[Tensor, "states state_dim"]:
        """The table of all states, given the core's states in the window."""
        table = state.table(window, self.initial_row(state.d))
        assert self.merging is not None
        merger, order = self.merging.bind(), np.argsort(window.merges.state)
        inputs = merger.inputs(dropout(self._contexts_of(window, h, order)))
        previous, done = window.merges.previous[order], 0
        while done < len(order):
            # All merges whose previous states are in the table.
            waiting = np.flatnonzero(previous[done:] >= len(table))
            until = done + int(waiting[0]) if len(waiting) else len(order)
            states = table.index_select(0, indices(previous[done:until], h))
            table = torch.cat((table, merger.merge(inputs[done:until], states)))
            done = until
        return table


def _normalized(h: Float[Tensor, "mentions hidden_dim"]) -> Float[Tensor, "mentions hidden_dim"]:
    return nn.functional.rms_norm(h, (h.shape[1],))
