"""Pointer: every moment of the document so far is one more row of the output layer.

    p(w_{t+1} = w) ~ exp(z_w) + sum over i < t with w_{i+1} = w of exp(a_i),   z_w = h_t . y_w + b_w

    a_i = theta h_t . h_i + (W_q h_t) . (W_k h_i)       moments that were like this one
        + kappa [w_i = w_t]                             or came after the same word or entity
        + (W_v h_t + v) . x_{w_{i+1}}                   what was said there, and fits here
        + gamma z_{w_{i+1}}                             if that is an entity, which y_e expects
        + r_{t - i} + u . h_t + b                       how long ago, and whether it matters now

One softmax over words and moments, as in CopyNet (Gu et al. 2016): how much the past counts is
u . h_t + b + log sum over i of exp(...) against the words' own log sum, and needs no weight to be
tuned. kappa is one number after a word and another after an entity: what was said of *this* entity.
r has a number for each power of two. x and z are taken as they are: the pointer learns to use them,
but does not change them. h_t is what the output layer reads, with W_dh d_e where the model is
`direct`; h_i is the LSTM's alone. z of an entity has all its terms: y_e, salience, newcomers.

What a cache knows and d_e does not is the very words that came before; this is what a cache knows,
learned. It begins almost as one (theta = .3, kappa = 1.5, gamma = .3, all else 0).

Departure: the paper has no such term. `ModelConfig.pointer` adds it to any neural model.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.history import Mixture, Moments

DIM = 64
"""Rows of W_q and W_k."""
AGES = 10
"""Rows of r: 1, 2 or 3, 4 to 7, ..., 512 and more tokens ago."""
_AGE = np.array([0, *(min(ago.bit_length(), AGES) - 1 for ago in range(1, 2**AGES))], np.int32)
"""The row of r for every age; older ones have the last."""
MASKED = -1e4
"""The logit of a moment that is not seen: no share in any precision, and no NaN in the gradients
of the loss."""


class Pointer(nn.Module):
    """The parameters of a_i."""

    def __init__(self, hidden_dim: int, embedding_dim: int) -> None:
        super().__init__()
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
        """Begin as a cache that weighs little."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)
        nn.init.normal_(self.W_q, std=self.W_q.shape[1] ** -0.5, generator=generator)
        with torch.no_grad():
            self.theta.fill_(0.3)
            self.kappa.fill_(1.5)
            self.gamma.fill_(0.3)
            self.b.fill_(-4.0)

    def logits(
        self,
        moments: Moments,
        h: Float[Tensor, "positions hidden_dim"],
        x: Float[Tensor, "vocabulary embedding_dim"],
        z: Float[Tensor, "positions entities"],
    ) -> Float[Tensor, "positions said"]:
        """The a_i of every moment that each position looks back on; z are those of all entities."""
        said, entities = moments.said, entity_rows(z.shape[1])
        found = moments.likeness(self.theta * h + (h @ self.W_q.t()) @ self.W_k)
        # The rest in place: positions times moments may be millions.
        words, word = torch.unique(said.clamp(min=0), return_inverse=True)
        fitting = torch.addmm(self.v, h, self.W_v.t()) @ x.detach().index_select(0, words).t()
        fitting = fitting + (h @ self.u + self.b).unsqueeze(1)
        found.add_(fitting.index_select(1, word))
        after_entity = (moments.now >= entities.start) & (moments.now < entities.stop)
        kappa = self.kappa[torch.from_numpy(after_entity.astype(np.int64)).to(h.device)]
        position, moment = moments.same()
        found.index_put_((position, moment), kappa.index_select(0, position), accumulate=True)
        entity = said - entities.start
        column = torch.nonzero((entity >= 0) & (entity < z.shape[1])).squeeze(1)
        expected = z.detach().index_select(1, entity[column])
        found.index_add_(1, column, self.gamma * expected)
        ages = torch.from_numpy(_AGE[np.clip(moments.ago, 0, len(_AGE) - 1)]).to(h.device)
        found.add_(self.r.index_select(0, ages.flatten()).view_as(found))
        return found.masked_fill_(moments.hidden, MASKED)


class Pointed(NamedTuple):
    """The moments that some positions look back on, as rows of the output layer."""

    parts: tuple[tuple[Float[Tensor, "_ said"], Int[Tensor, " said"]], ...]
    """The logits a of every moment, and the rows of what was said; negative where it has none."""

    def log_sum(self) -> Float[Tensor, " positions"]:
        """Their log sum exp, over all moments."""
        return torch.cat([a.logsumexp(1) for a, _ in self._some()])

    def log_sum_of(self, targets: Int[Tensor, " positions"]) -> Float[Tensor, " positions"]:
        """The same over those in which the target was said."""
        wanted = torch.split(targets, [len(a) for a, _ in self.parts])
        return torch.cat(
            [
                a.masked_fill(rows != own.unsqueeze(1), MASKED).logsumexp(1)
                for (a, rows), own in zip(self._some(), wanted, strict=True)
            ]
        )

    def mixture(self, log_sum: Float[Tensor, " positions"]) -> Mixture:
        """The same as a mixture, where the words' logits have this log sum exp."""
        more = self.log_sum() - log_sum
        shares = tuple((a.softmax(1), rows) for a, rows in self._some())
        return Mixture(shares, nn.functional.logsigmoid(more), nn.functional.logsigmoid(-more))

    def _some(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """The parts; where a document has said nothing, one moment that nobody sees."""
        return tuple(
            (a, rows) if len(rows) else (a.new_full((len(a), 1), MASKED), rows.new_full((1,), -1))
            for a, rows in self.parts
        )
