"""Batches: the order in which an epoch reads the training documents, and their stretches."""

from collections.abc import Iterator, Sequence

import numpy as np

EncodedDocument = Sequence[Sequence[int]]
"""A document's sentences as vocabulary rows, <bos> and <eos> around each."""


def epoch_batches(documents: int, batch: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Shuffle the documents with the seed and the epoch's number and cut them into batches."""
    order = np.random.default_rng([seed, epoch]).permutation(documents)
    return [order[start : start + batch].tolist() for start in range(0, documents, batch)]


def stretches(
    documents: Sequence[EncodedDocument], truncation: int
) -> Iterator[tuple[list[EncodedDocument], list[bool], list[int]]]:
    """The batch in stretches of so many sentences: sentences, which documents go on, which stay.

    A document that has ended is no longer part of the next stretch: the third value tells which
    of the previous stretch's documents still are.
    """
    active = list(range(len(documents)))
    kept = list(range(len(documents)))
    for start in range(0, max(map(len, documents), default=0), truncation):
        end = start + truncation
        yield (
            [documents[d][start:end] for d in active],
            [len(documents[d]) > end for d in active],
            kept,
        )
        kept = [i for i, d in enumerate(active) if len(documents[d]) > end]
        active = [active[i] for i in kept]


def tokens_of_stretches(documents: Sequence[EncodedDocument], truncation: int) -> list[int]:
    """How many tokens each stretch of the batch predicts: all of its sentences but <bos>."""
    counts = [0] * -(-max(map(len, documents)) // truncation)
    for document in documents:
        for number, sentence in enumerate(document):
            counts[number // truncation] += len(sentence) - 1
    return counts
