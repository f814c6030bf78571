"""Evaluation of meaning: ranks of the right words for hidden, defined and invented words.

Beyond the paper. After each mention of an entity that stands for a known word, candidates w are
ranked by cos(g_e, x_w), and the model's confidence is the probability of its first word:

    p(w | e) = softmax_w(s_n cos(g_e, x_w))                          after n mentions (`naming`)

The baselines also rank words by cosine: those of `word_baselines`, and the context encoder alone
(x_e from the mean of the contexts d'_e instead of the model's merging function). A model without
the naming extension has no s_n and no calibration.

Every test returns a dictionary with the numbers that are printed and written to the JSON file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.entities import Lexicon
from dntm.corpus.vocabulary import UNK, Vocabulary, entity_rows
from dntm.evaluation.passages import Passage, Trial, gap_passage
from dntm.evaluation.ranks import Ranked, RankSummary, cosine_ranks
from dntm.evaluation.uncertainty import interval, resampled
from dntm.evaluation.word_baselines import WordBaseline
from dntm.model.extensions.naming import held_out_types, naming_term
from dntm.model.language_model import DynamicTextModel
from dntm.model.merging import merging_function
from dntm.model.scorer import Scorer

MENTIONS = (1, 2, 4, 6)
"""Numbers of mentions after which ranks are reported."""
BANDS = ((1, 1000), (1001, 3000), (3001, 10_000), (10_001, 30_000))
"""Frequency ranks of hidden words. The first band is reported, but unknown words are rarer."""
BINS = 10
"""Bins of the reliability diagram."""
_BATCH = 32
"""Passages read at once."""
Rows = Int[np.ndarray, " candidates"]
"""Candidates as ascending rows of the vocabulary."""
Numbers = dict[str, Any]


class Predictor:
    """Predicts a vector for the entity of a passage, after each mention, in several ways."""

    def __init__(self, model: Scorer, baselines: Mapping[str, WordBaseline]) -> None:
        self.naming = naming_term(model.model.terms)
        if self.naming is None and not model.model.config.dynamic_input:
            raise ValueError(
                f"the model is the variant {model.model.config.variant!r}, so its entities have no "
                "input embeddings of their own: expected a model with dynamic input or naming"
            )
        self._model, self._baselines = model, baselines
        x = model.model.x.weight.detach()
        self.words = {"model": x, "context encoder": x}
        """The word vectors that the predictions of each method are compared with."""
        self.words |= {name: baseline.words for name, baseline in baselines.items()}
        self.first = entity_rows(model.vocabulary.entities).stop

    def vectors(self, passages: Sequence[Passage]) -> dict[str, Float[Tensor, "mentions dim"]]:
        """The vectors after all mentions of all passages, by method."""
        found = {"model": self._x_e(passages)}
        with _mean_merging(self._model.model):
            found["context encoder"] = self._x_e(passages)
        for name, baseline in self._baselines.items():
            found[name] = torch.cat([baseline(passage) for passage in passages])
        for method, vectors in found.items():
            if not torch.isfinite(vectors).all():
                raise ValueError(f"{method}: a predicted vector is not finite")
        return found

    def _x_e(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        embeddings = self._model.mention_embeddings([passage.sentences for passage in passages])
        pairs = zip(passages, embeddings, strict=True)
        own = [(e, torch.from_numpy(e.row == p.entity)) for p, e in pairs]
        if self.naming is None:
            return torch.cat([e.x[here] for e, here in own])
        return self.naming.named(torch.cat([e.d[here] for e, here in own]))

    def ranks(
        self,
        method: str,
        vectors: Float[Tensor, "cases dim"],
        candidates: Rows,
        answers: Int[np.ndarray, " cases"],
        mentions: Int[np.ndarray, " cases"],
    ) -> Ranked:
        """The rank of each answer, a row, among the candidates, after a number of mentions."""
        place, words = np.searchsorted(candidates, answers), self.words[method][candidates]
        scale = None
        if method == "model" and self.naming is not None:
            scale = self.naming.scale(torch.from_numpy(mentions)).detach()
        return cosine_ranks(vectors, words, place, scale)


@contextmanager
def _mean_merging(model: DynamicTextModel) -> Iterator[None]:
    """The contexts of an entity have equal weights, instead of the model's own merging."""
    memory = model.memory
    own, memory.merging = memory.merging, merging_function("mean", model.config.context_dim)
    try:
        yield
    finally:
        memory.merging = own


