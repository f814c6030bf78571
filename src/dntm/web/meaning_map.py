"""MeaningMap: the path of an entity's meaning among its nearest words, in two dimensions.

The vectors (unit length, since nearness is the cosine) of the entity after each mention and of the
words nearest to it there, centred, are projected onto their first two principal components. The
signs are fixed, so that the same reading gives the same picture.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

Vectors = Float[np.ndarray, "points dim"]
WORDS = 24
"""At most so many words on a map; the nearest of the latest mentions come first."""


@dataclass(frozen=True, slots=True)
class MeaningMap:
    """Points of the plane."""

    path: Sequence[tuple[int, float, float]]
    """Sentence (from zero) and place after each mention."""
    words: Sequence[tuple[str, float, float]]
    kept: float
    """The share of the vectors' spread that the plane shows."""

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        return asdict(self)


def meaning_map(
    sentences: Sequence[int],
    path: Vectors,
    nearest: Sequence[Sequence[str]],
    vectors: Callable[[Sequence[str]], Vectors],
) -> MeaningMap:
    """Lay out the path through `sentences` and the words `nearest` to it after each of them."""
    by_rank = zip(*nearest[::-1], strict=False)
    words = list(dict.fromkeys(word for rank in by_rank for word in rank))[:WORDS]
    points = _unit(np.concatenate((path, vectors(words))) if words else path)
    plane, kept = _principal(points - points.mean(axis=0))
    rounded = [(round(float(x), 4), round(float(y), 4)) for x, y in plane]
    return MeaningMap(
        path=[(s, *at) for s, at in zip(sentences, rounded, strict=False)],
        words=[(word, *at) for word, at in zip(words, rounded[len(path) :], strict=True)],
        kept=kept,
    )


def _unit(vectors: Vectors) -> Vectors:
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = vectors / np.maximum(lengths, 1e-12)
    return scaled


def _principal(centred: Vectors) -> tuple[Float[np.ndarray, "points 2"], float]:
    """The first two principal components, and their share of the variance.

    There are fewer points than dimensions, so the small matrix of inner products is decomposed.
    """
    variance, left = np.linalg.eigh(centred @ centred.T)
    variance = np.maximum(variance[::-1], 0.0)
    first = left[:, ::-1][:, :2] * np.sqrt(variance[:2])
    if first.shape[1] < 2:
        first = np.pad(first, ((0, 0), (0, 2 - first.shape[1])))
    largest = np.take_along_axis(first, np.abs(first).argmax(axis=0)[None], axis=0)
    signed = first * np.where(largest < 0, -1.0, 1.0)
    return signed, float(variance[:2].sum() / max(float(variance.sum()), 1e-12))
