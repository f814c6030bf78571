"""Lending: a row of the memory changes hands (`corpus.rows` says when).

The newcomer's d is the initial state; one that returns gets back what it remembered when it lost
its row. Nothing else of a reading state changes, so training, scoring and reading are as ever
between two loans.

A loan takes place at a mention, and what a model says of the words before it may not know of it. So
a sentence with k loans is scored k + 1 times side by side, with the first 0, 1, ... k of them done;
each word counts as read with the loans up to it.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.rows import Loan
from dntm.corpus.vocabulary import entity_rows
from dntm.model.cache import History
from dntm.model.fast.read import Read, predict, read, recall
from dntm.model.language_model import DynamicTextModel
from dntm.model.reading_state import ReadingState
from dntm.model.salience import Mentions


class _Memory(NamedTuple):
    d: Float[Tensor, " state_dim"]
    since: int
    """The sentence of the last mention, and how often there were some (salience)."""
    times: int


class Kept:
    """What those entities of one document remember that have no row at present."""

    def __init__(self, initial: Float[Tensor, " state_dim"]) -> None:
        self._initial = initial
        self._memories: dict[int, _Memory] = {}

    @classmethod
    def of(cls, model: DynamicTextModel) -> "Kept":
        """Nobody has lost a row yet."""
        return cls(model.initial_state(1).memory[0, 0])

    def copy(self) -> "Kept":
        """The same, to go on from here more than once."""
        other = Kept(self._initial)
        other._memories = dict(self._memories)
        return other

    def detach(self) -> None:
        """Cut the memories off from their gradients, as `ReadingState.detach` does."""
        self._memories = {e: m._replace(d=m.d.detach()) for e, m in self._memories.items()}

    def lend(
        self, state: ReadingState, loans: Iterable[Loan], sentence: int, document: int = 0
    ) -> ReadingState:
        """The state of a batch after these loans of one of its documents, before a sentence."""
        memory = state.memory.clone()
        mentions, history = state.mentions, state.history
        if mentions is not None:
            mentions = Mentions(mentions.ago.copy(), mentions.times.copy())
        for loan in loans:
            row = loan.row - 1
            ago = times = 0
            if mentions is not None:
                ago, times = int(mentions.ago[document, row]), int(mentions.times[document, row])
            self._memories[loan.former] = _Memory(
                memory[document, row].clone(), sentence - ago, times
            )
            d, since, times = self._memories.pop(loan.entity, _Memory(self._initial, sentence, 0))
            memory[document, row] = d
            if mentions is not None:
                mentions.ago[document, row] = sentence - since
                mentions.times[document, row] = times
            history = _lent(history, loan, document)
        return replace(state, memory=memory, mentions=mentions, history=history)


def _lent(
    history: tuple[History, ...] | None, loan: Loan, document: int
) -> tuple[History, ...] | None:
    if history is None:
        return None
    return (*history[:document], history[document].lent(loan), *history[document + 1 :])


class Trace(NamedTuple):
    """What a model says of sentences."""

    scores: list[Float[np.ndarray, " predicted"]]
    """Log-probabilities (nats) of each document's predicted tokens."""
    entropies: list[Float[np.ndarray, " predicted"]]
    """Entropy (nats) of the distribution that each of them was drawn from."""
    begins: Float[Tensor, "sentences entities context_dim"]
    """d of every row as each sentence begins; with loans, once these are done."""
    state: ReadingState
    """After them."""


AT_ONCE = 64
"""Tokens whose distributions are in memory at the same time."""


@torch.no_grad()
def trace(
    model: DynamicTextModel, documents: Sequence[Sequence[Sequence[int]]], state: ReadingState
) -> Trace:
    """Read some sentences (rows) of each document; distributions are made a few at a time."""
    window = model.plan(documents)
    found = read(model, window, state)
    scores, entropies = _predicted(model, found, np.arange(len(window.layout.targets)))
    begins = found.d[torch.from_numpy(window.known).to(found.d.device)]
    ends = np.cumsum(window.layout.predicted)[:-1]
    return Trace(np.split(scores, ends), np.split(entropies, ends), begins, found.after)


