"""read(model, window, state): the fast path through the three parts of the model.

    d  the memory: contexts are encoded and merged, level by level     Eqs. 4, 6 to 8
    x  the embeddings of all tokens                                    Eq. 9
    h  the core reads all tokens                                       Eq. 2
    p  the terms complete the query at given positions                 Eqs. 1, 10

Losses, scores and distributions are functions of a `Read`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.entity_slots import NOBODY
from dntm.corpus.vocabulary import entity_rows
from dntm.model.dynamic_embedding import add_dynamic_terms
from dntm.model.entity_memory import encoder_tokens
from dntm.model.fast.layout import indices
from dntm.model.fast.recurrence import Deferred
from dntm.model.fast.window import Window
from dntm.model.output_layer import Query
from dntm.model.parameters import Parameters, State
from dntm.model.term import Observation


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A window that has been read."""

    window: Window
    h: Float[Tensor, "places hidden_dim"]
    """The core's states; places are indices into `window.layout.tokens`."""
    d: Float[Tensor, "states context_dim"]
    """The memory's table; `window.merges.state` and `window.known` are indices into it."""
    seen: tuple[Any, ...]
    """What each term has observed."""
    after: State
    """The state after the window."""


def read(
    model: Parameters, window: Window, state: State, generator: torch.Generator | None = None
) -> Read:
    """Read a window from a state; in training, dropout draws from `generator`."""
    config = model.config
    if model.exchange_memories:
        window = exchange_memories(window, state.memory.d[:, :, : config.context_dim])

    def drop_context(values: Tensor) -> Tensor:
        return dropout(model, values, config.dropout_context, generator)

    # One lookup for core and encoder: its gradient is a table as large as all embeddings.
    parts = [window.layout.tokens, *encoder_tokens(window)]
    rows = indices(np.concatenate(parts), model.x.weight)
    words = torch.split(model.x(rows), [len(part) for part in parts])
    W_dx = None if model.x.W_dx is None else Deferred(model.x.W_dx)
    memory = (window, words, state.memory, W_dx, drop_context, model.core, state.core)
    table, already_read = model.memory(*memory)
    x = add_dynamic_terms(words[0], W_dx, table, window.entity_places, window.entity_rows)
    x = dropout(model, x, config.dropout_embedding, generator)
    h, core = already_read or model.core(x, window.layout, state.core, drop_context)
    d = table[:, : config.context_dim]
    observation = Observation(window=window, h=h, d=d, x=model.x, output=model.output)
    observed = [
        term.observe(observation, term_state)
        for term, term_state in zip(model.ordered_terms, state.terms, strict=True)
    ]
    return Read(
        window=window,
        h=h,
        d=observation.d,
        seen=tuple(seen for seen, _ in observed),
        after=State(core, state.memory.after(window, table), tuple(after for _, after in observed)),
    )


def query(
    model: Parameters,
    read: Read,
    positions: Int[np.ndarray, " positions"],
    generator: torch.Generator | None = None,
) -> Query:
    """What the softmax sees after these tokens: rising indices in reading order."""
    h = read.h.index_select(0, indices(read.window.layout.read[positions], read.h))
    found = Query(dropout(model, h, model.config.dropout_hidden, generator))
    for term, seen in zip(model.ordered_terms, read.seen, strict=True):
        found = term(found, seen, positions)
    return found


def dropout(
    model: Parameters, values: Tensor, rate: float, generator: torch.Generator | None
) -> Tensor:
    """Inverted dropout, in training only."""
    if not model.training or rate == 0:
        return values
    kept = torch.empty_like(values).bernoulli_(1 - rate, generator=generator)
    return values * kept / (1 - rate)


def exchange_memories(window: Window, d: Float[Tensor, "batch entities context_dim"]) -> Window:
    """A control that shows how much of a result depends on *which* entity a memory belongs to.

    In the input and output layers, every entity that was mentioned before has the state of the next
    such entity of its document. If a model gains as much as with the right states, it has only
    learned that an entity was mentioned before, or what the document is about. `d` are the states
    before the window, zero for unseen entities.
    """
    before = d.flatten(0, 1).detach().any(1).cpu().numpy()
    restored = np.array([change.entity != NOBODY for change in window.restored], dtype=np.bool_)
    merged = np.ones(window.known.max(initial=0) + 1, dtype=np.bool_)
    seen = np.concatenate((before, restored, merged))
    known = window.known.copy()
    for row in known:
        mentioned = np.flatnonzero(seen[row])
        row[mentioned] = row[np.roll(mentioned, -1)]
    sentence = np.zeros(len(window.layout.tokens), dtype=np.int64)
    sentence[window.layout.read] = window.layout.sentence
    places = window.entity_places
    entity = window.layout.tokens[places] - entity_rows(known.shape[1]).start
    return replace(window, known=known, entity_rows=known[sentence[places], entity])
