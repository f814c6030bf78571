"""Blockwise scores: what a model says about every token of a window, with entropies and states."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.model.fast.layout import indices
from dntm.model.fast.read import read
from dntm.model.fast.window import Window
from dntm.model.language_model import scored
from dntm.model.parameters import Parameters
from dntm.model.state import State


class BlockScores(NamedTuple):
    """What a model says about some sentences of each document."""

    log_p: list[Float[np.ndarray, " predicted"]]
    """Log-probabilities (nats) of each document's predicted tokens."""
    entropies: list[Float[np.ndarray, " predicted"]]
    """Entropy (nats) of the distribution at each of them."""
    begins: Float[Tensor, "sentences entities context_dim"]
    """d of every slot before each sentence, with the occupants that its mentions refer to."""
    ends: Float[Tensor, "sentences entities context_dim"]
    """d of every slot after each sentence."""
    state: State
    """The state after the window."""


@torch.no_grad()
def score_block(model: Parameters, window: Window, state: State) -> BlockScores:
    """Read and score a window."""
    found = read(model, window, state)
    columns = zip(*scored(model, found), strict=True)
    cuts = np.cumsum(window.layout.predicted)[:-1]
    log_p, entropies = (np.split(torch.cat(c).cpu().numpy(), cuts) for c in columns)
    begins, ends = (found.d[indices(rows, found.d)] for rows in (window.known, _ends(window)))
    return BlockScores(log_p, entropies, begins, ends, found.after)


def _ends(window: Window) -> Int[np.ndarray, "sentences entities"]:
    """Table row of each d_e after each sentence, before any slot changes in the next one."""
    layout = window.layout
    ends = np.roll(window.known, -1, axis=0)
    for change in window.changes:
        ends[layout.sentence[change.begins] - 1, change.slot] = change.before
    last = np.flatnonzero(np.diff(layout.document, append=-1))
    ends[last] = window.memory[layout.document[last]]
    return ends