def type_groups(vocabulary: Vocabulary, candidates: Rows) -> dict[str, Int[np.ndarray, " _"]]:
    """The rows of words to hide: each band, and its words that are never hidden in training.

    Frequency ranks are positions in the vocabulary, whose words are sorted by their counts in the
    training text.
    """
    rank = candidates - entity_rows(vocabulary.entities).stop + 1
    held_out = held_out_types(vocabulary)[candidates]
    groups = {}
    for low, high in BANDS:
        band = (low <= rank) & (rank <= high)
        groups[f"{low}-{high}"] = candidates[band & ~held_out]
        groups[f"{low}-{high}, never hidden in training"] = candidates[band & held_out]
    return groups


def calibration(
    confidence: Float[np.ndarray, " cases"], right: Bool[np.ndarray, " cases"]
) -> Numbers:
    """The probability of the first predicted word, compared with how often it is right.

    `bins` are the mean confidence, accuracy and cases of each bin of equal width that has cases.
    `error` is the expected calibration error: mean |confidence - accuracy|, weighted by cases.
    """
    number = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    cases = np.bincount(number, minlength=BINS)
    used = cases > 0
    confident, accurate = (
        np.bincount(number, values, BINS)[used] / cases[used] for values in (confidence, right)
    )
    error = float((np.abs(confident - accurate) * cases[used]).sum() / max(len(right), 1))
    bins = zip(confident.tolist(), accurate.tolist(), cases[used].tolist(), strict=True)
    return {"cases": len(right), "error": error, "bins": list(bins)}


def hidden_words(
    predictor: Predictor,
    groups: Mapping[str, Sequence[Passage]],
    candidates: Rows,
    progress: Callable[[Sequence[Sequence[Passage]]], Iterable[Sequence[Passage]]] = iter,
) -> Numbers:
    """Rank every hidden word among the candidates after each of its mentions.

    `ranks` are by group of words, method and number of mentions read. "all" are the words after the
    first band. A case is a type. Types with fewer mentions are missing from the larger numbers, so
    that numbers of mentions are comparable only for "all with 6 mentions". `calibration` is that of
    "all", by number of mentions; empty without the naming extension. `falling`: of the mentions
    after which the right word is ranked better than before, the share with a lower confidence.
    """
    passages = [passage for group in groups.values() for passage in group]
    batches = [passages[start : start + _BATCH] for start in range(0, len(passages), _BATCH)]
    read = [predictor.vectors(batch) for batch in progress(batches)]
    length = [len(passage.mentions()) for passage in passages]
    count = np.concatenate([np.arange(1, n + 1) for n in length])
    answers = np.repeat([passage.answer for passage in passages], length)
    group_of = np.repeat(np.repeat([*groups], [len(group) for group in groups.values()]), length)
    rare = answers - predictor.first >= BANDS[0][1]
    complete = np.repeat(length, length) >= MENTIONS[-1]
    masks = {group: group_of == group for group in groups}
    masks |= {"all": rare, f"all with {MENTIONS[-1]} mentions": rare & complete}
    ranked = {
        method: predictor.ranks(
            method, torch.cat([v[method] for v in read]), candidates, answers, count
        )
        for method in predictor.words
    }

    def summaries(own: Ranked, mask: Bool[np.ndarray, " mentions"]) -> dict[int, RankSummary]:
        at = {n: mask & (count == n) for n in MENTIONS}
        return {n: RankSummary.of(own.rank[here]) for n, here in at.items() if here.any()}

    rank, confidence = ranked["model"]
    judged = rare & (predictor.naming is not None)
    better = judged[1:] & (count[1:] > 1) & (rank[1:] < rank[:-1])
    return {
        "candidates": len(candidates),
        "ranks": {
            group: {method: summaries(own, mask) for method, own in ranked.items()}
            for group, mask in masks.items()
            if mask.any()
        },
        "calibration": {
            n: calibration(confidence[at], rank[at] == 1)
            for n in MENTIONS
            if (at := judged & (count == n)).any()
        },
        "falling": float((np.diff(confidence) < 0)[better].mean()) if better.any() else None,
    }


