"""Readings: texts of several users, read in a few threads.

Each sentence is one task of the thread pool, so that readings take turns, and a reading whose
client has left is cancelled between two sentences. A reading has an id that cannot be guessed. Its
sentences are cached for a while: the reader compares a text with them word by word and computes
only what has changed (`Reader.stream`).

The page receives a reading as events, one JSON object per line:

start       the reading's id, the names of its entities, the unknown words among them, its sentences
kept        an unchanged sentence that the page already has
sentence    its tokens, and the entities it mentions as they are after it
map         the path of an entity among its predicted words
end         how many sentences were computed, and how long it took
error       why the reading stopped early

The last event is `end` or `error`; if both are missing, the response was cut off.
"""

import asyncio
import json
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float

from dntm.corpus.entities import Lexicon
from dntm.reader.meaning import Meanings
from dntm.reader.questions import Candidate, Predictions
from dntm.reader.reader import Reader
from dntm.reader.reading import EntityReading, SentenceReading
from dntm.reader.text import PreparedText
from dntm.web.server import Limits, PredictRequest, ReadRequest, Refused

T = TypeVar("T")
CANDIDATES = 8
ASKED = 500
"""More candidates than are shown, because those of unseen entities are added up."""

NEAREST = 4
"""Words on a map for each mention."""
WORDS = 24
"""Words on a map; those of the latest mentions come first."""
UNSEEN = -1
"""The entity number of a prediction: <unk>, and all entities not yet mentioned."""


class Readings:
    """Reads texts and answers questions about them, within the limits."""

    def __init__(self, reader: Reader, limits: Limits) -> None:
        self.reader = reader
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
        yield start_event(name, prepared, self.reader.engine.lexicon)
        try:
            while more := await self._run(lambda: _next(stream, known), began):
                for sentence in more:
                    sentences.append(sentence)
                    self.memory.keep(name, sentences)
                    if _is_known(sentence, known):
                        await asyncio.sleep(0)  # has the client left?
                        yield {"kind": "kept", "index": sentence.index}
                    else:
                        computed += 1
                        yield sentence_event(sentence)
            for event in await self._run(lambda: map_events(sentences, meanings), began):
                yield event
        except Refused as refused:
            yield {"kind": "error", "message": refused.detail}
            return
        seconds = round(time.monotonic() - began, 3)
        yield {"kind": "end", "computed": computed, "seconds": seconds}

    async def predictions(self, request: PredictRequest) -> dict[str, Any]:
        """What both models predicted at a token."""
        began, count = time.monotonic(), request.sentence + 1
        prepared = await self.prepare(request)
        if count > len(prepared.sentences):
            raise Refused(422, f"sentence must be 0 to {len(prepared.sentences) - 1}")
        known = self.memory.recall(request.reading)[:count]
        stream = islice(self.reader.stream(prepared, known=known), count)
        sentences: list[SentenceReading] = []
        while more := await self._run(lambda: _next(stream, known), began):
            sentences += more
        if request.reading and len(sentences) > len(known):
            self.memory.keep(request.reading, sentences)
        if request.position >= (length := len(sentences[-1].tokens)):
            raise Refused(422, f"position must be 0 to {length - 1}")
        return await self._run(lambda: self._predicted(sentences, request.position), began)

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
        self._readings: OrderedDict[str, tuple[SentenceReading, ...]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._readings.values()))

    def recall(self, name: str) -> tuple[SentenceReading, ...]:
        """The remembered sentences of a reading."""
        if name in self._readings:
            self._readings.move_to_end(name)
        return self._readings.get(name, ())

    def keep(self, name: str, sentences: Sequence[SentenceReading]) -> None:
        """Keep the first sentences of a reading."""
        self._readings[name] = tuple(sentences[: self._limit])
        self._readings.move_to_end(name)
        while len(self) > self._limit:
            self._readings.popitem(last=False)


