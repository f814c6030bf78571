"""ReadingPosition: everything a reader carries from one sentence of a text to the next.

A position is a value: nothing ever changes it, so a text can be read on from it any number of
times, and an edited text from the last position before the edit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dntm.model.reading_state import ReadingState


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReadingPosition:
    """The place after some sentences of one text."""

    sentences: int
    """How many sentences have been read."""
    dynamic: ReadingState
    static: ReadingState
    """The state of each model, for a batch of one document."""
    occurrences: Mapping[int, int]
    """How often each entity has occurred."""
    names: Mapping[int, str]
    """What each entity of the text is called, also those still to come."""
    surfaces: Mapping[tuple[str, ...], int]
    """Capitalised words that always mention the same entity."""
    digest: bytes
    """Tells one history from another: of all that was read, and in which unit."""