@torch.no_grad()
def trace_loans(
    model: DynamicTextModel,
    rows: Sequence[int],
    loans: Sequence[Loan],
    state: ReadingState,
    kept: Kept,
    *,
    sentence: int,
) -> Trace:
    """Read a sentence (rows) in which rows change hands; `state` is that of its one document."""
    states = [state]
    for loan in loans:
        states.append(kept.lend(states[-1], [loan], sentence))
    window = model.plan([[rows]] * len(states))
    found = read(model, window, _together(states))
    tokens = len(rows) - 1
    bounds = pairwise([0, *(loan.position for loan in loans), tokens])
    chosen = [done * tokens + np.arange(a, b) for done, (a, b) in enumerate(bounds)]
    scores, entropies = _predicted(model, found, np.concatenate(chosen))
    begins = found.d[torch.from_numpy(window.known[-1:]).to(found.d.device)]
    return Trace([scores], [entropies], begins, found.after.select([len(loans)]))


def _predicted(
    model: DynamicTextModel, found: Read, chosen: Int[np.ndarray, " chosen"]
) -> tuple[Float[np.ndarray, " chosen"], Float[np.ndarray, " chosen"]]:
    """Log-probability and entropy of some of the tokens that a window predicts."""
    layout = found.window.layout
    h, dynamic = predict(model, found, layout.predicting[chosen])
    targets = torch.from_numpy(layout.targets[chosen]).to(h.device)
    scores, entropies = h.new_empty(2, len(h))
    for start in range(0, len(h), AT_ONCE):
        chunk = slice(start, start + AT_ONCE)
        logits, exp = _workspace(model.output.b, len(h[chunk]))
        torch.addmm(model.output.b.unsqueeze(1), model.output.y.weight, h[chunk].t(), out=logits)
        if dynamic is not None:
            logits[entity_rows(dynamic.shape[1])] += dynamic[chunk].t()
        logits -= logits.amax(0)
        total = torch.exp(logits, out=exp).sum(0)
        picked = logits.gather(0, targets[chunk].unsqueeze(0)).squeeze(0)
        scores[chunk] = picked - total.log()
        entropies[chunk] = total.log() - exp.mul_(logits).sum(0) / total
        if cached := recall(model, found, layout.predicting[chosen[chunk]]):
            log_p = cached.distribution((logits - total.log()).t())
            scores[chunk] = log_p.gather(1, targets[chunk].unsqueeze(1)).squeeze(1)
            entropies[chunk] = torch.special.entr(log_p.exp()).sum(1)
    return scores.cpu().numpy(), entropies.cpu().numpy()


_WORKSPACES = threading.local()


def _workspace(like: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
    """Two tables of vocabulary by tokens, the same memory every time.

    Large blocks that come and go among small ones that stay break up the heap: a novel's reading
    took twice the memory at its end.
    """
    key = (len(like), like.dtype, like.device)
    tables: dict[tuple[object, ...], Tensor] = getattr(_WORKSPACES, "tables", {})
    if key not in tables:
        tables = _WORKSPACES.tables = {key: like.new_empty(2, len(like) * AT_ONCE)}
    logits, exp = tables[key][:, : len(like) * tokens]
    return logits.view(-1, tokens), exp.view(-1, tokens)


def _together(states: Sequence[ReadingState]) -> ReadingState:
    """States of one document each as those of a batch."""
    mentions = None
    if (first := states[0].mentions) is not None:
        found = [state.mentions or first for state in states]
        mentions = Mentions(*(np.concatenate(column) for column in zip(*found, strict=True)))
    current = [state.current for state in states if state.current is not None]
    return ReadingState(
        torch.cat([state.h for state in states]),
        torch.cat([state.c for state in states]),
        torch.cat([state.memory for state in states]),
        mentions,
        tuple(h for state in states for h in state.history or ()) or None,
        tuple(p for state in states for p in state.past or ()) or None,
        torch.cat(current) if current else None,
    )
