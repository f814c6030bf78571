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
from collections.abc import Mapping, Sequence
from typing import Any

from dntm.reader.prepared import PreparedText
from dntm.reader.reading import SentenceReading
from dntm.web.meaning_map import MeaningMap
from dntm.web.surface import RawSentence, spaces


def line(event: dict[str, Any]) -> bytes:
    """One event as it is sent."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def start_event(
    name: str, sentences: Sequence[RawSentence], prepared: PreparedText, changing: str
) -> dict[str, Any]:
    """What is known before the first sentence is read; words come nearer in space `changing`."""
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
    """A sentence, with the spaces of the text and without the vectors."""
    plain = sentence.to_dict()
    tokens = plain["tokens"]
    spaced = spaces(raw[sentence.index].text, [token["word"] for token in tokens])
    for token, space in zip(tokens, spaced, strict=True):
        token["space"] = space
    for entity in plain["entities"]:
        del entity["representation"]
    return {"kind": "sentence", **plain}


def map_events(maps: Mapping[int, Mapping[str, MeaningMap]]) -> list[dict[str, Any]]:
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
