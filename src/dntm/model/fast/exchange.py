"""Exchanged memories: a control that shows how much of a result is about *which* entity it is.

The memory itself is right, but in the input and output layers every entity that was mentioned
before has the state of the next such entity of its document. A model that gains as much as with the
right states has only learned that an entity was mentioned before, or what the document is about.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from torch import Tensor

from dntm.corpus.vocabulary import entity_rows
from dntm.model.fast.window import Window


def exchange_memories(window: Window, d: Float[Tensor, "batch entities context_dim"]) -> Window:
    """The window with exchanged states; `d` are those before it, zero for unseen entities."""
    states = int(max(window.known.max(initial=-1), window.memory.max(initial=-1))) + 1
    seen = np.ones(states, dtype=np.bool_)
    seen[: window.memory.size] = d.flatten(0, 1).detach().any(1).cpu().numpy()
    known = window.known.copy()
    for row in known:
        mentioned = np.flatnonzero(seen[row])
        row[mentioned] = row[np.roll(mentioned, -1)]
    sentence = np.zeros(len(window.layout.tokens), dtype=np.int64)
    sentence[window.layout.read] = window.layout.sentence
    places = window.entity_places
    entity = window.layout.tokens[places] - entity_rows(known.shape[1]).start
    return replace(window, known=known, entity_rows=known[sentence[places], entity])
