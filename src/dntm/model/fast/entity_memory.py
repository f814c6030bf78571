"""Entity memory: every state d_{e,i} of a window, as rows of one table (Sections 2.2 and 3).

    d'_{e,i} = ContextEncoder(e, i)
    d_{e,i}  = merge(d'_{e,i}, d_{e,i-1}),   d_{e,i} = d_{e,i-1} if e is not in sentence i

The table begins with the states from before the window. What depends on these alone is read ahead;
then level by level the contexts are encoded, with the embeddings from before their sentence, and
merged; each merge adds its results as rows. Both layers read the finished table. Several mentions
of a sentence are merged left to right at its end, as in `reference`.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.model.context_encoder import ContextEncoder
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.fast.encoding import Rest
from dntm.model.fast.recurrence import Deferred, State, ragged_lstm
from dntm.model.fast.window import Window
from dntm.model.merging import MergingFunction


def indices(array: Int[np.ndarray, "..."], like: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The same numbers as a tensor beside `like`."""
    return torch.from_numpy(array).to(like.device)


def add_dynamic_terms(
    words: Float[Tensor, "places embedding_dim"],
    W_dx: Deferred | None,
    table: Float[Tensor, "states state_dim"],
    places: Int[np.ndarray, " entity_places"],
    rows: Int[np.ndarray, " entity_places"],
) -> Float[Tensor, "places embedding_dim"]:
    """Eq. 9 at the places that hold an entity: their static embeddings plus W_dx d."""
    if W_dx is None or not len(places):
        return words
    d = table.index_select(0, indices(rows, table))[:, : W_dx.W.shape[1]]
    return words.index_add(0, indices(places, words), W_dx(d))


def encoder_tokens(window: Window) -> list[Int[np.ndarray, " _"]]:
    """The vocabulary rows that the encoder reads, call by call."""
    rests = [rest.call for level in window.levels for rest in level.rests]
    return [call.tokens for call in (*window.ahead, *rests)]


def state_table(
    window: Window,
    words: Sequence[Float[Tensor, "_ embedding_dim"]],
    table: Float[Tensor, "old_states state_dim"],
    *,
    W_dx: Deferred | None,
    encoder: ContextEncoder,
    merging: MergingFunction,
    dropout: Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]],
) -> Float[Tensor, "states state_dim"]:
    """Let the table grow by every context; `words` are the embeddings of `encoder_tokens`."""
    if not window.levels:
        return table
    both, merger = encoder.ready(), merging.ready()
    static = iter(words)
    begun = []
    for direction, (call, weights) in enumerate(zip(window.ahead, both, strict=True)):
        read = add_dynamic_terms(next(static), W_dx, table, call.entity_places, call.entity_rows)
        rests = [level.rests[direction] for level in window.levels]
        begun.append(_begun(ragged_lstm(read, weights, call.widths), rests))
    for level, *begins in zip(window.levels, *begun, strict=True):
        around = []
        for rest, weights, (beside, before) in zip(level.rests, both, begins, strict=True):
            call = rest.call
            read = add_dynamic_terms(
                next(static), W_dx, table, call.entity_places, call.entity_rows
            )
            h = beside
            if len(read):
                h = torch.cat((beside, ragged_lstm(read, weights, call.widths, before).h))
            around.append(h.index_select(0, indices(rest.beside, h)))
        inputs = merger.inputs(dropout(encoder.contexts(*around)))
        for merge in level.merges:
            merged = inputs.index_select(0, indices(merge.contexts, inputs))
            state = table.index_select(0, indices(merge.previous, table))
            table = torch.cat((table, merger.merge(merged, state)))
    return table


def _begun(
    ahead: State, rests: Sequence[Rest]
) -> Iterator[tuple[Float[Tensor, "ahead encoder_dim"], State]]:
    """What each level needs of one direction's beginnings: h beside mentions, and where to go on.

    All levels together, so that the gradient is one table as large as all beginnings.
    """

    def select(
        values: Float[Tensor, "places encoder_dim"], wanted: Sequence[Int[np.ndarray, " _"]]
    ) -> tuple[Float[Tensor, "_ encoder_dim"], ...]:
        found = values.index_select(0, indices(np.concatenate(wanted), values))
        return torch.split(found, [len(places) for places in wanted])

    begins = [rest.begins for rest in rests]
    h = select(ahead.h, [rest.ahead for rest in rests] + begins)
    c = select(ahead.c, begins)
    states = map(State, h[len(rests) :], c)
    return zip(h[: len(rests)], states, strict=True)


def dynamic_logits(
    window: Window,
    h: Float[Tensor, "positions hidden_dim"],
    d: Float[Tensor, "states context_dim"],
    y: DynamicEmbedding,
    positions: Int[np.ndarray, " positions"],
) -> Float[Tensor, "positions entities"] | None:
    """Give h . (W_dy d_e) for every entity: per document one product with all its states."""
    if y.W_d is None:
        return None
    sentence = window.layout.sentence[positions]
    counts = np.bincount(window.layout.document[sentence], minlength=len(window.states))
    owned, lengths = np.concatenate(window.states), [len(states) for states in window.states]
    # Each document's terms are a block of their own: the column of a state within its block.
    column = np.empty_like(owned)
    column[owned] = np.arange(len(owned)) - np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    terms = y.term(d.index_select(0, indices(owned, d)))
    states = window.known[sentence]
    for change in window.changes:
        first, end = np.searchsorted(positions, (change.begins, change.token))
        states[first:end, change.row] = change.before
    known = indices(column[states], h)
    return torch.cat(
        [
            (hidden @ term.t()).gather(1, state)
            for hidden, term, state in zip(
                torch.split(h, counts.tolist()),
                torch.split(terms, lengths),
                torch.split(known, counts.tolist()),
                strict=True,
            )
        ]
    )
