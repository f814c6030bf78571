"""A trained model as a scorer: documents in, the log-probability of every predicted token out."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, tee
from pathlib import Path
from typing import Self

import numpy as np

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.columns import Floats
from dntm.evaluation.records import Records
from dntm.model.checkpoint import from_pretrained
from dntm.model.language_model import DynamicTextModel

BATCH = 32
"""Documents read side by side; what comes out does not depend on it."""
STRETCH = 20
"""Sentences of each document read at once."""


class TextModel:
    """A model with its vocabulary, ready to read documents."""

    def __init__(self, model: DynamicTextModel, vocabulary: Vocabulary) -> None:
        self.model = model
        self.vocabulary = vocabulary

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Load a checkpoint, or the best one of a run folder."""
        folder = Path(path)
        return cls(*from_pretrained(folder / "best" if (folder / "best").is_dir() else folder))

    def score(self, document: AnonymizedDocument) -> Floats:
        """The log-probability (nats) of every predicted token of a document, in reading order."""
        return next(self.score_all([document]))

    def score_all(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """The same for many documents, several at once."""
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH)):
            encoded = [[self.vocabulary.encode(s) for s in d.sentences] for d in batch]
            yield from _score_batch(self.model, encoded)

    def records(self, documents: Iterable[AnonymizedDocument]) -> Records:
        """One record per predicted token."""
        first, second = tee(documents)
        return Records.of(first, self.score_all(second))


def _score_batch(
    model: DynamicTextModel, documents: Sequence[Sequence[Sequence[int]]]
) -> list[Floats]:
    training = model.training
    model.eval()
    pieces: list[list[Floats]] = [[] for _ in documents]
    state = model.initial_state(len(documents))
    for start in range(0, max(map(len, documents)), STRETCH):
        end = start + STRETCH
        stretch = model.plan([d[start:end] for d in documents], [len(d) > end for d in documents])
        scored, state = model.score(stretch, state)
        for document, values in enumerate(scored):
            pieces[document].append(values.astype(np.float64))
    model.train(training)
    return [np.concatenate(found) for found in pieces]
