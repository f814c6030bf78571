"""Scorer: a trained model with its vocabulary, applied to documents.

`LanguageModel` is the protocol through which evaluation uses any model, ours or a baseline.

The cloze test (Section 5.2.3) needs the likelihood of a sentence with each candidate entity in a
gap:

    p(e | w_1 ... w_{t-1})                       the candidate in the gap
    p(w_{t+1} ... w_n | w_1 ... w_{t-1}, e)      the rest of the sentence after it

Each candidate is a copy of the sentence that is read from the state before it, so every core, term
and eviction behaves as in ordinary reading. All copies of a batch of documents are read in
parallel; then each document continues with the true sentence.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument, Gap, Token
from dntm.corpus.entity_slots import SlotAllocator, encode, encode_sentences
from dntm.corpus.vocabulary import Vocabulary, row_of_entity
from dntm.model.checkpoint import best_of, from_pretrained
from dntm.model.fast.layout import indices
from dntm.model.fast.read import Read, read
from dntm.model.fast.window import EncodedDocument, Evictions, windows
from dntm.model.language_model import DynamicTextModel, log_p
from dntm.model.parameters import State

BATCH = 32
"""Documents read in parallel; results do not depend on it."""
SENTENCES = 20
"""Sentences of each document in a window; results do not depend on it."""

TOKENS = 4096
"""Tokens of sentence copies that are read at once."""

Floats = Float[np.ndarray, " tokens"]
Item = TypeVar("Item")
Found = TypeVar("Found")


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
    """x_e and d_e of every mention's entity after the mention."""

    row: Int[np.ndarray, " mentions"]
    x: Float[Tensor, "mentions embedding_dim"]
    d: Float[Tensor, "mentions context_dim"]


class Completions(NamedTuple):
    """Log-likelihoods (nats) for every candidate of every gap of a document, in order."""

    gap: Float[np.ndarray, " candidates"]
    """Of the candidate, given the beginning of the sentence."""
    rest: Float[np.ndarray, " candidates"]
    """Of the words after it and the end of the sentence."""


