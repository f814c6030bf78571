"""Events: a reading as the page receives it, one JSON object per line.

start       the reading's id, the names of its entities, the unknown words among them, its sentences
kept        a sentence that the page has already, unchanged
sentence    its tokens, and the entities it mentions as they are after it
map         the path of an entity among its predicted words
end         how many sentences were computed, and how long it took
error       why the reading stopped early

The last event is `end` or `error`; without either the answer was cut off.
"""

import json
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from dntm.corpus.entities import Lexicon
from dntm.reader.meaning import Meanings
from dntm.reader.questions import Candidate, Predictions
from dntm.reader.reading import EntityReading, SentenceReading
from dntm.reader.text import PreparedText

NEAREST = 4
"""Words on a map for each mention."""
WORDS = 24
"""Words on a map; those of the latest mentions come first."""
UNSEEN = -1
"""The entity number of a prediction that stands for all entities not yet mentioned."""


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
    return [
        {"kind": "map", "entity": entity, **_map(path, meanings)} for entity, path in paths.items()
    ]


def _map(path: Sequence[tuple[int, EntityReading]], meanings: Meanings) -> dict[str, Any]:
    sentences, states = zip(*path, strict=True)
    d = torch.tensor([state.representation for state in states], dtype=torch.float64)
    space = meanings.spaces[meanings.naming_space]
    vectors = space.entities([state.row for state in states], d).numpy()
    words = [[near.word for near in state.predicted_words[:NEAREST]] for state in states]
    return meaning_map(sentences, vectors, words)


def predictions_answer(found: Predictions, seen: Collection[int], k: int) -> dict[str, Any]:
    """The k most likely tokens of each model; entities not yet mentioned are one row."""
    return {
        "dynamic": _merged(found.dynamic, "probability", seen)[:k],
        "static": _merged(found.static, "static_probability", seen)[:k],
    }


def _merged(
    candidates: Sequence[Candidate], by: str, seen: Collection[int]
) -> list[dict[str, Any]]:
    rows = [c.to_dict() for c in candidates if not c.entity or c.entity in seen]
    unseen = [c for c in candidates if c.entity and c.entity not in seen]
    if unseen:
        names = ("probability", "static_probability")
        sums = {name: sum(getattr(c, name) for c in unseen) for name in names}
        rows.append({"word": "", "entity": UNSEEN, **sums})
    return sorted(rows, key=lambda row: -float(row[by]))


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
        "path": [(s, *_rounded(at)) for s, at in zip(sentences, places, strict=True)],
        "words": [(word, *_rounded(at)) for word, at in zip(words, among, strict=True)],
        "variance": float((places**2).sum()) / total if total > 1e-12 else 1.0,
    }


def _rounded(place: Float[np.ndarray, " 2"]) -> tuple[float, float]:
    return round(float(place[0]), 4), round(float(place[1]), 4)
