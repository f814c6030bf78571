"""Events: a reading as the page receives it, one JSON object a line.

    start       the reading's id, the entities' names, the raw sentences
    kept        a sentence that the page has already, unchanged
    sentence    its tokens, and the entities it mentions as they stand after it
    map         an entity's path among its nearest words, in the input and in the output space
    end         how much was computed, and how long it took
    error       why it stopped before its end
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from dntm.reader.reader import Reader
from dntm.reader.reading import EntityReading, SentenceReading
from dntm.web.meaning_map import meaning_map
from dntm.web.surface import RawSentence, spaces

NEAREST = 5
"""Nearest words of each mention that a map shows."""


def line(event: dict[str, Any]) -> bytes:
    """One event as it is sent."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def start_event(
    name: str, sentences: Sequence[RawSentence], first: SentenceReading
) -> dict[str, Any]:
    """What is known when the first sentence has been read."""
    assert first.position is not None
    return {
        "kind": "start",
        "id": name,
        "unit": "bits",
        "names": {str(number): name for number, name in first.position.names.items()},
        "notes": list(first.position.notes),
        "sentences": [{"text": s.text, "paragraph": s.paragraph} for s in sentences],
    }


def sentence_event(sentence: SentenceReading, raw: Sequence[RawSentence]) -> dict[str, Any]:
    """A sentence, with the spaces of the text and without the vectors."""
    plain = sentence.to_dict()
    tokens = plain["tokens"]
    spaced = spaces(raw[sentence.index].text, [token["word"] for token in tokens])
    for token, space in zip(tokens, spaced, strict=True):
        token["space"] = space
    for entity in plain["entities"]:
        del entity["representation"]
    return {"kind": "sentence", **plain}


def map_events(reader: Reader, sentences: Sequence[SentenceReading]) -> list[dict[str, Any]]:
    """A map for each entity."""
    trails: dict[int, list[tuple[int, EntityReading]]] = {}
    for sentence in sentences:
        for entity in sentence.entities:
            trails.setdefault(entity.entity, []).append((sentence.index, entity))
    return [
        {"kind": "map", "entity": number, "spaces": _maps(reader, trail)}
        for number, trail in trails.items()
    ]


def _maps(reader: Reader, trail: Sequence[tuple[int, EntityReading]]) -> dict[str, Any]:
    indices = [index for index, _ in trail]
    vectors = [reader.entity_vectors(e.entity, e.representation) for _, e in trail]
    spaces = (
        ("input", [e.input_words for _, e in trail], reader.input_vectors),
        ("output", [e.output_words for _, e in trail], reader.output_vectors),
    )
    found = {}
    for number, (space, near, of_words) in enumerate(spaces):
        nearest = [[one.word for one in words[:NEAREST]] for words in near]
        path = np.stack([pair[number] for pair in vectors])
        found[space] = meaning_map(indices, path, nearest, of_words).to_dict()
    return found


def end_event(computed: int, seconds: float) -> dict[str, Any]:
    """The end of a reading that nothing stopped."""
    return {"kind": "end", "computed": computed, "seconds": round(seconds, 3)}
