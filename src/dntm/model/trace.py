"""Trace: what a model says of every token of a window, with the entropy of its expectations."""

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import entity_rows
from dntm.model.fast.entity_memory import indices
from dntm.model.fast.read import Read, mixtures, predict, read
from dntm.model.fast.window import Window
from dntm.model.history import Mixture
from dntm.model.language_model import DynamicTextModel
from dntm.model.reading_state import ReadingState


class Trace(NamedTuple):
    """What a model says of sentences."""

    scores: list[Float[np.ndarray, " predicted"]]
    """Log-probabilities (nats) of each document's predicted tokens."""
    entropies: list[Float[np.ndarray, " predicted"]]
    """Entropy (nats) of the distribution that each of them was drawn from."""
    begins: Float[Tensor, "sentences entities context_dim"]
    """d of every row as each sentence begins, once what changes hands in it has done so."""
    ends: Float[Tensor, "sentences entities context_dim"]
    """d of every row as each sentence ends."""
    state: ReadingState
    """After them."""


AT_ONCE = 512
"""Tokens whose distributions are made at the same time,"""
ROWS = 1024
"""so many rows of the vocabulary after the other: what is worked on stays in the cache."""
LOOKING = 128
"""Tokens that look back on what was said at the same time."""


@torch.no_grad()
def trace(model: DynamicTextModel, window: Window, state: ReadingState) -> Trace:
    """Read a window; distributions are made a few at a time."""
    found = read(model, window, state)
    scores, entropies = _predicted(model, found)
    begins, ends = (found.d[indices(rows, found.d)] for rows in (window.known, _ends(window)))
    cuts = np.cumsum(window.layout.predicted)[:-1]
    return Trace(np.split(scores, cuts), np.split(entropies, cuts), begins, ends, found.after)


def _ends(window: Window) -> Int[np.ndarray, "sentences entities"]:
    """Table row of each d_e after each sentence, before anything changes hands in the next one."""
    layout = window.layout
    ends = np.roll(window.known, -1, axis=0)
    for change in window.changes:
        ends[layout.sentence[change.begins] - 1, change.row] = change.before
    last = np.flatnonzero(np.diff(layout.document, append=-1))
    ends[last] = window.memory[layout.document[last]]
    return ends


class _Scored(NamedTuple):
    """What the output layer says of some tokens."""

    scores: Float[Tensor, " tokens"]
    entropies: Float[Tensor, " tokens"]
    log_sum: Float[Tensor, " tokens"]
    """Log sum exp of all logits."""


def _predicted(
    model: DynamicTextModel, found: Read
) -> tuple[Float[np.ndarray, " predicted"], Float[np.ndarray, " predicted"]]:
    """Log-probability and entropy of every token that a window predicts."""
    layout = found.window.layout
    h, dynamic = predict(model, found, layout.predicting)
    targets = indices(layout.targets, h)
    pieces = []
    for start in range(0, len(h), AT_ONCE):
        chunk = slice(start, start + AT_ONCE)
        positions, terms = layout.predicting[chunk], None if dynamic is None else dynamic[chunk]
        plain = _scored(model, h[chunk], terms, targets[chunk])
        if model.pointer is None and model.cache is None:
            pieces.append((plain.scores, plain.entropies))
            continue
        for first in range(0, len(positions), LOOKING):
            part = slice(first, first + LOOKING)
            some = _Scored(*(values[part] for values in plain))
            its_terms, its_h = None if terms is None else terms[part], h[chunk][part]
            said = [*mixtures(model, found, positions[part], its_h, its_terms, some.log_sum)]
            scores = some.scores
            for mixture in said:
                scores = mixture.score(scores, targets[chunk][part])
            pieces.append((scores, _entropies(model, said, its_h, its_terms, some)))
    all_scores, all_entropies = (torch.cat(column) for column in zip(*pieces, strict=True))
    return all_scores.cpu().numpy(), all_entropies.cpu().numpy()


