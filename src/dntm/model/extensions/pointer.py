"""Pointer: every earlier token of the document is an additional row of the output layer.

    p(w_{t+1} = w) ~ exp(z_w) + sum over i < t with w_{i+1} = w of exp(a_i),   z_w = h_t . y_w + b_w

    a_i = theta h_t . h_i + (W_q h_t) . (W_k h_i)       similar contexts
        + kappa [w_i = w_t]                             the same preceding word or entity
        + (W_v h_t + v) . x_{w_{i+1}}                   whether the copied word fits here
        + gamma z_{w_{i+1}}                             for an entity, its own logit
        + r_{t - i} + u . h_t + b                       age, and whether to copy at all

Words and copies share one softmax, as in CopyNet (Gu et al. 2016), so there is no mixture weight to
tune. kappa has one value after words and one after entities; the latter favors what followed
earlier mentions of the same entity. r has one value per power of two. Gradients do not flow into x
and z. h_t is the query's h, h_i the core's. z of an entity includes the terms applied before this
one.

The pointer is a learned neural cache (Grave et al. 2017): it stores the exact words of the
document, which d_e does not. It is initialized close to a neural cache (theta = .3, kappa = 1.5,
gamma = .3, all else 0).

The document cache holds every predicted token of a document so far. Entry i has the key h_i, the
token w_i that was just read, and the value w_{i+1} that followed. Position t sees the entries i < t
of its document, <eos> included, up to the last `SIZE`. When an entity is evicted
(`corpus.entity_slots`), its entries are hidden until it has a slot again.

Departure: the paper has no such term. `--model.extensions pointer` adds it to any variant.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.entity_slots import NOBODY
from dntm.corpus.vocabulary import UNK, entity_rows, row_of_entity
from dntm.model.core import CarriedState
from dntm.model.fast.layout import indices
from dntm.model.fast.window import Window
from dntm.model.output_layer import CopyLogits, Query, entity_columns
from dntm.model.term import Observation, Term

DIM = 64
"""Rows of W_q and W_k."""
AGES = 10
"""Rows of r: 1, 2 or 3, 4 to 7, ..., 512 and more tokens ago."""
_AGE = np.array([0, *(min(age.bit_length(), AGES) - 1 for age in range(1, 2**AGES))], np.int32)
"""The row of r for every age; larger ages have the last."""
SIZE = 10_000
"""Number of tokens of a document that are kept."""
_HIDDEN = -1e30
"""Added to the logits of entries that a position cannot see, however large they are."""

Entries = tuple[Float[Tensor, "_ hidden_dim"], Int[np.ndarray, "2 _"]]
"""Keys, and the rows of the values and of the tokens before them; -e for an evicted entity e."""


@dataclass(frozen=True, slots=True)
class CacheState(CarriedState):
    """The entries of each document, one part per window; later states share the parts."""

    documents: tuple[tuple[Entries, ...], ...]

    def after(self, window: Window, h: Float[Tensor, "places hidden_dim"]) -> "CacheState":
        """The state after a window."""
        found = []
        for number, before in enumerate(self.documents):
            parts = before
            own, rows = _entries(window, number)
            if not len(own):
                found.append(parts)
                continue
            if any(change.document == number for change in window.changes):
                *_, (_, labels) = _labels(window, number, parts, own, rows)
                ends = np.cumsum([len(keys) for keys, _ in parts], dtype=np.int64)
                *earlier, rows = np.split(labels, ends, axis=1)
                parts = tuple((keys, old) for (keys, _), old in zip(parts, earlier, strict=True))
            keys = h.detach()[indices(window.layout.read[own], h)]
            found.append(_forget((*parts, (keys, rows))))
        return CacheState(tuple(found))


def _forget(parts: tuple[Entries, ...]) -> tuple[Entries, ...]:
    """The parts that reach into the last `SIZE` entries."""
    sizes = [len(keys) for keys, _ in parts]
    later = np.cumsum(sizes[::-1])[::-1] - sizes
    return tuple(part for part, n in zip(parts, later, strict=True) if n < SIZE)


def _entries(
    window: Window, document: int
) -> tuple[Int[np.ndarray, " own"], Int[np.ndarray, "2 own"]]:
    """Positions of a document's new entries, and the rows of their values and tokens."""
    layout = window.layout
    inside = np.flatnonzero(layout.document[layout.sentence[layout.predicting]] == document)
    own = layout.predicting[inside]
    return own, np.stack([layout.targets[inside], layout.tokens[layout.read[own]]])


