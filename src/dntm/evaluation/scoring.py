"""A trained model as a scorer: documents in, the log-probability of every predicted token out."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, tee
from pathlib import Path
from typing import Self

import numpy as np

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.cloze import ClozeText, Filled
from dntm.evaluation.columns import Floats
from dntm.evaluation.records import Records
from dntm.model.checkpoint import best_of, from_pretrained
from dntm.model.filling import Blanks, fill, trace
from dntm.model.language_model import DynamicTextModel

BATCH = 32
"""Documents read side by side; what comes out does not depend on it."""
STRETCH = 20
"""Sentences of each document read at once."""
CLOZE_BATCH = 8
"""The same as BATCH, where each document has many readings."""


class TextModel:
    """A model with its vocabulary, ready to read documents."""

    def __init__(self, model: DynamicTextModel, vocabulary: Vocabulary) -> None:
        self.model = model
        self.vocabulary = vocabulary

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Load a checkpoint, or the best one of a run folder."""
        folder = Path(path)
        return cls(*from_pretrained(best_of(folder)))

    def score(self, document: AnonymizedDocument) -> Floats:
        """The log-probability (nats) of every predicted token of a document, in reading order."""
        return next(self.score_all([document]))

    def score_all(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """The same for many documents, several at once."""
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH)):
            encoded = [[self.vocabulary.encode(s) for s in d.sentences] for d in batch]
            yield from _score_batch(self.model, encoded)

    def fill_all(self, texts: Iterable[ClozeText]) -> Iterator[Filled]:
        """Every candidate in every gap of each text, for the cloze test."""
        remaining = iter(texts)
        while batch := list(islice(remaining, CLOZE_BATCH)):
            yield from _fill_batch(self, batch)

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


def _fill_batch(text_model: TextModel, texts: Sequence[ClozeText]) -> list[Filled]:
    model, encode = text_model.model, text_model.vocabulary.encode
    training = model.training
    model.eval()
    documents = [[encode(s) for s in text.document.sentences] for text in texts]
    pieces = [[(np.zeros(0), np.zeros(0))] for _ in texts]
    state = model.initial_state(len(texts))
    for start in range(0, max(map(len, documents)), STRETCH):
        stretch = [d[start : start + STRETCH] for d in documents]
        read, state = trace(model, stretch, state)
        blanks, sizes = _blanks(texts, stretch, start)
        ends = np.cumsum(sizes)[:-1]
        scores = (np.split(values, ends) for values in fill(model, read, blanks))
        for found, both in zip(pieces, zip(*scores, strict=True), strict=True):
            found.append(both)
    model.train(training)
    return [Filled(*map(np.concatenate, zip(*found, strict=True))) for found in pieces]


def _blanks(
    texts: Sequence[ClozeText], stretch: Sequence[Sequence[Sequence[int]]], start: int
) -> tuple[Blanks, list[int]]:
    """The gaps of a stretch that begins at sentence `start`; how many candidates a text has."""
    token: list[int] = []
    gap: list[int] = []
    entity: list[int] = []
    sizes, read = [], 0
    for text, sentences in zip(texts, stretch, strict=True):
        before = len(entity)
        begins = np.cumsum([read, *map(len, sentences)])
        for found in text.gaps:
            if start <= found.sentence < start + len(sentences):
                gap.extend([len(token)] * len(found.candidates))
                entity.extend(found.candidates)
                token.append(int(begins[found.sentence - start]) + 1 + found.position)
        read = int(begins[-1])
        sizes.append(len(entity) - before)
    return Blanks(*(np.array(column, dtype=np.int64) for column in (token, gap, entity))), sizes
