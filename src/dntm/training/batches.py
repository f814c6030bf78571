"""Batches: the order in which an epoch reads the training documents."""

from collections.abc import Sequence

import numpy as np

from dntm.model.fast.window import EncodedDocument


def epoch_batches(documents: int, batch: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Shuffle the documents with the seed and the epoch's number and cut them into batches."""
    order = np.random.default_rng([seed, epoch]).permutation(documents)
    return [order[start : start + batch].tolist() for start in range(0, documents, batch)]


def tokens_of_windows(documents: Sequence[EncodedDocument], truncation: int) -> list[int]:
    """How many tokens each BPTT window of the batch predicts: all of its sentences but <bos>."""
    counts = [0] * -(-max(map(len, documents)) // truncation)
    for document in documents:
        for number, sentence in enumerate(document):
            counts[number // truncation] += len(sentence) - 1
    return counts
