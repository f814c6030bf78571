"""Sentence completion: how well a hidden word is recovered from its sentence.

Every word of a sentence in turn is hidden, and all words of the vocabulary are ranked by how well
they fit the gap. A word's rank is 1 plus the number of others that fit better or as well; recall at
k is the share of hidden words of rank at most k, and the mean reciprocal rank that of 1 / rank.
Unknown words are no targets, since nobody could tell which one was meant, and so <unk> is not
ranked, nor are <bos> and <eos>.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import SPECIALS

Sentence = Int[np.ndarray, " _"]
Contexts = Callable[[Sequence[Sentence]], Float[Tensor, "words dim"]]
"""For sentences the context vector of every word's gap, in reading order."""

SENTENCES = 64
"""Sentences ranked at once."""
CUTS = (1, 10, 100)


@dataclass(frozen=True)
class Recovery:
    """How well hidden words were recovered."""

    words: int
    recall: dict[int, float]
    """Share of the words among the first 1, 10, 100."""
    reciprocal_rank: float

    @classmethod
    def of(cls, ranks: Int[np.ndarray, " words"]) -> "Recovery":
        """From the rank of each hidden word; nan where there is none."""
        if not len(ranks):
            return cls(0, dict.fromkeys(CUTS, float("nan")), float("nan"))
        recall = {cut: float((ranks <= cut).mean()) for cut in CUTS}
        return cls(len(ranks), recall, float((1 / ranks).mean()))


@torch.no_grad()
def recover(
    sentences: Iterable[Sentence],
    contexts: Contexts,
    x: Float[Tensor, "vocabulary dim"],
    bias: Float[Tensor, " vocabulary"],
    answers: Bool[np.ndarray, " vocabulary"] | None = None,
) -> Recovery:
    """Rank all words by contexts . x + bias for every gap; with `answers` only those, for them."""
    ranks = []
    remaining = iter(sentences)
    bias = bias.to(x.device, copy=True)
    bias[: len(SPECIALS)] = -torch.inf
    if answers is not None:
        bias[torch.from_numpy(~answers).to(x.device)] = -torch.inf
    while batch := list(islice(remaining, SENTENCES)):
        words = torch.from_numpy(np.concatenate(batch)).to(x.device)
        known = (bias.index_select(0, words) != -torch.inf).nonzero().squeeze(1)
        scores = torch.addmm(bias, contexts(batch).index_select(0, known), x.t())
        if not bool((scores.isfinite() | (bias == -torch.inf)).all()):
            raise ValueError(
                "the encoder gives no finite number for some word, so there is nothing to rank: "
                "its training diverged"
            )
        ranks.append(_ranks(scores, words.index_select(0, known)))
    return Recovery.of(np.concatenate([np.zeros(0, dtype=np.int64), *ranks]))


def _ranks(scores: Tensor, words: Tensor) -> Int[np.ndarray, " words"]:
    right = scores.gather(1, words.unsqueeze(1))
    ranks: Int[np.ndarray, " words"] = (scores >= right).sum(1).cpu().numpy()
    return ranks


@torch.no_grad()
def fitting(
    context: Float[Tensor, " dim"],
    x: Float[Tensor, "vocabulary dim"],
    bias: Float[Tensor, " vocabulary"],
) -> list[tuple[int, float]]:
    """All rows with their scores, the best fit first."""
    scores = torch.addmv(bias, x, context)
    order = scores.argsort(descending=True)
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))
