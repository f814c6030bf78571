"""Trails: what the maps need of a reading, and no more, kept while it goes on.

A sentence as the reader gives it carries the whole state of both models; a trail holds of each
state of an entity its d and the few words that are nearest to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from dntm.reader.meaning import Meanings
from dntm.reader.reading import EntityReading, SentenceReading
from dntm.web.meaning_map import MeaningMap, meaning_map

NEAREST = 3
"""How many of the nearest words, and of those that came nearer, a map shows for each mention; in
the space in which none come nearer, twice as many of the nearest."""


@dataclass(slots=True)
class _Trail:
    sentences: list[int] = field(default_factory=list)
    d: list[Tensor] = field(default_factory=list)
    nearest: dict[str, list[list[str]]] = field(default_factory=dict)


class Trails:
    """The entities of a reading, each with its states in order."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings
        self._trails: dict[int, _Trail] = {}

    @classmethod
    def of(cls, sentences: Sequence[SentenceReading], meanings: Meanings) -> Self:
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
            trail.d.append(torch.tensor(state.representation, dtype=torch.float64))
            for space in self._meanings.spaces:
                trail.nearest.setdefault(space, []).append(self._nearest(space, state))

    def maps(self) -> dict[int, dict[str, MeaningMap]]:
        """A map for each entity in each space."""
        return {
            number: {name: self._map(number, trail, name) for name in self._meanings.spaces}
            for number, trail in self._trails.items()
        }

    def _nearest(self, space: str, state: EntityReading) -> list[str]:
        words = state.input_words if space == "input" else state.output_words
        more = state.gained if space == self._meanings.changing else words[NEAREST:]
        return [near.word for near in (*words[:NEAREST], *more[:NEAREST])]

    def _map(self, number: int, trail: _Trail, name: str) -> MeaningMap:
        space = self._meanings.spaces[name]
        path = space.entities([number] * len(trail.d), torch.stack(trail.d))
        return meaning_map(
            trail.sentences,
            path.numpy(),
            trail.nearest[name],
            lambda words: space.words(words).numpy(),
        )