def _labels(
    window: Window,
    document: int,
    parts: Sequence[Entries],
    own: Int[np.ndarray, " own"],
    rows: Int[np.ndarray, "2 own"],
) -> Iterator[tuple[int, Int[np.ndarray, "2 entries"]]]:
    """The rows of all entries from a position on; once more after each change of a slot.

    The entries of an evicted entity lose their row, those of a restored one get one again.
    """
    labels = np.concatenate([*(part for _, part in parts), rows], axis=1)
    yield 0, labels
    for change in window.changes:
        if change.document == document:
            row = row_of_entity(change.slot + 1)
            # Values predicted before the change, and tokens read up to it.
            until = [[np.sum(own < change.token)], [np.sum(own <= change.token)]]
            past = np.arange(labels.shape[1]) < labels.shape[1] - len(own) + np.array(until)
            if change.evicted != NOBODY:
                labels = np.where(past & (labels == row), -change.evicted, labels)
            labels = np.where(labels == -change.entity, row, labels)
            yield change.token, labels


class CacheEntries(NamedTuple):
    """Some positions of one document, and the entries they look up."""

    chosen: slice
    """Which of the requested positions."""
    keys: tuple[Float[Tensor, "_ hidden_dim"], ...]
    """h_i of every entry, in parts, so that they need not be copied."""
    values: Int[Tensor, " entries"]
    """The row of w_{i+1}; negative for an evicted entity."""
    tokens: Int[np.ndarray, " entries"]
    """The row of w_i."""
    current: Int[np.ndarray, " positions"]
    """The row of w_t."""
    seen: Int[np.ndarray, " positions"]
    """The number of entries before each position: entry i has the age `seen` - i."""


def lookup(
    window: Window,
    before: CacheState,
    h: Float[Tensor, "places hidden_dim"],
    positions: Int[np.ndarray, " positions"],
) -> Iterator[CacheEntries]:
    """What rising positions look up: per document, and again after each of its slot changes."""
    layout = window.layout
    document = layout.document[layout.sentence[positions]]
    for number in np.unique(document).tolist():
        parts = before.documents[number]
        own, rows = _entries(window, number)
        first, end = np.searchsorted(document, (number, number + 1)).tolist()
        at = positions[first:end]
        keys = (*(key for key, _ in parts), h[indices(layout.read[own], h)])
        earlier = sum(len(key) for key, _ in parts)
        # An entry is visible once its value has been read.
        seen = earlier + np.searchsorted(own + 1, at, side="right")
        found = list(_labels(window, number, parts, own, rows))
        cuts = np.searchsorted(at, [start for start, _ in found[1:]]).tolist()
        for (_, (values, tokens)), *part in zip(found, [0, *cuts], [*cuts, len(at)], strict=True):
            inside = slice(*part)
            if part[0] == part[1]:
                continue
            yield CacheEntries(
                slice(first + part[0], first + part[1]),
                keys,
                indices(values, h),
                tokens,
                layout.tokens[layout.read[at[inside]]],
                seen[inside],
            )


class _Seen(NamedTuple):
    observation: Observation
    before: CacheState