def _entropies(
    model: DynamicTextModel,
    said: Sequence[Mixture],
    h: Float[Tensor, "tokens hidden_dim"],
    dynamic: Float[Tensor, "tokens entities"] | None,
    plain: _Scored,
) -> Float[Tensor, " tokens"]:
    """The entropies once what was said is mixed in: only the rows that were said are looked at.

    With entr(p) = -p log p, and since each other row keeps 1 - lambda of what it had,

        H <- (1 - lambda) H + entr(1 - lambda) + sum of entr(p after) - entr((1 - lambda) p)
    """
    entr, found, start = torch.special.entr, [], 0
    for number, (shares, rows) in enumerate(said[0].parts):
        part = slice(start, start := start + len(shares))
        own, column = torch.unique(rows.clamp(min=0), return_inverse=True)
        terms = None if dynamic is None else dynamic[part]
        log_p = model.output.logits_of(h[part], terms, own) - plain.log_sum[part].unsqueeze(1)
        entropy = plain.entropies[part]
        for mixture in said:
            share = torch.zeros_like(log_p).index_add(1, column, mixture.parts[number][0])
            rest, weight = mixture.log_rest[part], mixture.log_weight[part].unsqueeze(1)
            before = log_p + rest.unsqueeze(1)
            log_p = torch.logaddexp(before, share.log() + weight)
            moved = entr(log_p.exp()) - entr(before.exp())
            entropy = rest.exp() * entropy + entr(rest.exp()) + moved.sum(1)
        found.append(entropy)
    return torch.cat(found)


def _scored(
    model: DynamicTextModel,
    h: Float[Tensor, "tokens hidden_dim"],
    dynamic: Float[Tensor, "tokens entities"] | None,
    targets: Int[Tensor, " tokens"],
) -> _Scored:
    """Eq. 1 in passing, some rows of the vocabulary at a time: no distribution is ever whole.

    m = max_w l_w,   z = sum_w exp(l_w - m),   s = sum_w (l_w - m) exp(l_w - m)
    log p(w) = l_w - m - log z,   entropy = log z - s / z
    """
    y, b, columns = model.output.y.weight, model.output.b, h.t().contiguous()
    picked, m, z, s = h.new_zeros(4, len(h))
    for first in range(0, len(y), ROWS):
        block = slice(first, min(first + ROWS, len(y)))
        logits, exp = _workspace(h, block.stop - first, len(h))
        torch.addmm(b[block].unsqueeze(1), y[block], columns, out=logits)
        if dynamic is not None:
            _add_entities(logits, dynamic, first)
        inside = (targets >= first) & (targets < block.stop)
        picked[inside] = logits[targets[inside] - first, inside.nonzero().squeeze(1)]
        highest = logits.amax(0)
        lower = m.sub(m := torch.maximum(m, highest) if first else highest)
        s, z = lower.exp() * (s + lower * z), lower.exp() * z
        logits -= m
        z += torch.exp(logits, out=exp).sum(0)
        s += exp.mul_(logits).sum(0)
    return _Scored(picked - m - z.log(), z.log() - s / z, m + z.log())


def _add_entities(
    logits: Float[Tensor, "rows tokens"], dynamic: Float[Tensor, "tokens entities"], first: int
) -> None:
    """Add the entities' terms to those of their rows that are in a block."""
    rows = entity_rows(dynamic.shape[1])
    begin, end = max(rows.start, first), min(rows.stop, first + len(logits))
    if begin < end:
        logits[begin - first : end - first] += dynamic[:, begin - rows.start : end - rows.start].t()


_WORKSPACES = threading.local()


def _workspace(like: Tensor, rows: int, tokens: int) -> tuple[Tensor, Tensor]:
    """Two tables of so many rows by tokens, the same memory every time.

    Large blocks that come and go among small ones that stay break up the heap: a novel's reading
    took twice the memory at its end.
    """
    key = (like.dtype, like.device)
    tables: dict[tuple[object, ...], Tensor] = getattr(_WORKSPACES, "tables", {})
    if key not in tables:
        tables = _WORKSPACES.tables = {key: like.new_empty(2, ROWS * AT_ONCE)}
    logits, exp = tables[key][:, : rows * tokens]
    return logits.view(rows, tokens), exp.view(rows, tokens)