def definitions(
    predictor: Predictor, lexicon: Lexicon, given: Sequence[tuple[str, str]], candidates: Rows
) -> Numbers:
    """Rank each word among the candidates after its definition.

    Words are left out if they are not among the candidates (`unknown`) or have no ___ in their
    definition (`without_gap`).
    """
    rows = [(lexicon.row(word), text) for word, text in given]
    known = [(row, text) for row, text in rows if row in candidates]
    read = [p for row, text in known if (p := gap_passage([text], lexicon, row)) is not None]
    if not read:
        raise ValueError("no definition with ___ of a word in the vocabulary")
    answers = np.array([passage.answer for passage in read])
    mentions = np.array([len(passage.mentions()) for passage in read])
    last = np.cumsum(mentions) - 1
    ranks = {
        m: predictor.ranks(m, v[last], candidates, answers, mentions).rank
        for m, v in predictor.vectors(read).items()
    }
    return {
        "words": len(read),
        "unknown": len(given) - len(known),
        "without_gap": len(known) - len(read),
        "candidates": len(candidates),
        "ranks": {method: RankSummary.of(values) for method, values in ranks.items()},
    }


def trials(
    predictor: Predictor, lexicon: Lexicon, given: Sequence[Trial], *, seed: int = 0
) -> Numbers:
    """Correlate the ratings of each trial's probes with their cosines after its texts.

    `correlations` are means of Spearman's coefficient, with 95 % intervals over resampled words.
    Trials count as 0 if they have fewer than two known probes (`few_probes`), the same rating for
    all probes (`constant`), or no ___ (`without_gap`). `words` are the invented words.
    """
    probes = [np.array([lexicon.row(probe) for probe in trial.probes]) for trial in given]
    passages = [gap_passage(trial.texts, lexicon) for trial in given]
    constant = [len(set(trial.ratings)) < 2 for trial in given]
    few = [int((rows != UNK).sum()) < 2 for rows in probes]
    read = {
        n: passage
        for n, passage in enumerate(passages)
        if passage is not None and not constant[n] and not few[n]
    }
    last = np.cumsum([len(passage.mentions()) for passage in read.values()]) - 1
    values = {method: np.zeros(len(given)) for method in predictor.words}
    for method, vectors in predictor.vectors([*read.values()]).items() if read else ():
        for n, vector in zip(read, vectors[last], strict=True):
            words = predictor.words[method][probes[n]]
            cosines = nn.functional.cosine_similarity(vector.unsqueeze(0), words)
            near, unknown = cosines.double().numpy(), probes[n] == UNK
            near = np.where(unknown, near[~unknown].mean(), near)
            values[method][n] = spearman(near, np.array(given[n].ratings))
    names, which = np.unique([trial.group for trial in given], return_inverse=True)
    drawn = resampled(len(names), seed)
    sizes = drawn @ np.bincount(which).astype(np.float64)
    return {
        "trials": len(given),
        "words": len(names),
        "unknown_probes": float((np.concatenate(probes) == UNK).mean()),
        "few_probes": sum(few),
        "constant": sum(constant),
        "without_gap": sum(passage is None for passage in passages),
        "correlations": {
            method: (float(v.mean()), interval((drawn @ np.bincount(which, v)) / sizes))
            for method, v in values.items()
        },
    }


def pairs(model: Scorer, given: Sequence[tuple[str, str, float]]) -> Numbers:
    """Spearman's coefficients of ratings with the cosines of x and of y, for known words."""
    lexicon = Lexicon(model.vocabulary)
    rows = np.array([[lexicon.row(a), lexicon.row(b)] for a, b, _ in given])
    known = (rows != UNK).all(1)
    if known.sum() < 2:
        raise ValueError(f"{known.sum()} word pairs in the vocabulary, expected two or more")
    left, right = torch.from_numpy(rows[known]).t()
    ratings = np.array([rating for _, _, rating in given])[known]
    x, y = (
        spearman(nn.functional.cosine_similarity(w[left], w[right]).double().numpy(), ratings)
        for w in (model.model.x.weight.detach(), model.model.output.weight.detach())
    )
    return {"pairs": int(known.sum()), "left_out": int((~known).sum()), "x": x, "y": y}


def spearman(a: Float[np.ndarray, " _"], b: Float[np.ndarray, " _"]) -> float:
    """Spearman's coefficient, with mean ranks for ties; 0 if either side is constant."""
    if not (np.ptp(a) and np.ptp(b)):
        return 0.0
    ordered = [(np.sort(values), values) for values in (a, b)]
    # Twice the mean rank minus 1: the number of smaller values plus that of values not larger.
    ranks = [np.searchsorted(s, v) + np.searchsorted(s, v, side="right") for s, v in ordered]
    return float(np.corrcoef(ranks)[0, 1])
