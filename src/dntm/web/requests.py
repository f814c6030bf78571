"""Requests: what the page asks for and how much, checked before anything is computed.

A body that is too large is 413, one that makes no sense 422; the message names the field. The
model reads tokens, the page shows and edits sentences as they were written; both come from the same
rules (`corpus.text`), so sentence i of one is sentence i of the other.
"""

import asyncio
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from starlette.requests import ClientDisconnect, Request

from dntm.corpus.text import WORD, sentences_of
from dntm.reader.text import Kind

ENTITIES: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "both": ("names and unknown words", ("names", "unknown")),
    "names": ("names", ("names",)),
    "unknown": ("unknown words", ("unknown",)),
    "inline": ("marked in the text: [1], [2]", ("inline",)),
}
"""What may count as an entity: how the page calls it, and how the reader does."""
LONGEST_ID = 64
MARKS = 30
"""Combining marks on one letter, as Unicode's stream-safe text has them: putting n marks in order
takes n * n steps, during which no other thread of Python runs."""
_EMPTY_LINES = re.compile(r"\n\s*\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")


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
ENDING = 503, "the server is being stopped"


@dataclass(frozen=True, slots=True)
class RawSentence:
    """A sentence as it was written, white space made single."""

    text: str
    paragraph: int
    """From zero."""


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
    position: int | None
    """None for every token of the sentence."""

    @classmethod
    def parse(cls, body: dict[str, Any], limits: Limits) -> Self:
        """Check the fields."""
        reading = ReadRequest.parse(body, limits)
        sentence, position = (body.get(name) for name in ("sentence", "position"))
        if type(sentence) is not int or not 0 <= sentence < len(reading.sentences):
            raise Refused(422, f"sentence must be 0 to {len(reading.sentences) - 1}")
        if position == "all":
            return cls(reading=reading, sentence=sentence, position=None)
        if type(position) is not int or position < 0:
            raise Refused(422, "position must be the number of a word, from 0, or all")
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
    if _most_marks(text) > MARKS:
        raise Refused(422, f"the text has a letter with more than {MARKS} accents or other marks")
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


def raw_sentences(text: str) -> list[RawSentence]:
    """Cut a text into paragraphs at empty lines and these into sentences."""
    plain = _CONTROL.sub(" ", unicodedata.normalize("NFC", text)).replace("\r\n", "\n")
    plain = plain.replace("\r", "\n").strip()
    found: list[RawSentence] = []
    for number, paragraph in enumerate(_EMPTY_LINES.split(plain)):
        sentences = sentences_of(" ".join(paragraph.split()))
        found += [RawSentence(sentence, number) for sentence in sentences if sentence.strip()]
    return found


def _most_marks(text: str) -> int:
    """The longest run of combining marks."""
    most = run = 0
    for character in "" if text.isascii() else text:
        run = run + 1 if unicodedata.combining(character) else 0
        most = max(most, run)
    return most


def joined(sentences: Sequence[RawSentence]) -> str:
    """A text that is cut into these sentences again."""
    paragraphs: dict[int, list[str]] = {}
    for sentence in sentences:
        paragraphs.setdefault(sentence.paragraph, []).append(sentence.text)
    return "\n\n".join(" ".join(parts) for parts in paragraphs.values())


def spaces(sentence: str, words: Sequence[str]) -> list[bool]:
    """Whether white space stands before each word (or words) of a sentence."""
    found, place = [], 0
    for word in words:
        begin = place
        while place < len(sentence) and sentence[place].isspace():
            place += 1
        found.append(place > begin)
        left = sum(not character.isspace() for character in word)
        while left and place < len(sentence):
            left -= not sentence[place].isspace()
            place += 1
    return found
