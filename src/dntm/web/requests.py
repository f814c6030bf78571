"""Requests: what the page asks for, checked before anything is computed.

A text that is too long is refused with status 413, a field that makes no sense with 422; the
message names the field.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Self

from starlette.requests import ClientDisconnect, Request

from dntm.reader.text import Kind

ENTITIES: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "both": ("names and unknown words", ("names", "unknown")),
    "names": ("names", ("names",)),
    "unknown": ("unknown words", ("unknown",)),
    "inline": ("words marked as [1], [2]", ("inline",)),
}
"""What counts as an entity: the page's label and the reader's kinds."""
_PARAGRAPH_END = re.compile(r"\n\s*\n")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much the server does for a request."""

    characters: int = 20_000
    """Length of a text."""
    seconds: float = 60.0
    """Computing time of a request."""
    threads: int = 2
    """Worker threads that run the model."""
    remembered: int = 1_000
    """Sentences whose states are kept, over all texts, so that an edited text is read from the edit
    on; with 50 entities of 256 numbers a sentence takes 0.1 MiB."""

    @property
    def body(self) -> int:
        """Bytes of a request: every character escaped, and the other fields."""
        return 12 * self.characters + 100_000


class Refused(Exception):  # noqa: N818  (it is an answer, not a failure)
    """A request that is not carried out: the status and a message for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """Read a text. Sentences that an earlier reading shares with it are not read again."""

    text: str
    """White space is normalized as the page does when it joins sentences."""
    kinds: tuple[Kind, ...]
    reading: str
    """The id of the earlier reading, or an empty string."""
    have: int
    """How many of its sentences the page has."""

    @classmethod
    def parse(cls, body: dict[str, Any], limits: Limits) -> Self:
        """Check the fields."""
        kind = body.get("entities", "both")
        if not isinstance(kind, str) or kind not in ENTITIES:
            raise Refused(422, f"entities must be one of {', '.join(ENTITIES)}")
        reading = body.get("reading", "")
        if not isinstance(reading, str):
            raise Refused(422, "reading must be the id of a reading")
        have = body.get("have", 0)
        if type(have) is not int or have < 0:
            raise Refused(422, "have must be a number of sentences")
        text = _checked(body.get("text"), limits)
        return cls(text=text, kinds=ENTITIES[kind][1], reading=reading, have=have)


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """What the models predicted at a token of a text."""

    reading: ReadRequest
    sentence: int
    position: int | None
    """None for every token of the sentence."""

    @classmethod
    def parse(cls, body: dict[str, Any], limits: Limits) -> Self:
        """Check the fields."""
        sentence, position = body.get("sentence"), body.get("position")
        if type(sentence) is not int or sentence < 0:
            raise Refused(422, "sentence must be the number of a sentence, from 0")
        if position != "all" and (type(position) is not int or position < 0):
            raise Refused(422, 'position must be the number of a word, from 0, or "all"')
        return cls(
            reading=ReadRequest.parse(body, limits),
            sentence=sentence,
            position=None if position == "all" else position,
        )


async def body_of(request: Request, limits: Limits) -> dict[str, Any]:
    """The request's JSON object; reading stops at the size limit."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "the request must be application/json")
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > limits.body:
                raise Refused(413, f"the request is larger than {limits.body:,} bytes")
    except ClientDisconnect:
        raise Refused(499, "the client has left") from None
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Refused(422, "the request is not JSON") from None
    if not isinstance(body, dict):
        raise Refused(422, "the request must be a JSON object")
    return body


def _checked(text: object, limits: Limits) -> str:
    if not isinstance(text, str):
        raise Refused(422, "text must be a string")
    if len(text) > limits.characters:
        raise Refused(
            413, f"the text has {len(text):,} characters; the limit is {limits.characters:,}"
        )
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    joined = "\n\n".join(" ".join(part.split()) for part in _PARAGRAPH_END.split(lines.strip()))
    if not joined:
        raise Refused(422, "the text is empty: paste or open one, or choose an example")
    return joined
