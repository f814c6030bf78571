"""Ranking: at which place of the whole vocabulary each token of a text stood (Eq. 1)."""

from collections.abc import Iterator

import torch

from dntm.reader.engine import Engine
from dntm.reader.prepared import PreparedText

_AT_ONCE = 256
"""Tokens whose distributions are in memory at the same time."""


def ranks(engine: Engine, text: PreparedText) -> list[list[int]]:
    """The rank of every predicted token of each sentence, 1 for the likeliest of all rows."""
    state, _ = engine.initial()
    found = []
    for words in text.sentences:
        rows = engine.rows(words)
        ranked = []
        stretch = engine.models.dynamic.plan([[rows]])
        after = state
        for positions in _chunks(len(rows) - 1):
            _, likely, after = engine.models.dynamic.log_distribution(stretch, state, positions)
            targets = torch.tensor([rows[place + 1] for place in positions])
            own = likely.gather(1, targets.unsqueeze(1))
            ranked += (1 + (likely > own).sum(1)).tolist()
        state = after
        found.append(ranked)
    return found


def _chunks(tokens: int) -> Iterator[range]:
    for start in range(0, tokens, _AT_ONCE):
        yield range(start, min(start + _AT_ONCE, tokens))
