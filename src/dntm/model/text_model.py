"""TextModel: a trained model as evaluation knows one, documents in and log-probabilities out."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, tee
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.rows import DocumentRows, encode
from dntm.corpus.vocabulary import Vocabulary, row_of_entity
from dntm.evaluation.cloze import ClozeText, Filled
from dntm.evaluation.records import Floats, Records
from dntm.evaluation.word_baselines import MentionEmbeddings
from dntm.model.cache import C, Cache, tune
from dntm.model.checkpoint import best_of, from_pretrained
from dntm.model.fast.entity_memory import indices
from dntm.model.fast.filling import Blanks, fill
from dntm.model.fast.read import read
from dntm.model.fast.window import EncodedDocument, windows
from dntm.model.history import SIZE, History
from dntm.model.language_model import DynamicTextModel
from dntm.model.naming import nameable

BATCH = 32
"""Documents read side by side; what comes out does not depend on it."""
SENTENCES = 20
"""Sentences of each document in a window; what comes out does not depend on it."""
CLOZE_BATCH = 8
"""The same as BATCH, where each document has many readings."""


class TextModel:
    """A model with its vocabulary, ready to read documents."""

    def __init__(self, model: DynamicTextModel, vocabulary: Vocabulary) -> None:
        self.model = model
        self.vocabulary = vocabulary

    @classmethod
    def load(cls, path: Path | str, *, cache: bool = False) -> "TextModel":
        """Load a checkpoint, or the best one of a run folder; with the cache it was tuned for."""
        folder = best_of(Path(path))
        loaded = cls(*from_pretrained(folder))
        if cache:
            loaded.model.cache = Cache.load(folder)
            if loaded.model.cache is None:
                raise ValueError(
                    f"{folder} has no cache.json: dntm evaluate {path} --cache tunes a cache for it"
                )
        return loaded

    def tune_cache(self, documents: Iterable[AnonymizedDocument], kind: type[C]) -> C:
        """The setting of this kind of cache under which these documents are likeliest.

        Those whose rows are lent, or that are longer than the cache, are left out.
        """
        before, self.model.cache = self.model.cache, Cache(theta=0.0, weight=0.0)
        encoded = (encode(document, self.vocabulary) for document in documents)
        fitting = (d for d in encoded if not any(d.loans) and _tokens(d) <= SIZE)
        scores: list[Floats] = []
        histories: list[History] = []
        try:
            while batch := list(islice(fitting, BATCH)):
                found = _score_batch(self.model, batch)
                scores += [values for values, _ in found]
                histories += [history for _, history in found if history is not None]
        finally:
            self.model.cache = before
        if not scores:
            raise ValueError("no document is left to tune a cache on")
        return tune(scores, histories, kind)

    def score(self, document: AnonymizedDocument) -> Floats:
        """The log-probability (nats) of every predicted token of a document, in reading order."""
        return next(self.score_all([document]))

    def score_all(self, documents: Iterable[AnonymizedDocument]) -> Iterator[Floats]:
        """The same for many documents, several at once."""
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH)):
            encoded = [encode(document, self.vocabulary) for document in batch]
            yield from (scores for scores, _ in _score_batch(self.model, encoded))

    def fill_all(self, texts: Iterable[ClozeText]) -> Iterator[Filled]:
        """Every candidate in every gap of each text, for the cloze test."""
        if (kind := self.model.config.kind) != "dntm":
            raise ValueError(f"the model is of kind {kind}: the cloze test is for kind dntm alone")
        if self.model.cache is not None:
            raise ValueError("the model has a cache: the cloze test is for models without one")
        remaining = iter(texts)
        while batch := list(islice(remaining, CLOZE_BATCH)):
            yield from _fill_batch(self, batch)

    def nameable(self) -> Bool[np.ndarray, " vocabulary"]:
        """Which rows an entity can be named by."""
        return nameable(self.vocabulary)

    def word_embeddings(
        self,
    ) -> tuple[Float[Tensor, "vocabulary embedding_dim"], Float[Tensor, "vocabulary hidden_dim"]]:
        """x_w and y_w of every row."""
        return self.model.x.weight.detach(), self.model.output.y.weight.detach()

    def mention_embeddings(
        self, documents: Iterable[EncodedDocument]
    ) -> Iterator[MentionEmbeddings]:
        """For every mention of every document x_e and y_e after it."""
        if self.model.config.variant == "baseline":
            raise ValueError(
                "the model is a baseline, whose entities have no meaning of their own: "
                "expected one with dynamic embeddings"
            )
        remaining = iter(documents)
        while batch := list(islice(remaining, BATCH)):
            yield from _embed_mentions(self.model, batch)

    def records(self, documents: Iterable[AnonymizedDocument]) -> Records:
        """One record per predicted token."""
        first, second = tee(documents)
        return Records.of(first, self.score_all(second))


@contextmanager
def _evaluating(model: DynamicTextModel) -> Iterator[None]:
    """Without dropout; afterwards the model is in the mode it was in."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _tokens(document: DocumentRows) -> int:
    return sum(len(sentence) - 1 for sentence in document.sentences)