class _Copy(NamedTuple):
    """A sentence with a candidate in a gap."""

    document: int
    position: int
    tokens: Sequence[Token]


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
        found = self._batched(documents, lambda batch: self._score(batch, states=False))
        return (scored.log_p for scored in found)

    def states(self, documents: Iterable[AnonymizedDocument]) -> Iterator[ScoredStates]:
        """The same with the core's states."""
        return self._batched(documents, lambda batch: self._score(batch, states=True))

    def complete(
        self, documents: Iterable[tuple[AnonymizedDocument, Sequence[Gap]]]
    ) -> Iterator[Completions]:
        """Every candidate in every gap of each document; its gaps are in reading order."""
        return self._batched(documents, self._complete)

    def mention_embeddings(
        self, documents: Iterable[EncodedDocument]
    ) -> Iterator[MentionEmbeddings]:
        """x_e after every mention of every document."""
        return self._batched(documents, self._embed_mentions)

    def _batched(
        self, items: Iterable[Item], compute: Callable[[list[Item]], list[Found]]
    ) -> Iterator[Found]:
        """Compute some documents at a time, without dropout; the model returns to its mode."""
        remaining = iter(items)
        while batch := list(islice(remaining, BATCH)):
            training = self.model.training
            try:
                with torch.no_grad():
                    self.model.eval()
                    found = compute(batch)
            finally:
                self.model.train(training)
            yield from found

    def _read(
        self,
        documents: Sequence[EncodedDocument],
        evictions: Evictions = (),
        *,
        every_context: bool = False,
    ) -> Iterator[tuple[list[int], Read]]:
        """Read documents window by window, with the indices of the documents in each window."""
        state = self.model.initial_state(len(documents))
        for text in windows(documents, SENTENCES, evictions):
            window = self.model.plan(
                text.sentences,
                text.continues,
                evictions=text.evictions,
                every_context=every_context,
            )
            found = read(self.model, window, state.select(text.kept))
            state = found.after
            yield text.documents, found

    def _score(
        self, documents: Sequence[AnonymizedDocument], *, states: bool
    ) -> list[ScoredStates]:
        pieces: list[list[tuple[Floats, Tensor]]] = [[] for _ in documents]
        encoded = [encode(document, self.vocabulary) for document in documents]
        texts, evictions = [r.sentences for r in encoded], [r.evictions for r in encoded]
        for own, found in self._read(texts, evictions):
            layout = found.window.layout
            sizes = layout.predicted
            values = np.split(log_p(self.model, found).astype(np.float64), np.cumsum(sizes)[:-1])
            places = layout.read[layout.predicting if states else layout.predicting[:0]]
            h = found.h[indices(places, found.h)]
            each = torch.split(h, sizes.tolist()) if states else [h] * len(sizes)
            for document, piece in zip(own, zip(values, each, strict=True), strict=True):
                pieces[document].append(piece)
        columns = (zip(*own, strict=True) for own in pieces)
        scored = [ScoredStates(np.concatenate(values), torch.cat(h)) for values, h in columns]
        return [_by_token(own, rows.widths) for own, rows in zip(scored, encoded, strict=True)]

    def _embed_mentions(self, documents: Sequence[EncodedDocument]) -> list[MentionEmbeddings]:
        pieces = [list[MentionEmbeddings]() for _ in documents]
        for texts, found in self._read(documents, every_context=True):
            merges = found.window.merges
            rows = row_of_entity(merges.entity)
            d = found.d.index_select(0, indices(merges.state, found.d))
            x = self.model.x.entity(indices(rows, d), d)
            for i, document in enumerate(texts):
                own = np.nonzero(merges.document == i)[0]
                at = indices(own, d)
                pieces[document].append(MentionEmbeddings(rows[own], x[at], d[at]))
        columns = (zip(*own, strict=True) for own in pieces)
        return [
            MentionEmbeddings(np.concatenate(row), torch.cat(x), torch.cat(d))
            for row, x, d in columns
        ]

    def _complete(
        self, batch: Sequence[tuple[AnonymizedDocument, Sequence[Gap]]]
    ) -> list[Completions]:
        found: list[list[tuple[float, float]]] = [[] for _ in batch]
        slots, texts = self.vocabulary.entities, [document.sentences for document, _ in batch]
        allocators = [SlotAllocator(slots, evicts=d.largest > slots) for d, _ in batch]
        state, active = self.model.initial_state(len(batch)), list(range(len(batch)))
        for s in range(max(map(len, texts))):
            kept = [i for i, d in enumerate(active) if len(texts[d]) > s]
            active, state = [active[i] for i in kept], state.select(kept)
            copies = [
                _Copy(i, gap.position, [*text[: gap.position], e, *text[gap.position + 1 :]])
                for i, d in enumerate(active)
                for text in [texts[d][s]]
                for gap in batch[d][1]
                if gap.sentence == s
                for e in gap.candidates
            ]
            before = [allocators[d] for d in active]
            for some in _cut(copies):
                scored = self._score_copies(some, before, state)
                for copy, scores in zip(some, scored, strict=True):
                    found[active[copy.document]].append((scores[0], scores[1:].sum()))
            true = [encode_sentences([texts[d][s]], self.vocabulary, allocators[d]) for d in active]
            window = self.model.plan(
                [rows.sentences for rows in true], evictions=[rows.evictions for rows in true]
            )
            state = read(self.model, window, state).after
        columns = (np.array(pairs, dtype=np.float64).reshape(-1, 2).T for pairs in found)
        return [Completions(*column) for column in columns]

    def _score_copies(
        self, copies: Sequence[_Copy], allocators: Sequence[SlotAllocator], state: State
    ) -> list[Floats]:
        """For each copy, the log-probabilities from the gap to the end of the sentence."""
        encoded = [
            encode_sentences([copy.tokens], self.vocabulary, allocators[copy.document].copy())
            for copy in copies
        ]
        window = self.model.plan(
            [rows.sentences for rows in encoded],
            [False] * len(copies),
            evictions=[rows.evictions for rows in encoded],
        )
        found = read(self.model, window, state.select([copy.document for copy in copies]))
        predicting, end = [], 0
        for copy, rows in zip(copies, encoded, strict=True):
            # <bos> shifts positions by one, so the token at `position` predicts the gap.
            before = sum(rows.widths[0][: copy.position]) if rows.widths else copy.position
            start, end = end, end + len(rows.sentences[0])
            predicting.append(np.arange(start + before, end - 1))
        scores = log_p(self.model, found, np.concatenate(predicting)).astype(np.float64)
        return np.split(scores, np.cumsum([len(own) for own in predicting])[:-1])


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


def _cut(copies: Sequence[_Copy]) -> Iterator[Sequence[_Copy]]:
    """Consecutive copies, about TOKENS tokens at a time."""
    start, tokens = 0, 0
    for end, copy in enumerate(copies):
        tokens += len(copy.tokens) + 2
        if tokens >= TOKENS:
            yield copies[start : end + 1]
            start, tokens = end + 1, 0
    if start < len(copies):
        yield copies[start:]
