"""Limits: how much one request, and all of them together, may ask of the server."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is refused, with a message that says the limit."""

    characters: int = 20_000
    """Characters of a text (413)."""
    words: int = 500
    """Words of a sentence (422)."""
    seconds: float = 60.0
    """How long one reading may take; then it ends with a message."""
    sending: float = 10.0
    """How long a request may take to arrive (408)."""
    readings: int = 32
    """Readings at the same time (503)."""
    threads: int = 2
    """Worker threads that run the model."""
    remembered: int = 400
    """Sentences whose state is kept so that an edit need not start from the beginning."""

    @property
    def body(self) -> int:
        """Bytes of a request (413): every character escaped, and what the page already knows."""
        return 12 * self.characters + 100_000


class Refused(Exception):  # noqa: N818  (it is an answer, not a failure)
    """A request the server does not carry out: the status and one sentence for the reader."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
