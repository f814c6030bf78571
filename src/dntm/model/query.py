"""Query: what the softmax sees at each position (Eq. 1).

    p(w) ~ exp(h . y_w + b_w + e_w) + sum over copies c of w of exp(a_c)

h comes from the core. The terms of the output layer (`term`) change it, add logits e to the rows of
entities, and add copies: further rows of the softmax, each of which stands for a row of the
vocabulary. The paper's model has neither extra rows nor a changed h, and e_e = h . (W_dy d_e).
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

MASKED = -1e4
"""Logit of a copy that a position cannot see: no probability in any precision, and no NaN in the
gradients."""


@dataclass(frozen=True, slots=True)
class CopyLogits:
    """Further rows of the softmax at some positions."""

    parts: tuple[tuple[Float[Tensor, "_ _"], Int[Tensor, " _"]], ...]
    """For consecutive positions: the logits of all copies, and the vocabulary row that each stands
    for (negative: none)."""

    def log_sum(self) -> Float[Tensor, " positions"]:
        """Log of the summed exponentials of all copies."""
        return torch.cat([a.logsumexp(1) for a, _ in self._nonempty()])

    def log_sum_of(self, targets: Int[Tensor, " positions"]) -> Float[Tensor, " positions"]:
        """The same for the copies of each position's target."""
        wanted = torch.split(targets, [len(a) for a, _ in self.parts])
        return torch.cat(
            [
                a.masked_fill(rows != own.unsqueeze(1), MASKED).logsumexp(1)
                for (a, rows), own in zip(self._nonempty(), wanted, strict=True)
            ]
        )

    def add_to(
        self, log_p: Float[Tensor, "positions vocabulary"], log_sum: Float[Tensor, " positions"]
    ) -> Float[Tensor, "positions vocabulary"]:
        """The distribution with copies, from the one without and its log-normalizer."""
        total = torch.logaddexp(log_sum, self.log_sum())
        start, found = 0, []
        for a, rows in self._nonempty():
            part = slice(start, start := start + len(a))
            shares = (a - total[part].unsqueeze(1)).exp().masked_fill(rows < 0, 0)
            copied = torch.zeros_like(log_p[part]).index_add(1, rows.clamp(min=0), shares)
            rest = (log_sum - total)[part].unsqueeze(1)
            found.append(torch.logaddexp(log_p[part] + rest, copied.log()))
        return torch.cat(found)

    def _nonempty(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """The parts; one masked copy in a part without any."""
        return tuple(
            (a, rows) if len(rows) else (a.new_full((len(a), 1), MASKED), rows.new_full((1,), -1))
            for a, rows in self.parts
        )


@dataclass(frozen=True, slots=True)
class Query:
    """The input of the output layer at some positions."""

    h: Float[Tensor, "positions hidden_dim"]
    entity_logits: Float[Tensor, "positions entities"] | None = None
    """Added to the static logits of the entity rows."""
    copies: CopyLogits | None = None

    def add(self, entity_logits: Float[Tensor, "positions entities"]) -> "Query":
        """The query with these logits added to those of the entities."""
        if self.entity_logits is not None:
            entity_logits = self.entity_logits + entity_logits
        return replace(self, entity_logits=entity_logits)
