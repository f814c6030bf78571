"""Salience: how recently and how often an entity was mentioned, in the output layer.

    logit_e = h . y_e + b_e + h . (r_a + f_n + k_e) + r'_a + f'_n     for every e mentioned so far

a says how many sentences ago e was mentioned last, this one included, and n how often; r and f have
a row for each class of them. k_e tells the row of a known entity from b_e^y, the row of one that is
still to come. What an entity means stays with d_e; this is who is being spoken of.

Departure: the paper has no such term. `ModelConfig.salience` adds it to any variant.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import BOS, entity_rows
from dntm.model.fast.layout import Layout

SENTENCES = (1, 2, 3, 5, 9)
"""Where the classes of a begin: this sentence, the one before, 2, 3 and 4, 5 to 8, more."""
TIMES = (2, 3, 5, 9)
"""Where the classes of n begin: once, twice, 3 or 4 times, 5 to 8 times, more often."""
LONG_AGO = np.iinfo(np.int64).min // 2


class Mentions(NamedTuple):
    """When each entity was mentioned last, and how often, as of each row's moment."""

    ago: Int[np.ndarray, "rows entities"]
    """Sentences begun since the last mention; of no meaning where there was none."""
    times: Int[np.ndarray, "rows entities"]

    @classmethod
    def none(cls, rows: int, entities: int) -> "Mentions":
        """Before the first sentence."""
        return cls(np.zeros((rows, entities), np.int64), np.zeros((rows, entities), np.int64))

    def at(self, rows: Int[np.ndarray, " chosen"]) -> "Mentions":
        """Those of some rows only, in this order."""
        return Mentions(self.ago[rows], self.times[rows])


def follow(layout: Layout, before: Mentions) -> tuple[Mentions, Mentions]:
    """The mentions as of each token once it is read, and as of each document's last token.

    Tokens come in reading order. A sentence begins with its <bos>, wherever a window ends.
    """
    rows = layout.tokens[layout.read]
    document = layout.document[layout.sentence]
    entities = before.ago.shape[1]
    ago, times = np.empty((2, len(rows), entities), np.int64)
    after = Mentions(before.ago.copy(), before.times.copy())
    for number in np.unique(document):
        tokens = np.flatnonzero(document == number)
        entity = rows[tokens] - entity_rows(entities).start
        mentions = np.flatnonzero((entity >= 0) & (entity < entities))
        sentence = np.cumsum(rows[tokens] == BOS)
        last = np.full((1 + len(tokens), entities), LONG_AGO)
        last[0] = np.where(before.times[number] > 0, -before.ago[number], LONG_AGO)
        last[1 + mentions, entity[mentions]] = sentence[mentions]
        counted = np.zeros_like(last)
        counted[0] = before.times[number]
        counted[1 + mentions, entity[mentions]] = 1
        ago[tokens] = sentence[:, None] - np.maximum.accumulate(last)[1:]
        times[tokens] = np.cumsum(counted, 0)[1:]
        after.ago[number], after.times[number] = ago[tokens[-1]], times[tokens[-1]]
    return Mentions(ago, times), after


class Salience(nn.Module):
    """The rows of r, f and k, all zero at first: then there is no such term."""

    def __init__(self, entities: int, dim: int) -> None:
        super().__init__()
        recency, frequency = 1 + len(SENTENCES), 1 + len(TIMES)
        self.r = nn.Parameter(torch.zeros(recency, dim))
        self.r_b = nn.Parameter(torch.zeros(recency))
        self.f = nn.Parameter(torch.zeros(frequency, dim))
        self.f_b = nn.Parameter(torch.zeros(frequency))
        self.k = nn.Parameter(torch.zeros(entities, dim))

    def logits(
        self, h: Float[Tensor, "tokens dim"], mentions: Mentions
    ) -> Float[Tensor, "tokens entities"]:
        """What the term adds to each entity's logit; zero for those not mentioned yet."""
        recency = np.searchsorted(SENTENCES, mentions.ago, side="right")
        frequency = np.searchsorted(TIMES, mentions.times, side="right")
        both = torch.from_numpy(recency * len(self.f) + frequency).to(h.device)
        known = torch.from_numpy(mentions.times > 0).to(h.device)
        rows = (self.r.unsqueeze(1) + self.f).flatten(0, 1)
        bias = (self.r_b.unsqueeze(1) + self.f_b).flatten()
        classes = torch.addmm(bias, h, rows.t())
        return torch.where(known, classes.gather(1, both) + h @ self.k.t(), 0)
