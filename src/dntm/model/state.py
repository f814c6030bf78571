"""State: what the model carries from one window of a document to the next.

    core     the language model's state: h and c of the LSTM, or keys and values
    memory   d_{e,i} of every entity
    terms    the state of each term of the output layer, empty for the paper's

A state is a value: reading takes one and returns the next. `select` and `detach` apply to every
part alike.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dntm.model.entity_memory import MemoryState


class State(NamedTuple):
    """The state of each document of a batch."""

    core: Any
    memory: MemoryState
    terms: tuple[Any, ...] = ()

    def select(self, documents: Sequence[int]) -> "State":
        """The state of these documents, in this order; a document may be repeated."""
        terms = tuple(term.select(documents) for term in self.terms)
        return State(self.core.select(documents), self.memory.select(documents), terms)

    def detach(self) -> "State":
        """The same values without gradients."""
        terms = tuple(term.detach() for term in self.terms)
        return State(self.core.detach(), self.memory.detach(), terms)
