"""Readings: many people's texts, read side by side in a few threads.

A reading is a stream of sentences, and each sentence is one task of the pool: between two of them
the next reader has its turn, and a reader who has left is simply not computed any further. Every
reading has a name nobody can guess and its own sentences. What is remembered of it (`memory`) is
only ever a beginning of the text that is asked about: the reader compares word by word.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from dntm.reader.prepared import PreparedText
from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.web.events import end_event, map_events, sentence_event, start_event
from dntm.web.limits import LEFT, Limits, Refused
from dntm.web.memory import Memory
from dntm.web.requests import PredictRequest, ReadRequest
from dntm.web.trails import Trails
from dntm.web.work import Work, Workers

CANDIDATES = 8
HasLeft = Callable[[], Awaitable[bool]]
"""Whether the one who asked is gone."""


class Readings:
    """Reads texts and answers questions about them, within the limits."""

    def __init__(self, reader: Reader, limits: Limits) -> None:
        self.reader = reader
        self.limits = limits
        self.meanings = reader.meanings
        self.memory = Memory(limits.remembered)
        self.workers = Workers(limits)

    async def open(self, body: dict[str, Any]) -> "OpenReading":
        """Begin to read; the first sentence is there when this returns. Must be closed."""
        work = self.workers.begin()
        try:
            request = await work.run(lambda: ReadRequest.parse(body, self.limits))
            return await OpenReading.begin(self, work, request)
        except BaseException:
            work.close()
            raise

    async def predictions(self, body: dict[str, Any], has_left: HasLeft) -> dict[str, Any]:
        """What both models expected at a token."""
        with closing(self.workers.begin()) as work:
            request = await work.run(lambda: PredictRequest.parse(body, self.limits))
            sentences = await self._beginning(work, request.reading, request.sentence + 1, has_left)
            words = [token.entity or token.word for token in sentences[-1].tokens]
            if request.position >= len(words):
                raise Refused(422, f"position must be 0 to {len(words) - 1}")
            before = sentences[-2].position if len(sentences) > 1 else ""
            assert before is not None
            found = await work.run(
                lambda: self.reader.predictions(before, words[: request.position], CANDIDATES)
            )
            return found.to_dict()

    async def maps(self, body: dict[str, Any], has_left: HasLeft) -> list[dict[str, Any]]:
        """The maps of the first `have` sentences of a text, whose reading did not reach its end."""
        with closing(self.workers.begin()) as work:
            request = await work.run(lambda: ReadRequest.parse(body, self.limits))
            if not 1 <= request.have <= len(request.sentences):
                raise Refused(422, f"have must be 1 to {len(request.sentences)}")
            sentences = await self._beginning(work, request, request.have, has_left)
            return map_events(await work.run(lambda: Trails.of(sentences, self.meanings).maps()))

    async def prepared(self, work: Work, request: ReadRequest) -> PreparedText:
        """The text ready to be read; what is wrong with it is the reader's to know."""
        try:
            return await work.run(lambda: self.reader.prepare(request.text, request.kinds))
        except ValueError as error:
            raise Refused(422, str(error)) from None

    async def _beginning(
        self, work: Work, request: ReadRequest, count: int, has_left: HasLeft
    ) -> list[SentenceReading]:
        """The first `count` sentences; what is remembered of the reading is not computed again."""
        prepared = await self.prepared(work, request)
        known = self.memory.recall(request.reading)[:count]
        stream = islice(self.reader.stream(prepared, known=known), count)
        found: list[SentenceReading] = []
        try:
            while len(found) < count:
                if await has_left():
                    raise Refused(*LEFT)
                more = await work.run(lambda: _onward(stream, known))
                assert more, "the reader has fewer sentences than the page"
                found += more
        finally:
            if request.reading and len(found) > len(known):
                self.memory.keep(request.reading, found)
        return found


class OpenReading:
    """A reading under way."""

    def __init__(
        self, readings: Readings, work: Work, request: ReadRequest, prepared: PreparedText
    ) -> None:
        self._readings = readings
        self._work = work
        self._request = request
        self._prepared = prepared
        self._known = readings.memory.recall(request.reading)[: request.have]
        self._stream = readings.reader.stream(prepared, known=self._known)
        self._trails = Trails(readings.meanings)
        self._name = secrets.token_urlsafe(16)
        self._computed = 0
        self._first: Sequence[SentenceReading] = ()
        readings.memory.begin(self._name)

    @classmethod
    async def begin(cls, readings: Readings, work: Work, request: ReadRequest) -> "OpenReading":
        """Read the first sentence, so that what is wrong with a text is known at once."""
        opened = cls(readings, work, request, await readings.prepared(work, request))
        try:
            opened._first = await opened._advance()
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Stop: nothing more is computed."""
        self._readings.memory.end(self._name)
        self._work.close()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """What the page is told, one event after the other."""
        changing = self._readings.meanings.changing
        yield start_event(self._name, self._request.sentences, self._prepared, changing)
        more, self._first = self._first, ()
        try:
            while more:
                for sentence in more:
                    yield self._event(sentence)
                more = await self._advance()
            for event in map_events(await self._work.run(self._trails.maps)):
                yield event
        except Refused as refused:
            yield {"kind": "error", "message": refused.message}
            return
        yield end_event(self._computed, self._work.seconds)

    async def _advance(self) -> list[SentenceReading]:
        more = await self._work.run(lambda: _onward(self._stream, self._known))
        for sentence in more:
            self._trails.add(sentence)
            self._readings.memory.add(self._name, sentence)
            self._computed += not _is_known(sentence, self._known)
        return more

    def _event(self, sentence: SentenceReading) -> dict[str, Any]:
        if _is_known(sentence, self._known):
            return {"kind": "kept", "index": sentence.index}
        return sentence_event(sentence, self._request.sentences)


def _onward(
    stream: Iterator[SentenceReading], known: Sequence[SentenceReading]
) -> list[SentenceReading]:
    """The next sentence that has to be computed, and those before it that have not."""
    found = []
    for sentence in stream:
        found.append(sentence)
        if not _is_known(sentence, known):
            break
    return found


def _is_known(sentence: SentenceReading, known: Sequence[SentenceReading]) -> bool:
    """Whether it was not computed: the reader gives the tokens of a known sentence again."""
    return sentence.index < len(known) and known[sentence.index].tokens is sentence.tokens
