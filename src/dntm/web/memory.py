"""Memory: what was read is kept for a while, so that an edited text is read only from the edit on.

A reading is kept as the beginning of one text, without a gap. There are never more sentences than
the limit: the readings used longest ago are forgotten first, one that is under way never; what
still finds no room is not kept, and has to be read again if it is asked for.
"""

from collections import OrderedDict
from collections.abc import Sequence

from dntm.reader.reading import SentenceReading


class Memory:
    """Sentences by the name of their reading."""

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
