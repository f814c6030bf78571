"""Ranks of the right words among candidates.

A rank is 1 plus the number of other candidates that score at least as well: ties count against the
model. Recall at k is the share of ranks of at most k.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import SPECIALS

Sentence = Int[np.ndarray, " _"]
Contexts = Callable[[Sequence[Sentence]], Float[Tensor, "words dim"]]
"""Maps sentences to the context vector of every word's gap, in reading order."""

BATCH = 64
"""Sentences ranked at once."""
CASES = 1024
"""Vectors ranked at once."""
CUTS = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class RankSummary:
    """Means over ranks; nan without any rank."""

    cases: int
    recall: dict[int, float]
    """Recall at 1, 10 and 100."""
    reciprocal_rank: float
    median_rank: float

    @classmethod
    def of(cls, ranks: Int[np.ndarray, " cases"]) -> "RankSummary":
        """Summarize ranks."""
        if not len(ranks):
            return cls(0, dict.fromkeys(CUTS, float("nan")), float("nan"), float("nan"))
        recall = {cut: float((ranks <= cut).mean()) for cut in CUTS}
        return cls(len(ranks), recall, float((1 / ranks).mean()), float(np.median(ranks)))


@torch.no_grad()
def recover(
    sentences: Iterable[Sentence],
    contexts: Contexts,
    x: Float[Tensor, "vocabulary dim"],
    bias: Float[Tensor, " vocabulary"],
    answers: Bool[np.ndarray, " vocabulary"] | None = None,
) -> RankSummary:
    """Hide each word of each sentence in turn and rank all words by contexts . x + bias.

    <unk>, <bos> and <eos> are neither hidden nor ranked. If given, `answers` restricts both to some
    words.
    """
    ranks = [np.zeros(0, dtype=np.int64)]
    remaining = iter(sentences)
    bias = bias.to(x.device, copy=True)
    bias[: len(SPECIALS)] = -torch.inf
    if answers is not None:
        bias[torch.from_numpy(~answers).to(x.device)] = -torch.inf
    while batch := list(islice(remaining, BATCH)):
        words = torch.from_numpy(np.concatenate(batch)).to(x.device)
        known = (bias.index_select(0, words) != -torch.inf).nonzero().squeeze(1)
        scores = torch.addmm(bias, contexts(batch).index_select(0, known), x.t())
        if not bool((scores.isfinite() | (bias == -torch.inf)).all()):
            raise ValueError("the encoder's scores are not finite; its training diverged")
        ranks.append(_ranks(scores, words.index_select(0, known)))
    return RankSummary.of(np.concatenate(ranks))


class Ranked(NamedTuple):
    """Ranks of answers, and the probability of the word that is ranked first."""

    rank: Int[np.ndarray, " cases"]
    confidence: Float[np.ndarray, " cases"]


@torch.no_grad()
def cosine_ranks(
    vectors: Float[Tensor, "cases dim"],
    words: Float[Tensor, "candidates dim"],
    answers: Int[np.ndarray, " cases"],
    scale: Float[Tensor, " cases"] | None = None,
) -> Ranked:
    """Rank each answer, an index of a candidate, by its cosine, times a scale of each case.

    Probabilities are the softmax of these logits. Candidates with a zero vector are ranked last.
    """
    ranks, confidence = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    normalized = nn.functional.normalize(words, dim=1).t()
    offset = words.new_zeros(len(words)).masked_fill(~words.any(1), -1e9)
    for start in range(0, len(vectors), CASES):
        chunk = slice(start, start + CASES)
        scaled = nn.functional.normalize(vectors[chunk])
        if scale is not None:
            scaled = scaled * scale[chunk].to(vectors).unsqueeze(1)
        scores = torch.addmm(offset, scaled, normalized)
        if not torch.isfinite(scores).all():
            raise ValueError("a cosine is not finite: some embedding is not a number")
        ranks.append(_ranks(scores, torch.from_numpy(answers[chunk])))
        confidence.append((scores.amax(1) - scores.logsumexp(1)).exp().double().numpy())
    return Ranked(np.concatenate(ranks), np.concatenate(confidence))


def _ranks(
    scores: Float[Tensor, "cases candidates"], answers: Int[Tensor, " cases"]
) -> Int[np.ndarray, " cases"]:
    ranks: Int[np.ndarray, " cases"] = (
        (scores >= scores.gather(1, answers.unsqueeze(1))).sum(1).cpu().numpy()
    )
    return ranks
