"""Meaning: the words of the vocabulary that an entity stands near to (Eqs. 9 and 10).

    near(e, w) = cos(x_e - x_mean, x_w - x_mean)     input space; with y_e and y_w output space

x_mean is the mean over the words compared with: embeddings share one large direction, and without
it every entity would be near to the same words. Compared with are the most frequent words of the
vocabulary that begin with a letter, the closed classes (articles, prepositions, conjunctions,
auxiliaries) left out; pronouns stay, they tell a person from a thing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import SPECIALS, Vocabulary
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.language_model import DynamicTextModel
from dntm.reader.reading import Neighbour

COMPARED = 2000
"""How many words entities are compared with, at most."""
_CLOSED = frozenset(
    "a an the and or but nor so yet if because as while although though unless until since when "
    "where how why than whether of in on at by for with from to into onto upon about over under "
    "between through during before after above below up down out off against among around within "
    "without toward towards across along behind beyond near per via be am is are was were been "
    "being have has had having do does did doing done will would shall should can could may might "
    "must not no n't n’t there here then also too very just only even "
    "still such both either neither each every all any some more most much many few other another "
    "same own what this that these those which let".split()
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """An entity's nearest words, and what changed."""

    input_words: Sequence[Neighbour]
    output_words: Sequence[Neighbour]
    gained: Sequence[Neighbour]
    lost: Sequence[Neighbour]
    change: float
    """How far d moved."""


class Meanings:
    """Finds the words near to entities."""

    def __init__(self, model: DynamicTextModel, vocabulary: Vocabulary, k: int = 8) -> None:
        first = len(SPECIALS) + vocabulary.entities
        open_class = [
            number
            for number, word in enumerate(vocabulary.words)
            if word[0].isalpha() and word.lower() not in _CLOSED
        ][:COMPARED]
        self._words = [vocabulary.words[number] for number in open_class]
        self._k = min(k, len(self._words))
        rows = torch.tensor([first + number for number in open_class], dtype=torch.long)
        self.spaces: Mapping[str, Space] = {
            "input": Space(model.x, self._words, rows),
            "output": Space(model.output.y, self._words, rows),
        }
        self.changing = "input" if model.config.dynamic_input else "output"
        """The space in which words come nearer and go farther."""

    def of(
        self,
        entities: Sequence[int],
        before: Float[Tensor, "mentions context_dim"],
        after: Float[Tensor, "mentions context_dim"],
    ) -> list[Meaning]:
        """What each of these entities means once its d has gone from `before` to `after`."""
        found: dict[str, tuple[Tensor, Tensor]] = {}
        for name, space in self.spaces.items():
            now = space.near(entities, after)
            found[name] = now, now - space.near(entities, before)
        _, change = changing = found[self.changing]
        moved = (after - before).norm(dim=1).tolist()
        lists = (
            self._neighbours(*found["input"], by=found["input"][0]),
            self._neighbours(*found["output"], by=found["output"][0]),
            self._neighbours(*changing, by=change, above=0.0),
            self._neighbours(*changing, by=-change, above=0.0),
        )
        return [
            Meaning(near_x, near_y, gained, lost, d)
            for near_x, near_y, gained, lost, d in zip(*lists, moved, strict=True)
        ]

    def _neighbours(
        self, near: Tensor, change: Tensor, *, by: Tensor, above: float = -math.inf
    ) -> list[list[Neighbour]]:
        """The words that rank highest for each entity, as far as they stand above a bound."""
        values, places = by.topk(self._k, dim=1)
        columns = (near.gather(1, places), change.gather(1, places), values, places)
        return [
            [
                Neighbour(word=self._words[place], similarity=similarity, change=changed)
                for similarity, changed, value, place in zip(*row, strict=True)
                if value > above
            ]
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]


class Space:
    """One layer's embeddings, the mean of the words compared with taken off, at unit length."""

    def __init__(
        self, layer: DynamicEmbedding, words: Sequence[str], rows: Int[Tensor, " words"]
    ) -> None:
        self._layer = layer
        self._places = {word: place for place, word in enumerate(words)}
        vectors = layer.weight.index_select(0, rows)
        self._mean = vectors.mean(0) if len(vectors) else layer.weight.mean(0)
        self._unit = torch.nn.functional.normalize(vectors - self._mean, dim=1)

    def words(self, words: Sequence[str]) -> Float[Tensor, "words dim"]:
        """The vectors of some of the words compared with."""
        return self._unit[[self._places[word] for word in words]]

    def entities(
        self, entities: Sequence[int], d: Float[Tensor, "mentions context_dim"]
    ) -> Float[Tensor, "mentions dim"]:
        """The vectors of these entities in the states d."""
        rows = torch.tensor([len(SPECIALS) - 1 + e for e in entities], dtype=torch.long)
        vectors = self._layer.entity(rows, d) - self._mean
        return torch.nn.functional.normalize(vectors, dim=1)

    def near(
        self, entities: Sequence[int], d: Float[Tensor, "mentions context_dim"]
    ) -> Float[Tensor, "mentions words"]:
        """The cosine of each entity with every word."""
        return self.entities(entities, d) @ self._unit.t()
