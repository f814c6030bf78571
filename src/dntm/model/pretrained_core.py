"""PretrainedCore: dynamic embeddings on a frozen language model (beyond the paper).

A mention is one token. Entities have rows in the embedding tables of the base model; these rows,
the memory (`core_memory`) and the terms are learned, everything else is frozen.

The rows of the sentences have <bos> but no <eos>. The first <bos> of a document is the base
model's own beginning of a text; the others stand for the last token of the sentence before them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import BOS, SPECIALS, entity_rows
from dntm.model.base_model import BaseModel
from dntm.model.core import Dropout
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.fast.layout import Layout, indices
from dntm.model.output_layer import MASKED, OutputLayer, Query
from dntm.model.term import Term

MIDDLE = 2 / 3
"""Depth of the middle layer. Chosen on cached states with the output layer alone (docs/log.md)."""
ALTERNATIVES = 16
"""Alternative sentences per call; each needs a copy of the past in memory."""


class Past(NamedTuple):
    """What one document has read."""

    keys: tuple[tuple[Tensor, Tensor], ...]
    """Keys and values of every layer."""
    h: Float[Tensor, "depths hidden_dim"]
    """The last states of the last and the middle layer."""

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


class Unread(NamedTuple):
    """The next sentences of one document."""

    x: Float[Tensor, "time embedding_dim"]
    begins: Bool[np.ndarray, " time"]
    """Whether each token is a <bos>."""
    past: Past | None


class ReadOn(NamedTuple):
    """Sentences of one document that have been read."""

    h: Float[Tensor, "time hidden_dim"]
    middle: Float[Tensor, "time hidden_dim"]
    """The states of the middle layer."""
    past: Past


class PretrainedCore(nn.Module):
    """The layers of a base model. They are not parameters of the core: no checkpoint has them."""

    decoder: Any

    def __init__(self, base: BaseModel) -> None:
        super().__init__()
        object.__setattr__(self, "decoder", base.decoder)
        self.middle = round(MIDDLE * base.layers)

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
        return h, PastState(tuple(after))

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
        past: Past | None,
    ) -> list[ReadOn]:
        """Read alternatives with the same past."""
        from transformers import DynamicCache

        count, real = len(x), ~begins
        if past is None:
            real[0] = True
        # Each <bos> has the state of the last token before it.
        last = np.cumsum(real) - (past is None)
        keys: Any = None
        h = x.new_empty(count, 2, 0, x.shape[2])
        if past is not None:
            keys = [tuple(t.expand(count, -1, -1, -1) for t in layer) for layer in past.keys]
            h = past.h.unsqueeze(1).expand(count, 2, 1, -1)
        cache: Any = DynamicCache(keys)
        if real.any():
            output = self.decoder(
                inputs_embeds=x.index_select(1, indices(np.flatnonzero(real), x)),
                past_key_values=cache,
                use_cache=True,
                output_hidden_states=True,
            )
            depths = (output.last_hidden_state, output.hidden_states[self.middle])
            h = torch.cat((h, torch.stack(depths, 1)), 2)
        states = h.index_select(2, indices(last, h))
        pasts = (
            Past(tuple((own.keys[i : i + 1], own.values[i : i + 1]) for own in cache.layers), end)
            for i, end in enumerate(h[:, :, -1])
        )
        return [ReadOn(own[0], own[1], past) for own, past in zip(states, pasts, strict=True)]


class BaseEmbedding(DynamicEmbedding):
    """The frozen input embeddings of a base model, and learned rows for entities.

    A row is the sum of a vector shared by all entities, learned from every mention, and its own.
    """

    def __init__(self, base: BaseModel, entities: int, context_dim: int | None) -> None:
        nn.Module.__init__(self)
        dim = base.x.shape[1]
        special = base.x.new_zeros(len(SPECIALS) + entities, dim)
        special[BOS] = base.x[base.start]
        self.register_buffer("weight", torch.cat((special, base.x)), persistent=False)
        self.shared = nn.Parameter(torch.empty(dim))
        self.own = nn.Parameter(torch.empty(entities, dim))
        self.W_dx = None if context_dim is None else nn.Parameter(torch.empty(dim, context_dim))
        self.rows, self.beginning = entity_rows(entities), _mean(base.x, base.names)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Entities begin near a mean name; the memory begins without effect."""
        _begin(self.shared, self.own, self.beginning, generator)
        if self.W_dx is not None:
            nn.init.zeros_(self.W_dx)

    def forward(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows dim"]:
        """The static embeddings of these rows."""
        found = nn.functional.embedding(rows, self.weight)
        entity = rows - self.rows.start
        inside = torch.nonzero((entity >= 0) & (entity < len(self.own))).squeeze(1)
        own = nn.functional.embedding(entity[inside], self.own) + self.shared
        return found.index_add(0, inside, own)


def _mean(table: Float[Tensor, "pieces dim"], rows: Sequence[int]) -> Float[Tensor, " dim"]:
    return torch.stack([table[row] for row in rows]).mean(0)


def _begin(
    shared: Float[Tensor, " dim"],
    own: Float[Tensor, "entities dim"],
    at: Float[Tensor, " dim"],
    generator: torch.Generator | None,
) -> None:
    """Initialize the shared part of all rows with `at`, and their own parts near zero."""
    nn.init.normal_(own, std=0.1 * float(at.pow(2).mean().sqrt()), generator=generator)
    with torch.no_grad():
        shared.copy_(at)


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
    """The learned output embeddings y_e and biases b_e of entities.

    y_e is the sum of a vector shared by all entities, learned from every mention, and its own.
    """

    def __init__(self, base: BaseModel, entities: int) -> None:
        super().__init__()
        self.shared = nn.Parameter(torch.empty(base.y.shape[1]))
        self.own = nn.Parameter(torch.empty(entities, base.y.shape[1]))
        self.b = nn.Parameter(torch.empty(entities))
        self.beginning = _mean(base.y, base.names)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Entities begin near a mean name."""
        _begin(self.shared, self.own, self.beginning, generator)
        nn.init.zeros_(self.b)

    @property
    def weight(self) -> Float[Tensor, "entities dim"]:
        """The rows y_e."""
        return self.own + self.shared

    def forward(
        self,
        query: Query,
        seen: Any,  # noqa: ARG002
        positions: Int[np.ndarray, " positions"],  # noqa: ARG002
    ) -> Query:
        """Add h . y_e + b_e to the logits of entities."""
        return query.add(torch.addmm(self.b, query.h, self.weight.t()))
