"""Pointer: every earlier token of the document is one more row of the output layer.

    p(w_{t+1} = w) ~ exp(z_w) + sum over i < t with w_{i+1} = w of exp(a_i),   z_w = h_t . y_w + b_w

    a_i = theta h_t . h_i + (W_q h_t) . (W_k h_i)       similar contexts
        + kappa [w_i = w_t]                             the same preceding word or entity
        + (W_v h_t + v) . x_{w_{i+1}}                   whether the copied word fits here
        + gamma z_{w_{i+1}}                             for an entity, its own logit
        + r_{t - i} + u . h_t + b                       age, and whether to copy at all now

One softmax over words and copies, as in CopyNet (Gu et al. 2016), so no mixture weight has to be
tuned. kappa has one value after words and one after entities: what was said about *this* entity. r
has one value per power of two. Gradients do not flow into x and z. h_t is the query's h, h_i the
core's. z of an entity includes the terms before this one.

The pointer is a learned neural cache (Grave et al. 2017): it knows the very words of the document,
which d_e does not. It starts almost as one (theta = .3, kappa = 1.5, gamma = .3, all else 0).

Departure: the paper has no such term. `--model.extensions pointer` adds it to any variant.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.extensions.document_cache import CacheEntries, CacheState, lookup
from dntm.model.query import MASKED, CopyLogits, Query
from dntm.model.term import Observation, Term

DIM = 64
"""Rows of W_q and W_k."""
AGES = 10
"""Rows of r: 1, 2 or 3, 4 to 7, ..., 512 and more tokens ago."""
_AGE = np.array([0, *(min(age.bit_length(), AGES) - 1 for age in range(1, 2**AGES))], np.int32)
"""The row of r for every age; larger ages have the last."""


class _Seen(NamedTuple):
    observation: Observation
    before: CacheState


class Pointer(Term):
    """The parameters of a_i."""

    def __init__(self, entities: int, hidden_dim: int, embedding_dim: int) -> None:
        super().__init__()
        self.entities = entities
        self.theta = nn.Parameter(torch.empty(()))
        self.kappa = nn.Parameter(torch.empty(2))
        self.gamma = nn.Parameter(torch.empty(()))
        self.W_q = nn.Parameter(torch.empty(DIM, hidden_dim))
        self.W_k = nn.Parameter(torch.empty(DIM, hidden_dim))
        self.W_v = nn.Parameter(torch.empty(embedding_dim, hidden_dim))
        self.v = nn.Parameter(torch.empty(embedding_dim))
        self.r = nn.Parameter(torch.empty(AGES))
        self.u = nn.Parameter(torch.empty(hidden_dim))
        self.b = nn.Parameter(torch.empty(()))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Start as a cache with a small weight."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)
        nn.init.normal_(self.W_q, std=self.W_q.shape[1] ** -0.5, generator=generator)
        with torch.no_grad():
            self.theta.fill_(0.3)
            self.kappa.fill_(1.5)
            self.gamma.fill_(0.3)
            self.b.fill_(-4.0)

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
        found = entries.similarity(self.theta * h + (h @ self.W_q.t()) @ self.W_k)
        # The rest in place: positions times entries may be millions.
        words, word = torch.unique(values.clamp(min=0), return_inverse=True)
        fit = torch.addmm(self.v, h, self.W_v.t()) @ x.detach().index_select(0, words).t()
        fit = fit + (h @ self.u + self.b).unsqueeze(1)
        found.add_(fit.index_select(1, word))
        after_entity = (entries.current >= entities.start) & (entries.current < entities.stop)
        kappa = self.kappa[torch.from_numpy(after_entity.astype(np.int64)).to(h.device)]
        position, entry = entries.same_token()
        found.index_put_((position, entry), kappa.index_select(0, position), accumulate=True)
        entity = values - entities.start
        column = torch.nonzero((entity >= 0) & (entity < z.shape[1])).squeeze(1)
        found.index_add_(1, column, self.gamma * z.detach().index_select(1, entity[column]))
        ages = torch.from_numpy(_AGE[np.clip(entries.age, 0, len(_AGE) - 1)]).to(h.device)
        found.add_(self.r.index_select(0, ages.flatten()).view_as(found))
        return found.masked_fill_(entries.hidden, MASKED)