def _score_batch(
    model: DynamicTextModel, documents: Sequence[DocumentRows]
) -> list[tuple[Floats, History | None]]:
    """Each document's log-probabilities and, where the model looks back, its history."""
    pieces: list[list[Floats]] = [[] for _ in documents]
    histories: list[History | None] = [None for _ in documents]
    state = model.initial_state(len(documents))
    sentences, loans = [d.sentences for d in documents], [d.loans for d in documents]
    with _evaluating(model):
        for text in windows(sentences, SENTENCES, loans):
            window = model.plan(text.sentences, text.continues, loans=text.loans)
            scored, state = model.score(window, state.select(text.kept))
            for number, (document, values) in enumerate(zip(text.documents, scored, strict=True)):
                pieces[document].append(values.astype(np.float64))
                histories[document] = state.history[number] if state.history else None
    return list(zip(map(np.concatenate, pieces), histories, strict=True))


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
            state = found.after
            rows = row_of_entity(found.merges.entity)
            d = found.d.index_select(0, indices(found.merges.state, found.d))
            x = model.x.entity(indices(rows, d), d)
            y = model.output.y.entity(indices(rows, d), d)
            for i, document in enumerate(text.documents):
                own = np.nonzero(found.merges.document == i)[0]
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


def _fill_batch(text_model: TextModel, texts: Sequence[ClozeText]) -> list[Filled]:
    model, encode = text_model.model, text_model.vocabulary.encode
    documents = [[encode(s) for s in text.document.sentences] for text in texts]
    pieces = [[(np.zeros(0), np.zeros(0))] for _ in texts]
    state = model.initial_state(len(texts))
    start = 0
    with _evaluating(model), torch.no_grad():
        for text in windows(documents, SENTENCES):
            # Planned as if all documents went on: whoever is not mentioned again is a candidate.
            found = read(model, model.plan(text.sentences), state.select(text.kept), cells=True)
            state = found.after
            blanks, sizes = _blanks([texts[d] for d in text.documents], text.sentences, start)
            ends = np.cumsum(sizes)[:-1]
            scores = (np.split(values, ends) for values in fill(model, found, blanks))
            for document, both in zip(text.documents, zip(*scores, strict=True), strict=True):
                pieces[document].append(both)
            start += SENTENCES
    return [Filled(*map(np.concatenate, zip(*found, strict=True))) for found in pieces]


def _blanks(
    texts: Sequence[ClozeText], window: Sequence[EncodedDocument], start: int
) -> tuple[Blanks, list[int]]:
    """The gaps of a window that begins at sentence `start`; how many candidates a text has."""
    token: list[int] = []
    gap: list[int] = []
    entity: list[int] = []
    sizes, tokens = [], 0
    for text, sentences in zip(texts, window, strict=True):
        before = len(entity)
        begins = np.cumsum([tokens, *map(len, sentences)])
        for found in text.gaps:
            if start <= found.sentence < start + len(sentences):
                gap.extend([len(token)] * len(found.candidates))
                entity.extend(found.candidates)
                token.append(int(begins[found.sentence - start]) + 1 + found.position)
        tokens = int(begins[-1])
        sizes.append(len(entity) - before)
    return Blanks(*(np.array(column, dtype=np.int64) for column in (token, gap, entity))), sizes
