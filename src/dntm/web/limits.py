"""Limits: how much one request, and all of them together, may ask of the server."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is refused, with a message that says the limit."""

    characters: int = 20_000
    """Characters of a text (413)."""
    sentences: int = 1_000
    """Sentences of a text (422)."""
    words: int = 500
    """Words of a sentence (422)."""
    seconds: float = 60.0
    """How long one request may be worked on; then a reading ends with a message."""
    sending: float = 10.0
    """How long a request may take to arrive (408)."""
    readings: int = 32
    """Requests that are worked on at the same time (503)."""
    threads: int = 2
    """Worker threads that run the model."""
    remembered: int = 1_000
    """Sentences whose state is kept, of all texts together, so that an edit need not start from
    the beginning; with 50 entities of 256 numbers each takes 0.1 MiB."""

    @property
    def body(self) -> int:
        """Bytes of a request (413): room for every character escaped, and for the other fields."""
        return 12 * self.characters + 100_000


class Refused(Exception):  # noqa: N818  (it is an answer, not a failure)
    """A request the server does not carry out: the status and one sentence for the reader."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


LEFT = 499, "whoever asked has left"
"""Nobody sees this answer."""
