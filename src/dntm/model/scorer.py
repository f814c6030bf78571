"""Scorer: a trained model with its vocabulary, applied to documents.

`LanguageModel` is the protocol through which evaluation uses any model, ours or a baseline.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument, Gap
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import Vocabulary, row_of_entity
from dntm.model.checkpoint import best_of, from_pretrained
from dntm.model.completion import Completions, complete
from dntm.model.fast.layout import indices
from dntm.model.fast.read import read
from dntm.model.fast.window import EncodedDocument, windows
from dntm.model.language_model import DynamicTextModel, scored

BATCH = 32
"""Documents read in parallel; results do not depend on it."""
SENTENCES = 20
"""Sentences of each document in a window; results do not depend on it."""

Floats = Float[np.ndarray, " tokens"]


class LanguageModel(Protocol):
    """Assigns a log-probability to every predicted token."""

    vocabulary: Vocabulary

    def score(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """For each document the log-probability (nats) of every predicted token, in order."""


class ScoredStates(NamedTuple):
    """The predicted tokens of a document."""

    log_p: Floats
    h: Float[Tensor, "tokens hidden_dim"]
    """The core's state before each token."""


class MentionEmbeddings(NamedTuple):
    """The embeddings of every mention's entity after the mention."""

    row: Int[np.ndarray, " mentions"]
    x: Float[Tensor, "mentions embedding_dim"]
    y: Float[Tensor, "mentions hidden_dim"]


class Scorer:
    """A model and its vocabulary."""

    def __init__(self, model: DynamicTextModel, vocabulary: Vocabulary) -> None:
        self.model = model
        self.vocabulary = vocabulary

    @classmethod
    def load(cls, path: Path | str) -> "Scorer":
        """Load a checkpoint, or the best one of a run folder."""
        return cls(*from_pretrained(best_of(Path(path))))

    def score(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """For each document the log-probability (nats) of every predicted token, in order."""
        for found in self._scored(documents, states=False):
            yield found.log_p

    def states(self, documents: Iterable[AnonymizedDocument]) -> Iterator[ScoredStates]:
        """The same with the core's states."""
        return self._scored(documents, states=True)

    def complete(
        self, documents: Iterable[tuple[AnonymizedDocument, Sequence[Gap]]]
    ) -> Iterator[Completions]:
        """Every candidate in every gap of each document, for the cloze test."""
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH)):
            texts, gaps = zip(*batch, strict=True)
            with _evaluating(self.model):
                yield from complete(
                    self.model, self.vocabulary, [text.sentences for text in texts], gaps
                )

    def mention_embeddings(
        self, documents: Iterable[EncodedDocument]
    ) -> Iterator[MentionEmbeddings]:
        """x_e and y_e after every mention of every document."""
        if self.model.config.variant == "baseline":
            raise ValueError(
                "the model is a baseline, so its entities have no embeddings of their own: "
                "expected a model with dynamic embeddings"
            )
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH)):
            yield from _embed_mentions(self.model, batch)

    def _scored(
        self, documents: Iterable[AnonymizedDocument], *, states: bool
    ) -> Iterator[ScoredStates]:
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH)):
            encoded = [encode(document, self.vocabulary) for document in batch]
            pieces: list[list[tuple[Floats, Tensor]]] = [[] for _ in batch]
            state = self.model.initial_state(len(batch))
            with _evaluating(self.model), torch.no_grad():
                for text in windows(
                    [rows.sentences for rows in encoded],
                    SENTENCES,
                    [rows.evictions for rows in encoded],
                ):
                    window = self.model.plan(
                        text.sentences, text.continues, evictions=text.evictions
                    )
                    found = read(self.model, window, state.select(text.kept))
                    state = found.after
                    log_p = np.concatenate(
                        [scores.log_p.cpu().numpy() for _, scores in scored(self.model, found)]
                    ).astype(np.float64)
                    places = window.layout.read[window.layout.predicting if states else []]
                    h = found.h[indices(np.asarray(places, dtype=np.int64), found.h)]
                    sizes = window.layout.predicted
                    each = torch.split(h, sizes.tolist()) if states else [h] * len(sizes)
                    values = np.split(log_p, np.cumsum(sizes)[:-1])
                    for document, piece in zip(
                        text.documents, zip(values, each, strict=True), strict=True
                    ):
                        pieces[document].append(piece)
            for found_pieces, rows in zip(pieces, encoded, strict=True):
                log_ps, hs = zip(*found_pieces, strict=True)
                yield _by_token(ScoredStates(np.concatenate(log_ps), torch.cat(hs)), rows.widths)


def _by_token(scored: ScoredStates, widths: Sequence[Sequence[int]]) -> ScoredStates:
    """Add up the pieces of each token, if tokens have several."""
    if not widths:
        return scored
    first = first_rows([width for sentence in widths for width in sentence])
    h = scored.h[indices(first, scored.h)] if len(scored.h) else scored.h
    return ScoredStates(np.add.reduceat(scored.log_p, first), h)


def first_rows(widths: Sequence[int]) -> Int[np.ndarray, " tokens"]:
    """The index of the first of each token's rows."""
    return np.cumsum([0, *widths[:-1]])


@contextmanager
def _evaluating(model: DynamicTextModel) -> Iterator[None]:
    """Without dropout; the model returns to its mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@torch.no_grad()
def _embed_mentions(
    model: DynamicTextModel, documents: Sequence[EncodedDocument]
) -> list[MentionEmbeddings]:
    pieces: list[list[MentionEmbeddings]] = [[] for _ in documents]
    state = model.initial_state(len(documents))
    with _evaluating(model):
        for text in windows(documents, SENTENCES):
            window = model.plan(text.sentences, text.continues, every_context=True)
            found = read(model, window, state.select(text.kept))
            state, merges = found.after, window.merges
            rows = row_of_entity(merges.entity)
            d = found.d.index_select(0, indices(merges.state, found.d))
            x, y = model.x.entity(indices(rows, d), d), model.y_entity(indices(rows, d), d)
            for i, document in enumerate(text.documents):
                own = np.nonzero(merges.document == i)[0]
                at = indices(own, d)
                pieces[document].append(
                    MentionEmbeddings(rows[own], x.index_select(0, at), y.index_select(0, at))
                )
    return [
        MentionEmbeddings(
            np.concatenate([piece.row for piece in found]),
            torch.cat([piece.x for piece in found]),
            torch.cat([piece.y for piece in found]),
        )
        for found in pieces
    ]
