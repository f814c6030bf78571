"""Requests: what the page asks for, checked field by field before anything is computed.

A body that is too large is 413, one that makes no sense 422; the message names the field.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Self

from starlette.requests import ClientDisconnect, Request

from dntm.corpus.text import WORD
from dntm.reader.preparing import Kind
from dntm.web.limits import LEFT, Limits, Refused
from dntm.web.surface import RawSentence, joined, raw_sentences

ENTITIES: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "both": ("names and unknown words", ("names", "unknown")),
    "names": ("names", ("names",)),
    "unknown": ("unknown words", ("unknown",)),
    "inline": ("marked in the text: [1], [2]", ("inline",)),
}
"""What may count as an entity: how the page calls it, and how the reader does."""


LONGEST_ID = 64


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """Read a text, going on from an earlier reading as far as the two are the same."""

    sentences: tuple[RawSentence, ...]
    kinds: tuple[Kind, ...]
    reading: str
    """The earlier reading, or nothing."""
    have: int
    """How many of its sentences the page has."""

    @property
    def text(self) -> str:
        """What the reader reads."""
        return joined(self.sentences)

    @classmethod
    def parse(cls, body: dict[str, Any], limits: Limits) -> Self:
        """Check the fields."""
        kind = body.get("entities", "both")
        if not isinstance(kind, str) or kind not in ENTITIES:
            raise Refused(422, f"entities must be one of {', '.join(ENTITIES)}")
        reading = body.get("reading", "")
        if not isinstance(reading, str) or len(reading) > LONGEST_ID:
            raise Refused(422, "reading must be the id of a reading")
        have = body.get("have", 0)
        if type(have) is not int or have < 0:
            raise Refused(422, "have must be a number of sentences")
        sentences = _sentences(body.get("text"), limits)
        return cls(sentences=sentences, kinds=ENTITIES[kind][1], reading=reading, have=have)


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """What was expected at a token of a text."""

    reading: ReadRequest
    sentence: int
    position: int

    @classmethod
    def parse(cls, body: dict[str, Any], limits: Limits) -> Self:
        """Check the fields."""
        reading = ReadRequest.parse(body, limits)
        sentence, position = (body.get(name) for name in ("sentence", "position"))
        if type(sentence) is not int or not 0 <= sentence < len(reading.sentences):
            raise Refused(422, f"sentence must be 0 to {len(reading.sentences) - 1}")
        if type(position) is not int or position < 0:
            raise Refused(422, "position must be the number of a word, from 0")
        return cls(reading=reading, sentence=sentence, position=position)


async def body_of(request: Request, limits: Limits) -> dict[str, Any]:
    """The request's JSON object; the body is never read beyond the limit."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "the request must be application/json")
    content = bytearray()
    try:
        async with asyncio.timeout(limits.sending):
            async for chunk in request.stream():
                content += chunk
                if len(content) > limits.body:
                    raise Refused(413, f"the request is larger than {limits.body:,} bytes")
    except TimeoutError:
        raise Refused(408, f"the request took longer than {limits.sending:g} s to come") from None
    except ClientDisconnect:
        raise Refused(*LEFT) from None
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Refused(422, "the request is not JSON") from None
    if not isinstance(body, dict):
        raise Refused(422, "the request must be a JSON object")
    return body


def _sentences(text: object, limits: Limits) -> tuple[RawSentence, ...]:
    if not isinstance(text, str):
        raise Refused(422, "text must be a string")
    if len(text) > limits.characters:
        raise Refused(
            413, f"the text has {len(text):,} characters; at most {limits.characters:,} are read"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(422, "the text holds half a character, which cannot be read") from None
    sentences = raw_sentences(text)
    if not sentences:
        raise Refused(422, "the text is empty: paste or open one, or choose an example")
    if len(sentences) > limits.sentences:
        raise Refused(
            422,
            f"the text has {len(sentences):,} sentences; at most {limits.sentences:,} are read",
        )
    for number, sentence in enumerate(sentences, start=1):
        if (words := len(WORD.findall(sentence.text))) > limits.words:
            raise Refused(
                422, f"sentence {number} has {words:,} words; at most {limits.words:,} are read"
            )
    return tuple(sentences)
