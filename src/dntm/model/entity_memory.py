"""Entity memory: every state d_{e,i} of a stretch, as rows of one table (Sections 2.2 and 3).

    d'_{e,i} = ContextEncoder(e, i)
    d_{e,i}  = merge(d'_{e,i}, d_{e,i-1}),   d_{e,i} = d_{e,i-1} if e is not in sentence i

The table begins with the states from before the stretch. Level by level the contexts are encoded,
with the embeddings from before their sentence, and merged; each merge adds its results as rows.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.model.context_encoder import ContextEncoder
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.merging import MergingFunction
from dntm.schedule import Level


def indices(array: Int[np.ndarray, "..."], like: Float[Tensor, "..."]) -> Int[Tensor, "..."]:
    """The same numbers as a tensor beside `like`."""
    return torch.from_numpy(array).to(like.device)


def add_dynamic_terms(
    words: Float[Tensor, "places embedding_dim"],
    x: DynamicEmbedding,
    d: Float[Tensor, "states context_dim"],
    places: Int[np.ndarray, " entity_places"],
    rows: Int[np.ndarray, " entity_places"],
) -> Float[Tensor, "places embedding_dim"]:
    """Static embeddings made dynamic at the places that hold an entity (Eq. 9)."""
    if x.W_d is None or not len(places):
        return words
    term = x.term(d.index_select(0, indices(rows, d)))
    return words.index_add(0, indices(places, words), term)


def state_table(
    levels: Sequence[Level],
    words: Sequence[Float[Tensor, "_ embedding_dim"]],
    table: Float[Tensor, "old_states state_dim"],
    *,
    x: DynamicEmbedding,
    encoder: ContextEncoder,
    merging: MergingFunction,
    drop: Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]],
) -> Float[Tensor, "states state_dim"]:
    """Let the table grow by every context of the levels, whose static embeddings are `words`."""
    for level, static in zip(levels, words, strict=True):
        d = table[:, : merging.context_dim]
        read = add_dynamic_terms(static, x, d, level.entity_places, level.entity_rows)
        contexts = drop(
            encoder(
                read.view(*level.tokens.shape, -1),
                indices(level.lengths, read),
                indices(level.sentence, read),
                indices(level.position, read),
            )
        )
        for merge in level.merges:
            context = contexts.index_select(0, indices(merge.contexts, contexts))
            state = table.index_select(0, indices(merge.previous, table))
            table = torch.cat((table, merging(context, state)))
    return table
