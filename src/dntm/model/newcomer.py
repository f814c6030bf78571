"""Newcomer: which number a new entity gets is no question (beyond the paper).

Entities are numbered by first appearance: whoever is new gets the first row that nobody has yet.
So all rows without an owner together stand for that one:

    logit_e = log sum over free rows f of exp(h . y_f + b_f)     where e is the first free row
    logit_f = h . y_f + b_f - LATER                              for the free rows after it

There is nothing to learn in it. Without it a model leaves a part of every prediction to entities
that cannot come now, and the surprisal of a new one is for the most part about its number.

Departure: the paper has no such rule. `ModelConfig.newcomer` adds it to any neural model.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from dntm.model.salience import Mentions

LATER = 30.0
"""Nats. Not infinite: a text whose entities are numbered in another order is improbable, no error.
"""


def pool_free_rows(
    logits: Float[Tensor, "tokens entities"], mentions: Mentions
) -> Float[Tensor, "tokens entities"]:
    """The entities' logits with all free rows in the first of them; all else as it is."""
    free = torch.from_numpy(mentions.times == 0).to(logits.device)
    some = free.any(1, keepdim=True)
    together = logits.masked_fill(~free & some, -torch.inf).logsumexp(1, keepdim=True)
    first = free & (free.cumsum(1) == 1)
    return torch.where(first, together, torch.where(free, logits - LATER, logits))
