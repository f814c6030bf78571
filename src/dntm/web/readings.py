"""Readings: many people's texts, read side by side in a few threads.

A reading is a stream of sentences, and each sentence is one task of the pool: between two of them
the next reader has its turn, and a reader who has left is simply not computed any further. Every
reading has a name nobody can guess and its own sentences. What is remembered of it is only ever a
beginning of the text that is asked about: the reader compares word by word.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.reader.text import PreparedText
from dntm.web.events import (
    Trails,
    end_event,
    map_events,
    predictions_answer,
    sentence_event,
    start_event,
)
from dntm.web.requests import ENDING, LEFT, Limits, PredictRequest, ReadRequest, Refused

T = TypeVar("T")
CANDIDATES = 8
ASKED = 500
"""So many are asked for, since those of new entities are added up."""
HasLeft = Callable[[], Awaitable[bool]]
"""Whether the one who asked is gone."""


class Work:
    """One request's share of the threads: its place, and the time it has left."""

    def __init__(
        self, pool: ThreadPoolExecutor, limit: float, leave: Callable[["Work"], None]
    ) -> None:
        self._pool = pool
        self._limit = limit
        self._leave = leave
        self._began = time.monotonic()
        self._stopped = asyncio.Event()

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self._began

    def close(self) -> None:
        """Give the place back."""
        self._leave(self)

    def stop(self) -> None:
        """The server ends."""
        self._stopped.set()

    async def run(self, task: Callable[[], T]) -> T:
        """Run one task in the pool, if there is time left."""
        if self._stopped.is_set():
            raise Refused(*ENDING)
        running = asyncio.get_running_loop().run_in_executor(self._pool, task)
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait(
                (running, stopped),
                timeout=max(self._limit - self.seconds, 0),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if running.done():
                return running.result()
        finally:
            stopped.cancel()
            running.cancel()
        if self._stopped.is_set():
            raise Refused(*ENDING)
        raise Refused(503, f"reading took longer than {self._limit:g} s and was stopped")


class Workers:
    """The threads that run the model, and a place for each request that is being worked on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="reading")
        self._open: set[Work] = set()

    @property
    def active(self) -> int:
        """How many requests are being worked on."""
        return len(self._open)

    def begin(self) -> Work:
        """Take a place, if one is free. It must be closed."""
        if self.active >= self._limits.readings:
            raise Refused(
                503, f"{self._limits.readings} texts are being read already: try again in a moment"
            )
        work = Work(self._pool, self._limits.seconds, self._open.discard)
        self._open.add(work)
        return work

    def close(self) -> None:
        """Nothing more is worked on: who waits for an answer is told so."""
        for work in self._open:
            work.stop()
        self._pool.shutdown(wait=False)


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

    async def predictions(
        self, body: dict[str, Any], has_left: HasLeft
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """What both models expected at a token; a list where all of the sentence are asked for."""
        with closing(self.workers.begin()) as work:
            request = await work.run(lambda: PredictRequest.parse(body, self.limits))
            sentences = await self._beginning(work, request.reading, request.sentence + 1, has_left)
            length = len(sentences[-1].tokens)
            if request.position is not None and request.position >= length:
                raise Refused(422, f"position must be 0 to {length - 1}")
            wanted = range(length) if request.position is None else [request.position]
            found = []
            for position in wanted:
                if await has_left():
                    raise Refused(*LEFT)
                found.append(await work.run(partial(self._predicted, sentences, position)))
            return found if request.position is None else found[0]

    def _predicted(self, sentences: Sequence[SentenceReading], position: int) -> dict[str, Any]:
        words = [token.entity or token.word for token in sentences[-1].tokens][:position]
        before = sentences[-2].position if len(sentences) > 1 else ""
        assert before is not None
        seen = {token.entity for sentence in sentences[:-1] for token in sentence.tokens}
        seen.update(word for word in words if isinstance(word, int))
        asked = min(ASKED, len(self.reader.vocabulary))
        return predictions_answer(self.reader.predictions(before, words, asked), seen, CANDIDATES)

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


class Memory:
    """What was read, kept for a while, so that an edited text is read only from the edit on.

    A reading is kept as the beginning of one text, without a gap. There are never more sentences
    than the limit: the readings used longest ago are forgotten first, one that is under way never;
    what still finds no room is not kept, and has to be read again if it is asked for.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._readings: OrderedDict[str, list[SentenceReading]] = OrderedDict()
        self._under_way: set[str] = set()

    def __len__(self) -> int:
        return sum(map(len, self._readings.values()))

    def begin(self, name: str) -> None:
        """From now on a reading is under way: it is not forgotten."""
        self._under_way.add(name)

    def end(self, name: str) -> None:
        """It is under way no more."""
        self._under_way.discard(name)

    def recall(self, name: str) -> tuple[SentenceReading, ...]:
        """The sentences of a reading, as far as they are remembered."""
        if name not in self._readings:
            return ()
        self._readings.move_to_end(name)
        return tuple(self._readings[name])

    def add(self, name: str, sentence: SentenceReading) -> None:
        """Keep one more sentence of a reading, if it is the next one and there is room."""
        kept = self._readings.setdefault(name, [])
        if sentence.index == len(kept):
            kept.append(sentence)
        self._make_room(name)

    def keep(self, name: str, sentences: Sequence[SentenceReading]) -> None:
        """Keep the beginning of a text as this reading, as far as there is room."""
        self._readings[name] = list(sentences)
        self._make_room(name)

    def _make_room(self, name: str) -> None:
        self._readings.move_to_end(name)
        over = len(self) - self._limit
        others = [other for other in self._readings if other not in (name, *self._under_way)]
        for other in others:
            if over <= 0:
                break
            over -= len(self._readings.pop(other))
        kept = self._readings[name]
        del kept[len(kept) - max(over, 0) :]
        if not kept:
            del self._readings[name]
