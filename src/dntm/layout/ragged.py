"""Ragged: sequences of different lengths without padding, for the context encoder (Eqs. 7 and 8).

Many short sequences take a time step together, the longest first, so that the ones still running
are always the first rows.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int


@dataclass(frozen=True, slots=True)
class Ragged:
    """Sequences of different lengths, time step by time step, the longest sequence first."""

    widths: list[int]
    """How many sequences reach each time step."""
    starts: Int[np.ndarray, " time"]
    """The place where each time step begins."""
    rank: Int[np.ndarray, " sequences"]
    """Where each sequence stands within a time step."""
    sequence: Int[np.ndarray, " places"]
    time: Int[np.ndarray, " places"]

    def place(
        self, sequence: Int[np.ndarray, " some"], time: Int[np.ndarray, " some"]
    ) -> Int[np.ndarray, " some"]:
        """Where a time step of a sequence lies."""
        places: Int[np.ndarray, " some"] = self.starts[time] + self.rank[sequence]
        return places


def lay_out_ragged(lengths: Int[np.ndarray, " sequences"]) -> Ragged:
    """Lay out sequences of these lengths."""
    order = np.argsort(-lengths, kind="stable")
    steps = np.arange(lengths.max(initial=0))
    widths = np.count_nonzero(lengths > steps[:, None], axis=1)
    starts = np.cumsum(widths) - widths
    time = np.repeat(steps, widths)
    sequence = order[np.arange(len(time)) - starts[time]]
    return Ragged(widths.tolist(), starts, np.argsort(order), sequence, time)