class Pointer(Term):
    """The parameters of a_i."""

    copies_unknown = True
    """Whether <unk> is copied. False in a reader with a spelling, because two occurrences of <unk>
    can be different words."""

    def __init__(self, entities: int, hidden_dim: int, embedding_dim: int) -> None:
        super().__init__()
        self.entities = entities
        self.theta = nn.Parameter(torch.tensor(0.3))
        self.kappa = nn.Parameter(torch.full((2,), 1.5))
        self.gamma = nn.Parameter(torch.tensor(0.3))
        self.W_q = nn.Parameter(torch.empty(DIM, hidden_dim))
        self.W_k = nn.Parameter(torch.zeros(DIM, hidden_dim))
        self.W_v = nn.Parameter(torch.zeros(embedding_dim, hidden_dim))
        self.v = nn.Parameter(torch.zeros(embedding_dim))
        self.r = nn.Parameter(torch.zeros(AGES))
        self.u = nn.Parameter(torch.zeros(hidden_dim))
        self.b = nn.Parameter(torch.tensor(-4.0))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw W_q; with the other values, the pointer starts as a cache with a small weight."""
        nn.init.normal_(self.W_q, std=self.W_q.shape[1] ** -0.5, generator=generator)

    def initial(self, documents: int) -> CacheState:
        """No entries."""
        return CacheState(((),) * documents)

    def observe(self, observation: Observation, state: CacheState) -> tuple[_Seen, CacheState]:
        """Append the window to the cache."""
        return _Seen(observation, state), state.after(observation.window, observation.h)

    def forward(self, query: Query, seen: _Seen, positions: Int[np.ndarray, " positions"]) -> Query:
        """Add the entries that each position sees as copies."""
        if not len(positions):
            return query
        observation, before = seen
        z = observation.output.entity_logits(query, self.entities)
        parts = []
        for entries in lookup(observation.window, before, observation.h, positions):
            part = entries.chosen
            logits = self.logits(entries, query.h[part], observation.x, z[part])
            parts.append((logits, entries.values))
        return replace(query, copies=CopyLogits(tuple(parts)))

    def logits(
        self,
        entries: CacheEntries,
        h: Float[Tensor, "positions hidden_dim"],
        x: Float[Tensor, "vocabulary embedding_dim"],
        z: Float[Tensor, "positions entities"],
    ) -> Float[Tensor, "positions entries"]:
        """a_i of every entry at each position; z are the logits of all entities."""
        values, entities = entries.values, entity_rows(z.shape[1])
        queries = self.theta * h + (h @ self.W_q.t()) @ self.W_k
        found = torch.cat([queries @ keys.t() for keys in entries.keys], 1)
        # The rest in place: positions times entries may be millions.
        words, word = torch.unique(values.clamp(min=-1), return_inverse=True)
        vectors = x.detach().index_select(0, words.clamp(min=0))
        fit = torch.addmm(self.v, h, self.W_v.t()) @ vectors.t()
        fit = fit + (h @ self.u + self.b).unsqueeze(1)
        fit.masked_fill_((words < 0) | ((words == UNK) & (not self.copies_unknown)), _HIDDEN)
        found.add_(fit.index_select(1, word))
        after_entity = (entries.current >= entities.start) & (entries.current < entities.stop)
        kappa = self.kappa[torch.from_numpy(after_entity.astype(np.int64)).to(h.device)]
        pairs = np.nonzero(entries.tokens == entries.current[:, None])
        position, entry = (indices(p, h) for p in pairs)
        found.index_put_((position, entry), kappa.index_select(0, position), accumulate=True)
        column, entity = entity_columns(values, z.shape[1])
        found.index_add_(1, column, self.gamma * z.detach().index_select(1, entity))
        return found.add_(self._ages(entries.seen, len(values)))

    def _ages(
        self, seen: Int[np.ndarray, " positions"], entries: int
    ) -> Float[Tensor, "positions entries"]:
        """r_{t - i} of each entry; `_HIDDEN` if it is still to come or too old.

        The age `seen` - i makes every row of the result a window of one vector.
        """
        last = seen.max()
        age = last - np.arange(last - seen.min() + entries)
        r = self.r.index_select(0, indices(_AGE[np.clip(age, 0, len(_AGE) - 1)], self.r))
        r = r.masked_fill(torch.from_numpy((age < 1) | (age > SIZE)).to(r.device), _HIDDEN)
        return r.unfold(0, entries, 1).index_select(0, indices(last - seen, r))