def line(event: dict[str, Any]) -> bytes:
    """One event as it is sent."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def start_event(name: str, prepared: PreparedText, lexicon: Lexicon) -> dict[str, Any]:
    """What is known before the first sentence is read."""
    ends = [(sentence[0].start, sentence[-1].end) for sentence in prepared.sentences]
    return {
        "kind": "start",
        "id": name,
        "unit": "bits",
        "names": {str(number): name for number, name in prepared.names().items()},
        "unknown": prepared.unknown(lexicon),
        "sentences": [
            {"text": prepared.text[start:end], "paragraph": paragraph}
            for (start, end), paragraph in zip(ends, prepared.paragraphs, strict=True)
        ],
    }


def sentence_event(sentence: SentenceReading) -> dict[str, Any]:
    """A sentence; tokens say whether a space precedes them, entities come without vectors."""
    plain = sentence.to_dict()
    end = None
    for token in plain["tokens"]:
        token["space"] = end is not None and token["span"][0] > end
        end = token["span"][1]
        for name, value in token.items():
            if isinstance(value, float) and not math.isfinite(value):  # JSON has no NaN
                token[name] = None
    for entity in plain["entities"]:
        for unused in ("representation", "input_words", "output_words"):
            del entity[unused]
    return {"kind": "sentence", **plain}


def map_events(sentences: Iterable[SentenceReading], meanings: Meanings) -> list[dict[str, Any]]:
    """One event per entity."""
    paths: dict[int, list[tuple[int, EntityReading]]] = {}
    for sentence in sentences:
        for state in sentence.entities:
            paths.setdefault(state.entity, []).append((sentence.index, state))
    events = list[dict[str, Any]]()
    for entity, path in paths.items():
        indices, states = zip(*path, strict=True)
        d = torch.tensor([state.representation for state in states], dtype=torch.float64)
        vectors = meanings.vectors([state.row for state in states], d).numpy()
        words = [[near.word for near in state.predicted_words[:NEAREST]] for state in states]
        events.append({"kind": "map", "entity": entity, **meaning_map(indices, vectors, words)})
    return events


def predictions_answer(found: Predictions, seen: Collection[int], k: int) -> dict[str, Any]:
    """The k most likely tokens of each model; <unk> and entities not yet mentioned are one row."""
    columns, answer, listed = ("probability", "static_probability"), {}, {0, *seen}
    for model, by in zip(("dynamic", "static"), columns, strict=True):
        candidates: Sequence[Candidate] = getattr(found, model)
        unseen = [c for c in candidates if c.entity not in listed or c.word == "<unk>"]
        rows = [c.to_dict() for c in candidates if c.entity in listed and c.word != "<unk>"]
        if unseen:
            sums = {name: sum(getattr(c, name) for c in unseen) for name in columns}
            rows.append({"word": "", "entity": UNSEEN, **sums})
        answer[model] = sorted(rows, key=lambda row: -float(row[by]))[:k]
    return answer


def meaning_map(
    sentences: Sequence[int],
    path: Float[np.ndarray, "mentions dim"],
    nearest: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """The path of an entity's embedding among its nearest words, in two dimensions.

    `path` has the sentence (from 0) and the position after each mention. It is projected on its
    first two principal components; `variance` is the share of the path's variance that they keep, 1
    if the path has none.

    Vectors are scaled to unit length because nearness is a cosine. An embedding moves little
    compared with its distance to any word. So a word is not projected: it is placed at the mean of
    the mentions after which it was among the `nearest`. The result is deterministic.
    """
    lengths = np.linalg.norm(path, axis=1, keepdims=True)
    unit = path / np.maximum(lengths, 1e-12)
    centered = unit - unit.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    places = centered @ axes[:2].T
    places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
    largest = np.take_along_axis(places, np.abs(places).argmax(axis=0)[None], axis=0)
    places = places * np.where(largest < 0, -1.0, 1.0)
    total = float((centered**2).sum())
    by_rank = zip(*nearest[::-1], strict=False)
    words = list(dict.fromkeys(word for rank in by_rank for word in rank))[:WORDS]
    among = [places[[word in near for near in nearest]].mean(axis=0) for word in words]
    return {
        "path": [(s, *at) for s, at in zip(sentences, places.round(4).tolist(), strict=True)],
        "words": [(word, *at.round(4).tolist()) for word, at in zip(words, among, strict=True)],
        "variance": float((places**2).sum()) / total if total > 1e-12 else 1.0,
    }
