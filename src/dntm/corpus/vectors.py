"""Word vectors from a file in the text format of GloVe and word2vec, optionally gzipped.

A line is a word and its numbers, separated by spaces. A first line with the number of words and
dimensions (word2vec) is skipped. Words of the vocabulary are looked up as spelled, else in lower
case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from dntm.corpus.document import InputError, text_lines
from dntm.corpus.vocabulary import Vocabulary


@dataclass(frozen=True)
class WordVectors:
    """Vectors by word."""

    rows: Mapping[str, int]
    """The index of each word's vector."""
    vectors: Float[np.ndarray, "words dim"]

    @classmethod
    def read(cls, path: Path, vocabulary: Vocabulary | None = None) -> "WordVectors":
        """Read all words of a file, or only those of the vocabulary."""
        wanted = None
        if vocabulary is not None:
            wanted = {*vocabulary.words, *(word.lower() for word in vocabulary.words)}
        rows: dict[str, int] = {}
        vectors: list[Float[np.ndarray, " dim"]] = []
        dim = 0
        for number, line in text_lines(path):
            word, *numbers = line.rstrip().split(" ")
            if not numbers:
                problem = f"found {line[:40]!r}, expected a word and numbers"
                raise InputError(path, number, problem)
            if number == 1 and len(numbers) == 1 and word.isdecimal():
                continue
            dim = dim or len(numbers)
            if len(numbers) != dim:
                problem = f"{len(numbers)} numbers after the word, expected {dim}"
                raise InputError(path, number, problem)
            if word in rows or (wanted is not None and word not in wanted):
                continue
            rows[word] = len(vectors)
            vectors.append(_numbers(numbers, str(path), number))
        if not dim:
            raise InputError(str(path), None, "no line with a word and numbers")
        return cls(rows, np.array(vectors, dtype=np.float32).reshape(-1, dim))

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and (word in self.rows or word.lower() in self.rows)

    def of(
        self, vocabulary: Vocabulary
    ) -> tuple[Int[np.ndarray, " found"], Float[np.ndarray, "found dim"]]:
        """The rows of the vocabulary that have a vector, and these vectors."""
        found = [
            (vocabulary.row(word), self.rows.get(word, self.rows.get(word.lower(), -1)))
            for word in vocabulary.words
        ]
        pairs = np.array([pair for pair in found if pair[1] >= 0], dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], self.vectors[pairs[:, 1]]


def _numbers(cells: list[str], path: str, number: int) -> Float[np.ndarray, " dim"]:
    try:
        with np.errstate(over="ignore"):  # too large values become infinite
            values = np.array(cells, dtype=np.float32)
    except ValueError as error:
        raise InputError(path, number, f"{error}, expected numbers after the word") from None
    if not np.isfinite(values).all():
        raise InputError(path, number, "a number that is not finite")
    return values


def resized(
    vectors: Float[np.ndarray, "words dim"], width: int, seed: int = 0
) -> Float[np.ndarray, "words width"]:
    """The vectors in another width, with the same cosines as far as possible.

    A larger width uses a random subspace, a smaller one the leading singular vectors.
    """
    dim = vectors.shape[1]
    if width == dim:
        return vectors
    if width < dim:
        projection = np.linalg.svd(vectors.T @ vectors)[2][:width]
    else:
        projection, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, dim)))
    found: Float[np.ndarray, "words width"] = vectors @ projection.T.astype(vectors.dtype)
    return found
