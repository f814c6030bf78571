"""WordVectors: words and entities as points of the input and of the output space (Eqs. 9, 10).

Embeddings share one large direction; the mean over all words is taken off, so that what is left
tells words apart.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from dntm.corpus.vocabulary import SPECIALS
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.reader.reader import Reader
from dntm.reader.reading import EntityReading


class WordVectors:
    """One space of a reader's dynamic model."""

    def __init__(self, reader: Reader, layer: DynamicEmbedding) -> None:
        self._layer = layer
        self._vocabulary = reader.vocabulary
        words = layer.weight[len(SPECIALS) + reader.vocabulary.entities :]
        self._mean = words.mean(dim=0)

    @classmethod
    def both(cls, reader: Reader) -> dict[str, "WordVectors"]:
        """The input and the output space."""
        model = reader.models.dynamic
        return {"input": cls(reader, model.x), "output": cls(reader, model.output.y)}

    @torch.no_grad()
    def words(self, words: Sequence[str]) -> Float[np.ndarray, "words dim"]:
        """The points of some words of the vocabulary."""
        rows = torch.tensor([self._vocabulary.row(word) for word in words], dtype=torch.long)
        found: Float[np.ndarray, "words dim"] = (self._layer.weight[rows] - self._mean).numpy()
        return found

    @torch.no_grad()
    def states(self, trail: Sequence[EntityReading]) -> Float[np.ndarray, "mentions dim"]:
        """The points of an entity in some of its states."""
        rows = torch.tensor([self._vocabulary.entity_row(one.entity) for one in trail])
        d = torch.tensor([list(one.representation) for one in trail], dtype=self._mean.dtype)
        found: Float[np.ndarray, "mentions dim"] = (
            self._layer.entity(rows, d) - self._mean
        ).numpy()
        return found
