"""ReadingPosition: everything a reader carries from one sentence of a text to the next.

A position is a value: nothing ever changes it, so a text can be read on from it any number of
times, and an edited text from the last position before the edit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """Capitalised or unknown words that always mention the same entity."""
    reader: bytes = field(repr=False)
    """Tells one reader from another: the states mean something to its models only."""
    digest: bytes = field(repr=False)
    """Tells one history from another: of all that was read, by which reader and in which unit."""
