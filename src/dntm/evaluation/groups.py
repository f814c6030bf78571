"""Token groups and their perplexities (Table 2).

    (1) all tokens
    (2) reappearing entities: entity tokens whose entity occurred before in the document
    (3) following entities: the token right after an entity token
    (4) non-entities: tokens that are not entity tokens

Beside them stands what the paper leaves out: the first mentions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dntm.evaluation.records import Records

GROUPS = ("all", "reappearing", "following", "non_entities", "first_mentions")


@dataclass(frozen=True)
class GroupScore:
    """Sums over the tokens of a group."""

    tokens: int
    nats: float
    """Minus the sum of the log-probabilities."""

    @property
    def perplexity(self) -> float:
        """The exponential of the mean surprisal; nan where the group is empty."""
        return float(np.exp(self.nats / self.tokens)) if self.tokens else float("nan")


def token_groups(records: Records) -> Mapping[str, NDArray[np.bool_]]:
    """Which records belong to each group."""
    return {
        "all": np.ones(len(records), dtype=np.bool_),
        "reappearing": records.occurrence > 1,
        "following": records.follows > 0,
        "non_entities": records.entity == 0,
        "first_mentions": records.occurrence == 1,
    }


def score_groups(records: Records) -> dict[str, GroupScore]:
    """Perplexity and number of tokens of each group."""
    return {
        group: GroupScore(int(mask.sum()), float(-records.log_probability[mask].sum()))
        for group, mask in token_groups(records).items()
    }


def as_plain(scores: Mapping[str, GroupScore]) -> dict[str, dict[str, float]]:
    """The scores as JSON holds them."""
    return {
        group: {"perplexity": score.perplexity, "tokens": score.tokens, "nats": score.nats}
        for group, score in scores.items()
    }
