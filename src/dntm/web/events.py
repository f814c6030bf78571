"""Events: a reading as the page receives it, one JSON object a line.

start       the reading's id, the entities' names, the raw sentences
kept        a sentence that the page has already, unchanged
sentence    its tokens, and the entities it mentions as they stand after it
map         an entity's path among its nearest words, in the input and in the output space
end         how much was computed, and how long it took
error       why it stopped before its end

The last one is `end` or `error`: without either the answer broke off.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from dntm.reader.meaning import Meanings, how_sure
from dntm.reader.questions import Candidate, Predictions
from dntm.reader.reading import SentenceReading
from dntm.reader.text import PreparedText
from dntm.web.requests import RawSentence, spaces

NEAREST = 4
"""How many words a map shows for each mention."""
WORDS = 24
"""At most so many words on a map; those of the latest mentions come first."""
NEW = -1
"""Stands in a prediction for any entity that has not been mentioned yet."""


def line(event: dict[str, Any]) -> bytes:
    """One event as it is sent."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def start_event(
    name: str, sentences: Sequence[RawSentence], prepared: PreparedText, changing: str
) -> dict[str, Any]:
    """What is known before the first sentence is read; words are named in space `changing`."""
    return {
        "kind": "start",
        "id": name,
        "unit": "bits",
        "changing": changing,
        "names": {str(number): called for number, called in prepared.names().items()},
        "notes": list(prepared.notes),
        "sentences": [{"text": s.text, "paragraph": s.paragraph} for s in sentences],
    }


def sentence_event(sentence: SentenceReading, raw: Sequence[RawSentence]) -> dict[str, Any]:
    """A sentence, with the spaces of the text and certainty in words, without the vectors."""
    plain = sentence.to_dict()
    tokens = plain["tokens"]
    spaced = spaces(raw[sentence.index].text, [token["word"] for token in tokens])
    for token, space in zip(tokens, spaced, strict=True):
        token["space"] = space
        for name, value in token.items():
            if isinstance(value, float) and not math.isfinite(value):  # JSON has no NaN
                token[name] = None
    for entity in plain["entities"]:
        del entity["representation"]
        entity["certainty"] = how_sure(entity["sure"])
    return {"kind": "sentence", **plain}


def map_events(maps: Mapping[int, Mapping[str, "MeaningMap"]]) -> list[dict[str, Any]]:
    """An entity's map in each space, one event an entity."""
    return [
        {
            "kind": "map",
            "entity": number,
            "spaces": {name: found.to_dict() for name, found in spaces.items()},
        }
        for number, spaces in maps.items()
    ]


def end_event(computed: int, seconds: float) -> dict[str, Any]:
    """The end of a reading that nothing stopped."""
    return {"kind": "end", "computed": computed, "seconds": round(seconds, 3)}


def predictions_answer(found: Predictions, seen: Collection[int], k: int) -> dict[str, Any]:
    """The k likeliest of each model; entities not mentioned yet are one row, for all of them."""
    return {
        "dynamic": _merged(found.dynamic, "probability", seen)[:k],
        "static": _merged(found.static, "static_probability", seen)[:k],
    }


def _merged(
    candidates: Sequence[Candidate], by: str, seen: Collection[int]
) -> list[dict[str, Any]]:
    rows = [c.to_dict() for c in candidates if not c.entity or c.entity in seen]
    new = [c for c in candidates if c.entity and c.entity not in seen]
    if new:
        sums = {
            name: sum(getattr(c, name) for c in new)
            for name in ("probability", "static_probability")
        }
        rows.append({"word": "", "entity": NEW, **sums})
    return sorted(rows, key=lambda row: -float(row[by]))


@dataclass(slots=True)
class _Trail:
    sentences: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    d: list[Tensor] = field(default_factory=list)
    nearest: dict[str, list[list[str]]] = field(default_factory=dict)


class Trails:
    """What the maps need of a reading, and no more: of each state its d and its nearest words."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings
        self._trails: dict[int, _Trail] = {}

    @classmethod
    def of(cls, sentences: Sequence[SentenceReading], meanings: Meanings) -> "Trails":
        """Follow the entities through some sentences."""
        trails = cls(meanings)
        for sentence in sentences:
            trails.add(sentence)
        return trails

    def add(self, sentence: SentenceReading) -> None:
        """Follow the entities through one more sentence."""
        for state in sentence.entities:
            trail = self._trails.setdefault(state.entity, _Trail())
            trail.sentences.append(sentence.index)
            trail.rows.append(state.row)
            trail.d.append(torch.tensor(state.representation, dtype=torch.float64))
            lists = {"input": state.input_words, "output": state.output_words}
            lists[self._meanings.changing] = state.taken_for or lists[self._meanings.changing]
            for space, words in lists.items():
                near = [word.word for word in words[:NEAREST]]
                trail.nearest.setdefault(space, []).append(near)

    def maps(self) -> dict[int, dict[str, "MeaningMap"]]:
        """A map for each entity in each space."""
        return {
            number: {
                name: meaning_map(
                    trail.sentences,
                    space.entities(trail.rows, torch.stack(trail.d)).numpy(),
                    trail.nearest[name],
                )
                for name, space in self._meanings.spaces.items()
            }
            for number, trail in self._trails.items()
        }


@dataclass(frozen=True, slots=True)
class MeaningMap:
    """The path of an entity's meaning among its nearest words, as points of a plane."""

    path: Sequence[tuple[int, float, float]]
    """Sentence (from zero) and place after each mention."""
    words: Sequence[tuple[str, float, float]]
    kept: float
    """The share of the path's movement that the plane shows; 1 where it does not move."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


def meaning_map(
    sentences: Sequence[int],
    path: Float[np.ndarray, "mentions dim"],
    nearest: Sequence[Sequence[str]],
) -> MeaningMap:
    """Lay out the path through `sentences` and the words `nearest` to it after each of them.

    The vectors have unit length, since nearness is the cosine, and the plane is that of the path's
    two first principal components. A meaning moves little beside its distance to any word, so that
    words in the same plane would lie far away from it: a word stands in the middle of the mentions
    after which it was among the nearest. The same reading gives the same picture.
    """
    lengths = np.linalg.norm(path, axis=1, keepdims=True)
    unit = path / np.maximum(lengths, 1e-12)
    centred = unit - unit.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    places = centred @ axes[:2].T
    places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
    largest = np.take_along_axis(places, np.abs(places).argmax(axis=0)[None], axis=0)
    places = places * np.where(largest < 0, -1.0, 1.0)
    moved = float((centred**2).sum())
    by_rank = zip(*nearest[::-1], strict=False)
    words = list(dict.fromkeys(word for rank in by_rank for word in rank))[:WORDS]
    among = [places[[word in near for near in nearest]].mean(axis=0) for word in words]
    return MeaningMap(
        path=[(s, *_rounded(at)) for s, at in zip(sentences, places, strict=True)],
        words=[(word, *_rounded(at)) for word, at in zip(words, among, strict=True)],
        kept=float((places**2).sum()) / moved if moved > 1e-12 else 1.0,
    )


def _rounded(place: Float[np.ndarray, " 2"]) -> tuple[float, float]:
    return round(float(place[0]), 4), round(float(place[1]), 4)
