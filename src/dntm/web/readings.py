"""Readings: many people's texts, read side by side in a few threads.

A reading is a stream of sentences, and each sentence is one task of the pool: between two of them
the next reader has its turn, and a reader who has left is simply not computed any further. Every
reading has a name nobody can guess and its own sentences; what was read is remembered for a while
(the least recently used go first), so that an edited text is read only from the edit on.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dntm.reader.prepared import PreparedText
from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.web.events import end_event, map_events, sentence_event, start_event
from dntm.web.limits import Limits, Refused
from dntm.web.requests import PredictRequest, ReadRequest
from dntm.web.word_vectors import WordVectors

CANDIDATES = 8
T = TypeVar("T")


class Readings:
    """Reads texts and answers questions about them, within the limits."""

    def __init__(self, reader: Reader, limits: Limits) -> None:
        self.reader = reader
        self.limits = limits
        self.vectors = WordVectors.both(reader)
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="reading")
        self._remembered: OrderedDict[str, list[SentenceReading]] = OrderedDict()
        self._active = 0

    @property
    def active(self) -> int:
        """How many requests are being worked on."""
        return self._active

    @property
    def remembered(self) -> int:
        """How many sentences are remembered."""
        return sum(map(len, self._remembered.values()))

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def open(self, request: ReadRequest) -> "OpenReading":
        """Begin to read; the first sentence is there when this returns. Must be closed."""
        work = Work(self)
        try:
            return await OpenReading.begin(work, request)
        except BaseException:
            work.close()
            raise

    async def predictions(self, request: PredictRequest) -> dict[str, Any]:
        """What both models expected at a token."""
        work = Work(self)
        try:
            sentences = await self._up_to(work, request)
            words = [token.entity or token.word for token in sentences[-1].tokens]
            if request.position >= len(words):
                raise Refused(422, f"position must be 0 to {len(words) - 1}")
            before = sentences[-2].position if len(sentences) > 1 else ""
            assert before is not None
            found = await work.run(
                lambda: self.reader.predictions(before, words[: request.position], CANDIDATES)
            )
            return found.to_dict()
        finally:
            work.close()

    def recall(self, name: str) -> list[SentenceReading]:
        """The sentences of an earlier reading, as far as they are remembered."""
        if name not in self._remembered:
            return []
        self._remembered.move_to_end(name)
        return self._remembered[name]

    def remember(self, name: str, sentence: SentenceReading) -> None:
        """Keep one more sentence of a reading, and forget others where that is too many."""
        self._remembered.setdefault(name, []).append(sentence)
        self._remembered.move_to_end(name)
        while self.remembered > self.limits.remembered and len(self._remembered) > 1:
            self._remembered.popitem(last=False)

    async def _up_to(self, work: "Work", request: PredictRequest) -> Sequence[SentenceReading]:
        known = self.recall(request.reading.reading)
        wanted = request.sentence + 1
        if len(known) >= wanted:
            return known[:wanted]
        stream = self.reader.stream(request.reading.text, entities=request.reading.kinds)
        found: list[SentenceReading] = []
        while len(found) < wanted:
            sentence = await work.run(lambda: next(stream, None))
            assert sentence is not None
            found.append(sentence)
        return found


class Work:
    """One request's share of the pool: a place among the active ones, and a time limit."""

    def __init__(self, readings: Readings) -> None:
        limits = readings.limits
        if readings.active >= limits.readings:
            raise Refused(
                503, f"{limits.readings} texts are being read already: try again in a moment"
            )
        self.readings = readings
        self.began = time.monotonic()
        self._open = True
        readings._active += 1

    def close(self) -> None:
        """Give the place back."""
        if self._open:
            self._open = False
            self.readings._active -= 1

    async def run(self, task: Callable[[], T]) -> T:
        """Run one task in the pool, if there is time left."""
        limit = self.readings.limits.seconds
        left = limit - (time.monotonic() - self.began)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(left):
                return await loop.run_in_executor(self.readings._pool, task)
        except TimeoutError:
            raise Refused(503, f"reading took longer than {limit:g} s and was stopped") from None


class OpenReading:
    """A reading under way."""

    def __init__(self, work: Work, request: ReadRequest, prepared: PreparedText) -> None:
        self._work = work
        self._request = request
        self._prepared = prepared
        self._known = tuple(work.readings.recall(request.reading)[: request.have])
        self._stream = work.readings.reader.stream(prepared, known=self._known)
        self._id = secrets.token_urlsafe(16)
        self._read: list[SentenceReading] = []
        self._computed = 0

    @classmethod
    async def begin(cls, work: Work, request: ReadRequest) -> "OpenReading":
        """Read the first sentence, so that what is wrong with a text is known at once."""
        reader = work.readings.reader
        try:
            prepared = await work.run(lambda: reader.prepare(request.text, request.kinds))
            opened = cls(work, request, prepared)
            await opened._advance()
        except ValueError as error:
            raise Refused(422, str(error)) from None
        return opened

    def close(self) -> None:
        """Stop: nothing more is computed."""
        self._work.close()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """What the page is told, one event after the other."""
        yield start_event(self._id, self._request.sentences, self._prepared)
        yield self._sentence(self._read[0])
        try:
            while (sentence := await self._advance()) is not None:
                yield self._sentence(sentence)
            vectors = self._work.readings.vectors
            for event in await self._work.run(lambda: map_events(vectors, self._read)):
                yield event
        except Refused as refused:
            yield {"kind": "error", "message": refused.message}
            return
        yield end_event(self._computed, time.monotonic() - self._work.began)

    async def _advance(self) -> SentenceReading | None:
        sentence = await self._work.run(lambda: next(self._stream, None))
        if sentence is not None:
            self._read.append(sentence)
            self._work.readings.remember(self._id, sentence)
            self._computed += not self._is_known(sentence)
        return sentence

    def _is_known(self, sentence: SentenceReading) -> bool:
        """Whether the page has it: the reader gives the tokens of a known sentence again."""
        return sentence.index < len(self._known) and (
            self._known[sentence.index].tokens is sentence.tokens
        )

    def _sentence(self, sentence: SentenceReading) -> dict[str, Any]:
        if self._is_known(sentence):
            return {"kind": "kept", "index": sentence.index}
        return sentence_event(sentence, self._request.sentences)
