"""MeaningMap: the path of an entity's meaning among its nearest words, in two dimensions.

The vectors have unit length, since nearness is the cosine. A meaning moves little beside the
distance to any word, so the plane is that of its movement: the first two principal components
around the middle of the path, in which a mention weighs as much as MENTION words, so that these
decide only what the path leaves open. The signs are fixed: the same reading gives the same picture.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

Vectors = Float[np.ndarray, "points dim"]
MENTION = 1000.0
WORDS = 24
"""At most so many words on a map; the nearest of the latest mentions come first."""


@dataclass(frozen=True, slots=True)
class MeaningMap:
    """Points of the plane."""

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
    path: Vectors,
    nearest: Sequence[Sequence[str]],
    vectors: Callable[[Sequence[str]], Vectors],
) -> MeaningMap:
    """Lay out the path through `sentences` and the words `nearest` to it after each of them."""
    by_rank = zip(*nearest[::-1], strict=False)
    words = list(dict.fromkeys(word for rank in by_rank for word in rank))[:WORDS]
    points = _unit(np.concatenate((path, vectors(words))) if words else path)
    mentions = len(path)
    centred = points - points[:mentions].mean(axis=0)
    plane = _plane(centred, mentions)
    moved = float((centred[:mentions] ** 2).sum())
    shown = float((plane[:mentions] ** 2).sum())
    rounded = [(round(float(x), 4), round(float(y), 4)) for x, y in plane]
    return MeaningMap(
        path=[(s, *at) for s, at in zip(sentences, rounded, strict=False)],
        words=[(word, *at) for word, at in zip(words, rounded[mentions:], strict=True)],
        kept=shown / moved if moved > 1e-12 else 1.0,
    )


def _unit(vectors: Vectors) -> Vectors:
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = vectors / np.maximum(lengths, 1e-12)
    return scaled


def _plane(centred: Vectors, mentions: int) -> Float[np.ndarray, "points 2"]:
    """The points projected onto the first two weighted principal components."""
    weights = np.ones(len(centred))
    weights[:mentions] = MENTION
    _, _, axes = np.linalg.svd(centred * np.sqrt(weights)[:, None], full_matrices=False)
    places = centred @ axes[:2].T
    if places.shape[1] < 2:
        places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
    largest = np.take_along_axis(places, np.abs(places).argmax(axis=0)[None], axis=0)
    signed: Float[np.ndarray, "points 2"] = places * np.where(largest < 0, -1.0, 1.0)
    return signed
