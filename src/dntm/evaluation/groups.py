"""Perplexity by token group (Table 2) and as a function of the history (Figures 4 to 6).

    (1) all tokens
    (2) reappearing entities: entity tokens whose entity occurred before in the document
    (3) following: the token right after an entity token
    (4) non-entities: tokens that are not entity tokens

A fifth group, first mentions, has the remaining entity tokens; the paper does not report it. Group
(3) includes tokens after first mentions. <eos> is a token like any other; <bos> is not predicted.

    Figure 4  all tokens, by their position in the document
    Figure 5  tokens right after an entity, by the number of its occurrences
    Figure 6  reappearing entities, by the number of antecedent entities

Departure: the paper's Figure 6 says "entities" and gives no bins. Here it shows reappearing
entities, with bins of our own.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dntm.evaluation.records import Floats, Integers, Records


class Group(StrEnum):
    """A token group; its value is its name in JSON and CSV files."""

    ALL = "all"
    REAPPEARING = "reappearing"
    FOLLOWING = "following"
    NON_ENTITIES = "non_entities"
    FIRST_MENTIONS = "first_mentions"

    @property
    def column(self) -> str:
        """The heading of a narrow column, with the paper's number."""
        return _NAMES[self][0]

    @property
    def label(self) -> str:
        """The name in running text."""
        return _NAMES[self][1]


PAPER_GROUPS: tuple[str, ...] = (Group.ALL, Group.REAPPEARING, Group.FOLLOWING, Group.NON_ENTITIES)
_NAMES = {
    Group.ALL: ("(1) all", "all tokens"),
    Group.REAPPEARING: ("(2) reappearing", "reappearing entities"),
    Group.FOLLOWING: ("(3) following", "tokens following entities"),
    Group.NON_ENTITIES: ("(4) non-entities", "non-entities"),
    Group.FIRST_MENTIONS: ("first mentions", "first mentions"),
}


def groups_of(occurrence: Integers, follows: Integers) -> dict[str, NDArray[np.bool_]]:
    """A mask for each group, from columns of `Records`; a mention after a mention is in two."""
    return {
        Group.ALL: np.ones(len(occurrence), dtype=np.bool_),
        Group.REAPPEARING: occurrence > 1,
        Group.FOLLOWING: follows > 0,
        Group.NON_ENTITIES: occurrence == 0,
        Group.FIRST_MENTIONS: occurrence == 1,
    }


def group_of(occurrence: int, follows: int) -> Group:
    """The one group under which a single token is listed: a mention is never `following`."""
    if occurrence:
        return Group.REAPPEARING if occurrence > 1 else Group.FIRST_MENTIONS
    return Group.FOLLOWING if follows else Group.NON_ENTITIES


def score_groups(records: Records) -> dict[str, dict[str, float]]:
    """Perplexity, number of tokens and sum of nats of each group; nan for an empty group."""
    scores = {}
    for group, mask in groups_of(records.occurrence, records.follows).items():
        tokens, nats = int(mask.sum()), float(-records.log_probability[mask].sum())
        perplexity = float(np.exp(nats / tokens)) if tokens else float("nan")
        scores[str(group)] = {"perplexity": perplexity, "tokens": tokens, "nats": nats}
    return scores


@dataclass(frozen=True, slots=True)
class Curve:
    """Sums over the tokens of each bin for one run."""

    edges: tuple[int, ...]
    """The first value of each bin; the last bin is open."""
    tokens: Integers
    nats: Floats


CURVES: dict[str, tuple[Group, tuple[int, ...]]] = {
    "position": (Group.ALL, (1, 51, 101, 151, 201, 301, 401, 501, 601, 801, 1001)),
    "occurrence": (Group.FOLLOWING, (1, 2, 3, 4, 5, 7, 9, 12, 16, 21)),
    "antecedents": (Group.REAPPEARING, (1, 3, 5, 7, 9, 12, 15, 18, 21, 26, 31)),
}
"""Token group and bins of Figures 4 to 6."""


def curve_of(records: Records, name: str) -> Curve:
    """The curve of a figure."""
    group, edges = CURVES[name]
    columns = {"occurrence": records.follows_occurrence, "antecedents": records.antecedents}
    x = columns[name] if name in columns else _positions(records)
    bins = np.searchsorted(edges, x, side="right") - 1
    kept = groups_of(records.occurrence, records.follows)[group] & (bins >= 0)
    tokens = np.bincount(bins[kept], minlength=len(edges))
    nats = np.bincount(bins[kept], -records.log_probability[kept], minlength=len(edges))
    return Curve(edges, tokens, nats.astype(np.float64))


def _positions(records: Records) -> Integers:
    """The position of each token in its document, from 1; records are in reading order."""
    names = np.array(records.document)
    begins = (names[1:] != names[:-1]) | (np.diff(records.sentence) < 0)
    starts = np.flatnonzero(np.concatenate(([True], begins)))
    lengths = np.diff(np.append(starts, len(names)))
    return np.arange(1, len(names) + 1) - np.repeat(starts, lengths)
