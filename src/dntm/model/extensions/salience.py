"""Salience: how recently and how often an entity was mentioned.

    logit_e = h . y_e + b_e + h . (r_a + f_n + k_e) + r'_a + f'_n     for every e mentioned so far

a is the number of sentences since the last mention of e, n the number of its mentions; r and f have
one row per class of a and n. k_e distinguishes the row of a known entity from b_e^y, the row of an
unseen one. The meaning of an entity stays in d_e; salience says who is being talked about.

Departure: the paper has no such term. `--model.extensions salience` adds it to any variant.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.extensions.mentions import Mentions, MentionState, follow
from dntm.model.query import Query
from dntm.model.term import Observation, Term

SENTENCES = (1, 2, 3, 5, 9)
"""First value of each class of a after 0: 1, 2, 3 and 4, 5 to 8, more."""
TIMES = (2, 3, 5, 9)
"""First value of each class of n after 1: 2, 3 and 4, 5 to 8, more."""


class Salience(Term):
    """The rows of r, f and k. All start at zero, so that the term starts without effect."""

    def __init__(self, entities: int, dim: int) -> None:
        super().__init__()
        recency, frequency = 1 + len(SENTENCES), 1 + len(TIMES)
        self.r = nn.Parameter(torch.zeros(recency, dim))
        self.r_b = nn.Parameter(torch.zeros(recency))
        self.f = nn.Parameter(torch.zeros(frequency, dim))
        self.f_b = nn.Parameter(torch.zeros(frequency))
        self.k = nn.Parameter(torch.zeros(entities, dim))

    def initial(self, documents: int) -> MentionState:
        """No mentions."""
        return MentionState.initial(documents, len(self.k))

    def observe(
        self, observation: Observation, state: MentionState
    ) -> tuple[Mentions, MentionState]:
        """Count the mentions."""
        return follow(observation.window, state)

    def forward(
        self, query: Query, seen: Mentions, positions: Int[np.ndarray, " positions"]
    ) -> Query:
        """Add the logits of entities mentioned before."""
        return query.add(self.logits(query.h, seen.at(positions)))

    def logits(
        self, h: Float[Tensor, "tokens dim"], mentions: Mentions
    ) -> Float[Tensor, "tokens entities"]:
        """What the term adds to each entity's logit; zero before its first mention."""
        recency = np.searchsorted(SENTENCES, mentions.ago, side="right")
        frequency = np.searchsorted(TIMES, mentions.times, side="right")
        both = torch.from_numpy(recency * len(self.f) + frequency).to(h.device)
        known = torch.from_numpy(mentions.times > 0).to(h.device)
        rows = (self.r.unsqueeze(1) + self.f).flatten(0, 1)
        bias = (self.r_b.unsqueeze(1) + self.f_b).flatten()
        classes = torch.addmm(bias, h, rows.t())
        return torch.where(known, classes.gather(1, both) + h @ self.k.t(), 0)
