"""Events: a reading as the page receives it, one JSON object a line.

start       the reading's id, the entities' names, the raw sentences
kept        a sentence that the page has already, unchanged
sentence    its tokens, and the entities it mentions as they stand after it
map         an entity's path among its nearest words, in the input and in the output space
end         how much was computed, and how long it took
error       why it stopped before its end
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dntm.reader.prepared import PreparedText
from dntm.reader.reading import EntityReading, SentenceReading
from dntm.web.meaning_map import meaning_map
from dntm.web.surface import RawSentence, spaces
from dntm.web.word_vectors import WordVectors

NEAREST = 3
"""How many of the nearest words, and of those that came nearer, a map shows for each mention."""


def line(event: dict[str, Any]) -> bytes:
    """One event as it is sent."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def start_event(
    name: str, sentences: Sequence[RawSentence], prepared: PreparedText
) -> dict[str, Any]:
    """What is known before the first sentence is read."""
    return {
        "kind": "start",
        "id": name,
        "unit": "bits",
        "names": {str(number): called for number, called in prepared.names().items()},
        "notes": list(prepared.notes),
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


def map_events(
    vectors: Mapping[str, WordVectors], sentences: Sequence[SentenceReading]
) -> list[dict[str, Any]]:
    """A map for each entity in each space."""
    trails: dict[int, list[tuple[int, EntityReading]]] = {}
    for sentence in sentences:
        for entity in sentence.entities:
            trails.setdefault(entity.entity, []).append((sentence.index, entity))
    return [
        {
            "kind": "map",
            "entity": number,
            "spaces": {name: _map(name, space, trail) for name, space in vectors.items()},
        }
        for number, trail in trails.items()
    ]


def _map(
    name: str, space: WordVectors, trail: Sequence[tuple[int, EntityReading]]
) -> dict[str, Any]:
    indices, states = zip(*trail, strict=True)
    near = [state.input_words if name == "input" else state.output_words for state in states]
    nearest = [
        [one.word for one in (*words[:NEAREST], *state.gained[:NEAREST])]
        for words, state in zip(near, states, strict=True)
    ]
    return meaning_map(indices, space.states(states), nearest, space.words).to_dict()


def end_event(computed: int, seconds: float) -> dict[str, Any]:
    """The end of a reading that nothing stopped."""
    return {"kind": "end", "computed": computed, "seconds": round(seconds, 3)}
