"""Completion: the likelihood of a sentence with each candidate entity in a gap (Section 5.2.3).

    p(e | w_1 ... w_{t-1})                       the candidate in the gap
    p(w_{t+1} ... w_n | w_1 ... w_{t-1}, e)      the rest of the sentence after it

Each candidate is a copy of the sentence that is read from the state before it, so every core, term
and eviction behaves as in ordinary reading. All copies of a batch of documents are read in
parallel; then each document continues with the true sentence.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from dntm.corpus.document import Gap, Token
from dntm.corpus.entity_slots import DocumentRows, SlotAllocator, encode_sentences
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.fast.read import read
from dntm.model.language_model import DynamicTextModel, scored
from dntm.model.parameters import State

TOKENS = 4096
"""Tokens of sentence copies that are read at once."""


class Completions(NamedTuple):
    """Log-likelihoods (nats) for every candidate of every gap of a document, in order."""

    gap: Float[np.ndarray, " candidates"]
    """Of the candidate, given the beginning of the sentence."""
    rest: Float[np.ndarray, " candidates"]
    """Of the words after it and the end of the sentence."""


class _Copy(NamedTuple):
    """A sentence with a candidate in a gap."""

    document: int
    tokens: Sequence[Token]
    position: int


@torch.no_grad()
def complete(
    model: DynamicTextModel,
    vocabulary: Vocabulary,
    documents: Sequence[Sequence[Sequence[Token]]],
    gaps: Sequence[Sequence[Gap]],
) -> list[Completions]:
    """Try every candidate in every gap; the gaps of a document are in reading order."""
    found: list[list[tuple[float, float]]] = [[] for _ in documents]
    entities = [max((t for s in d for t in s if isinstance(t, int)), default=0) for d in documents]
    slots = vocabulary.entities
    allocators = [SlotAllocator(slots, evicts=count > slots) for count in entities]
    state, active = model.initial_state(len(documents)), list(range(len(documents)))
    for s in range(max(map(len, documents), default=0)):
        kept = [i for i, d in enumerate(active) if len(documents[d]) > s]
        active, state = [active[i] for i in kept], state.select(kept)
        copies = [
            _Copy(
                i,
                [*sentence[: gap.position], candidate, *sentence[gap.position + 1 :]],
                gap.position,
            )
            for i, d in enumerate(active)
            for sentence in [documents[d][s]]
            for gap in gaps[d]
            if gap.sentence == s
            for candidate in gap.candidates
        ]
        before = [allocators[d] for d in active]
        for batch in _batches(copies):
            for copy, scores in zip(
                batch, _score(model, vocabulary, batch, before, state), strict=True
            ):
                found[active[copy.document]].append((scores[0], scores[1:].sum()))
        encoded = [encode_sentences([documents[d][s]], vocabulary, allocators[d]) for d in active]
        window = model.plan(
            [rows.sentences for rows in encoded], evictions=[rows.evictions for rows in encoded]
        )
        state = read(model, window, state).after
    columns = (np.array(pairs, dtype=np.float64).reshape(-1, 2).T for pairs in found)
    return [Completions(*column) for column in columns]


def _score(
    model: DynamicTextModel,
    vocabulary: Vocabulary,
    copies: Sequence[_Copy],
    allocators: Sequence[SlotAllocator],
    state: State,
) -> list[Float[np.ndarray, " tokens"]]:
    """For each copy, the log-probabilities from the gap to the end of the sentence."""
    encoded = [
        encode_sentences([copy.tokens], vocabulary, allocators[copy.document].copy())
        for copy in copies
    ]
    window = model.plan(
        [rows.sentences for rows in encoded],
        [False] * len(copies),
        evictions=[rows.evictions for rows in encoded],
    )
    found = read(model, window, state.select([copy.document for copy in copies]))
    lengths = [len(rows.sentences[0]) for rows in encoded]
    starts = np.cumsum([0, *lengths[:-1]])
    # <bos> shifts positions by one, so the token at `position` predicts the gap.
    predicting: list[Int[np.ndarray, " _"]] = [
        np.arange(start + _row(copy.position, rows), start + length - 1)
        for copy, rows, start, length in zip(copies, encoded, starts, lengths, strict=True)
    ]
    parts = scored(model, found, np.concatenate(predicting))
    log_p = np.concatenate([scores.log_p.cpu().numpy() for _, scores in parts]).astype(np.float64)
    return np.split(log_p, np.cumsum([len(own) for own in predicting])[:-1])


def _row(position: int, sentence: DocumentRows) -> int:
    """The row that predicts the token at a position of a single sentence."""
    return sum(sentence.widths[0][:position]) if sentence.widths else position


def _batches(copies: Sequence[_Copy]) -> Iterator[Sequence[_Copy]]:
    """Consecutive copies, about TOKENS tokens at a time."""
    start, tokens = 0, 0
    for end, copy in enumerate(copies):
        tokens += len(copy.tokens) + 2
        if tokens >= TOKENS:
            yield copies[start : end + 1]
            start, tokens = end + 1, 0
    if start < len(copies):
        yield copies[start:]
