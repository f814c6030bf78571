"""Token groups and their perplexities (Table 2).

    (1) all tokens
    (2) reappearing entities: entity tokens whose entity occurred before in the document
    (3) following entities: the token right after an entity token
    (4) non-entities: tokens that are not entity tokens

Beside them stands what the paper leaves out: the first mentions. (3) follows those, too. <eos>
is a token like any other; <bos> is given, not predicted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dntm.evaluation.records import Integers, Records


class Title(NamedTuple):
    """What a token group is called."""

    short: str
    """In a narrow column, with the paper's number."""
    full: str


TITLES = {
    "all": Title("(1) all", "all tokens"),
    "reappearing": Title("(2) reappearing", "reappearing entities"),
    "following": Title("(3) following", "tokens following entities"),
    "non_entities": Title("(4) non-entities", "tokens that are no entities"),
    "first_mentions": Title("first mentions", "first mentions"),
}
GROUPS = tuple(TITLES)
PAPER_GROUPS = GROUPS[:4]


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


def groups_of(occurrence: Integers, follows: Integers) -> dict[str, NDArray[np.bool_]]:
    """Which tokens belong to each group; an entity after an entity is in two.

    `occurrence` counts an entity's mentions, this one included, and is 0 for other tokens;
    `follows` is the entity right before the token, else 0.
    """
    return {
        "all": np.ones(len(occurrence), dtype=np.bool_),
        "reappearing": occurrence > 1,
        "following": follows > 0,
        "non_entities": occurrence == 0,
        "first_mentions": occurrence == 1,
    }


def token_groups(records: Records) -> dict[str, NDArray[np.bool_]]:
    """Which records belong to each group."""
    return groups_of(records.occurrence, records.follows)


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
