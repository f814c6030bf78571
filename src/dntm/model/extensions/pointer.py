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

from collections.abc import Callable, Iterator, Sequence
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
from dntm.model.fast.recurrence import linear
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
                columns = _columns(window, number, parts, own, rows)
                ends = np.cumsum([len(keys) for keys, _ in parts], dtype=np.int64)
                *earlier, rows = np.split(columns.rows[:, columns.last], ends, axis=1)
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


class Columns(NamedTuple):
    """The rows of a document's entries; an entry has one more column for each change of its rows.

    The first columns are those of all entries, the further ones have an `entry`.
    """

    rows: Int[np.ndarray, "2 columns"]
    """Of w_{i+1} and w_i; negative for an evicted entity."""
    last: Int[np.ndarray, " entries"]
    """The last column of each entry."""
    entry: list[int]
    replaced: list[int]
    """The previous column of the entry."""
    since: list[int]
    """The first position that sees the column instead of the previous one."""


def _columns(
    window: Window,
    document: int,
    parts: Sequence[Entries],
    own: Int[np.ndarray, " own"],
    rows: Int[np.ndarray, "2 own"],
) -> Columns:
    """The entries of an evicted entity lose their row, those of a restored one get one again."""
    labels = np.concatenate([*(part for _, part in parts), rows], axis=1)
    found = Columns(labels, np.arange(labels.shape[1]), [], [], [])
    for change in (change for change in window.changes if change.document == document):
        row, before = row_of_entity(change.slot + 1), labels
        # Values predicted before the change, and tokens read up to it.
        until = [[np.sum(own < change.token)], [np.sum(own <= change.token)]]
        past = np.arange(labels.shape[1]) < labels.shape[1] - len(own) + np.array(until)
        if change.evicted != NOBODY:
            labels = np.where(past & (labels == row), -change.evicted, labels)
        labels = np.where(labels == -change.entity, row, labels)
        changed = np.flatnonzero((labels != before).any(0))
        found.entry.extend(changed.tolist())
        found.replaced.extend(found.last[changed].tolist())
        found.since.extend([change.token] * len(changed))
        found.last[changed] = found.rows.shape[1] + np.arange(len(changed))
        found = found._replace(rows=np.append(found.rows, labels[:, changed], 1))
    return found


class CacheEntries(NamedTuple):
    """Some positions of one document, and the entries they look up."""

    chosen: slice
    """Which of the requested positions."""
    at: Int[np.ndarray, " positions"]
    keys: Float[Tensor, "entries hidden_dim"]
    """h_i of every entry."""
    columns: Columns
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
    """What rising positions look up, per document."""
    layout = window.layout
    document = layout.document[layout.sentence[positions]]
    for number in np.unique(document).tolist():
        parts = before.documents[number]
        own, rows = _entries(window, number)
        chosen = slice(*np.searchsorted(document, (number, number + 1)).tolist())
        at, earlier = positions[chosen], sum(len(key) for key, _ in parts)
        yield CacheEntries(
            chosen,
            at,
            torch.cat([*(key for key, _ in parts), h[indices(layout.read[own], h)]]),
            _columns(window, number, parts, own, rows),
            layout.tokens[layout.read[at]],
            # An entry is visible once its value has been read.
            earlier + np.searchsorted(own + 1, at, side="right"),
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
            values = indices(entries.columns.rows[0], z)
            logits = self.logits(entries, values, query.h[part], observation.x, z[part])
            parts.append((logits, values))
        return replace(query, copies=CopyLogits(tuple(parts)))

    def logits(
        self,
        entries: CacheEntries,
        values: Int[Tensor, " columns"],
        h: Float[Tensor, "positions hidden_dim"],
        x: Callable[[Int[Tensor, " rows"]], Float[Tensor, "rows embedding_dim"]],
        z: Float[Tensor, "positions entities"],
    ) -> Float[Tensor, "positions columns"]:
        """a_i of every column at each position; z are the logits of all entities."""
        keys, columns, entities = entries.keys, entries.columns, entity_rows(z.shape[1])
        further = torch.tensor(columns.entry, device=h.device, dtype=torch.long)
        if columns.entry:
            keys = torch.cat((keys, keys[further]))
        # As one product: positions times entries may be millions.
        queries = self.theta * h + (h @ self.W_q.t()) @ self.W_k
        fit = torch.addmm(self.v, h, self.W_v.t())
        copy = torch.addmv(self.b, h, self.u).unsqueeze(1)
        vectors = x(values.clamp(min=0)).detach()
        hidden = (values < 0) | ((values == UNK) & (not self.copies_unknown))
        found = linear(
            torch.cat((queries, fit, copy), 1),
            torch.cat((keys, vectors, copy.new_ones(len(values), 1)), 1),
            h.new_zeros(len(values)).masked_fill(hidden, _HIDDEN),
        )
        # The rest in place.
        after_entity = (entries.current >= entities.start) & (entries.current < entities.stop)
        kappa = self.kappa[torch.from_numpy(after_entity.astype(np.int64)).to(h.device)]
        pairs = np.nonzero(columns.rows[1] == entries.current[:, None])
        position, entry = (indices(p, h) for p in pairs)
        found.index_put_((position, entry), kappa.index_select(0, position), accumulate=True)
        column, entity = entity_columns(values, z.shape[1])
        found.index_add_(1, column, self.gamma * z.detach().index_select(1, entity))
        ages = self._ages(entries.seen, len(entries.keys))
        if columns.entry:
            later = torch.from_numpy(entries.at[:, None] >= np.array(columns.since)).to(h)
            found.index_add_(1, torch.tensor(columns.replaced, device=h.device), _HIDDEN * later)
            ages = torch.cat((ages, ages.index_select(1, further) + _HIDDEN * (1 - later)), 1)
        return found.add_(ages)

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
