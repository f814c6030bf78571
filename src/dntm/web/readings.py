"""Readings: texts of several users, read in a few threads.

Each sentence is one task of the thread pool, so that readings take turns, and a reading whose
client has left is cancelled between two sentences. A reading has an id that cannot be guessed. Its
sentences are remembered for a while: the reader compares a text with them word by word and computes
only what has changed (`Reader.stream`).
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from dntm.corpus.entities import Lexicon
from dntm.reader.reader import Reader
from dntm.reader.reading import SentenceReading
from dntm.reader.text import PreparedText
from dntm.web.events import map_events, predictions_answer, sentence_event, start_event
from dntm.web.server import Limits, PredictRequest, ReadRequest, Refused

T = TypeVar("T")
CANDIDATES = 8
ASKED = 500
"""More candidates than are shown, because those of unseen entities are added up."""


class Readings:
    """Reads texts and answers questions about them, within the limits."""

    def __init__(self, reader: Reader, limits: Limits) -> None:
        self.reader = reader
        self._lexicon = Lexicon(reader.vocabulary)
        self.limits = limits
        self.memory = Memory(limits.remembered)
        self._pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="reading")
        self._stopped = False

    def close(self) -> None:
        """Compute nothing more: open readings end with a message."""
        self._stopped = True
        self._pool.shutdown(wait=False)

    async def prepare(self, request: ReadRequest) -> PreparedText:
        """Find the entities of a text; what is wrong with it is refused."""
        try:
            return await self._run(lambda: self.reader.prepare(request.text, request.kinds))
        except ValueError as error:
            raise Refused(422, str(error)) from None

    async def read(
        self, request: ReadRequest, prepared: PreparedText
    ) -> AsyncIterator[dict[str, Any]]:
        """The events of a reading, as they are computed."""
        name, began, computed = secrets.token_urlsafe(16), time.monotonic(), 0
        known = self.memory.recall(request.reading)[: request.have]
        stream = self.reader.stream(prepared, known=known)
        meanings, sentences = self.reader.meanings, list[SentenceReading]()
        yield start_event(name, prepared, self._lexicon)
        try:
            while more := await self._run(lambda: _next(stream, known), began):
                for sentence in more:
                    sentences.append(sentence)
                    self.memory.add(name, sentence)
                    if _is_known(sentence, known):
                        yield {"kind": "kept", "index": sentence.index}
                    else:
                        computed += 1
                        yield sentence_event(sentence)
            for event in await self._run(lambda: map_events(sentences, meanings), began):
                yield event
        except Refused as refused:
            yield {"kind": "error", "message": refused.message}
            return
        seconds = round(time.monotonic() - began, 3)
        yield {"kind": "end", "computed": computed, "seconds": seconds}

    async def predictions(self, request: PredictRequest) -> dict[str, Any] | list[dict[str, Any]]:
        """What both models predicted at a token, or at all tokens of a sentence."""
        began, count = time.monotonic(), request.sentence + 1
        prepared = await self.prepare(request.reading)
        if count > len(prepared.sentences):
            raise Refused(422, f"sentence must be 0 to {len(prepared.sentences) - 1}")
        name = request.reading.reading
        known = self.memory.recall(name)[:count]
        stream = islice(self.reader.stream(prepared, known=known), count)
        sentences: list[SentenceReading] = []
        while more := await self._run(lambda: _next(stream, known), began):
            sentences += more
        if name and len(sentences) > len(known):
            self.memory.keep(name, sentences)
        length = len(sentences[-1].tokens)
        if request.position is None:
            tasks = [partial(self._predicted, sentences, place) for place in range(length)]
            return [await self._run(task, began) for task in tasks]
        if request.position >= length:
            raise Refused(422, f"position must be 0 to {length - 1}")
        return await self._run(partial(self._predicted, sentences, request.position), began)

    def _predicted(self, sentences: Sequence[SentenceReading], position: int) -> dict[str, Any]:
        words = [token.entity or token.word for token in sentences[-1].tokens][:position]
        before = sentences[-2].position if len(sentences) > 1 else ""
        assert before is not None
        seen = {token.entity for sentence in sentences[:-1] for token in sentence.tokens}
        seen.update(word for word in words if isinstance(word, int))
        asked = min(ASKED, len(self.reader.vocabulary))
        return predictions_answer(self.reader.predictions(before, words, asked), seen, CANDIDATES)

    async def _run(self, task: Callable[[], T], began: float | None = None) -> T:
        """Run a task in the pool if the request, which began at some time, has time left."""
        if self._stopped:
            raise Refused(503, "the server is stopping")
        spent = 0.0 if began is None else time.monotonic() - began
        try:
            async with asyncio.timeout(self.limits.seconds - spent):
                return await asyncio.get_running_loop().run_in_executor(self._pool, task)
        except TimeoutError:
            limit = f"{self.limits.seconds:g} s"
            raise Refused(503, f"reading took longer than {limit} and was stopped") from None


def _next(
    stream: Iterator[SentenceReading], known: Sequence[SentenceReading]
) -> list[SentenceReading]:
    """The next computed sentence, and the known ones before it."""
    found = []
    for sentence in stream:
        found.append(sentence)
        if not _is_known(sentence, known):
            break
    return found


def _is_known(sentence: SentenceReading, known: Sequence[SentenceReading]) -> bool:
    """Whether it was not computed: the reader returns the tokens of a known sentence."""
    return sentence.index < len(known) and known[sentence.index].tokens is sentence.tokens


class Memory:
    """The sentences of recent readings, up to a limit; the least recently used go first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._readings: OrderedDict[str, list[SentenceReading]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._readings.values()))

    def recall(self, name: str) -> tuple[SentenceReading, ...]:
        """The remembered sentences of a reading."""
        if name in self._readings:
            self._readings.move_to_end(name)
        return tuple(self._readings.get(name, ()))

    def add(self, name: str, sentence: SentenceReading) -> None:
        """Keep one more sentence of a reading, if all before it are kept."""
        kept = self._readings.get(name, [])
        if sentence.index == len(kept) < self._limit:
            kept.append(sentence)
            self._store(name, kept)

    def keep(self, name: str, sentences: Sequence[SentenceReading]) -> None:
        """Keep the first sentences of a reading."""
        self._store(name, list(sentences[: self._limit]))

    def _store(self, name: str, kept: list[SentenceReading]) -> None:
        self._readings[name] = kept
        self._readings.move_to_end(name)
        while len(self) > self._limit:
            self._readings.popitem(last=False)
