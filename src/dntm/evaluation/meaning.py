"""Evaluation of meaning: how close x_e is to the embedding of the word that e stands for.

Beyond the paper. After each mention of an entity that stands for a known word, candidates w are
ranked by three cosines:

    x    cos(x_e, x_w)    Eq. 9
    y    cos(y_e, y_w)    Eq. 10
    g    cos(g_e, x_w)    x_e with a topic vector, as readers see it

The same ranks are computed for baselines (`word_baselines`), and for the order of the vocabulary
("most frequent").

d_e encodes the position of an entity among the words of its sentences. A topic vector c_e encodes
which words these are:

    c_e = sum over the sentences that mention e, and their words w, of a / (a + p(w)) x_w,
          minus its projection on the first principal component of such words
    g_e = x_e + t |x_e| c_e / |c_e|

The weights are those of SIF (Arora et al. 2017), with p(w) by Zipf's law: rows are in order of
frequency. Nothing here is learned, and the language model does not use it. g_e replaces x_e only
where an unknown word is compared with known words.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.entities import CLOSED, Lexicon
from dntm.corpus.vocabulary import UNK, entity_rows
from dntm.evaluation.passages import Passage, Trial, gap_passage
from dntm.evaluation.ranks import RankSummary, cosine_ranks
from dntm.evaluation.uncertainty import interval, resampled
from dntm.evaluation.word_baselines import (
    BATCH,
    WordBaseline,
    principal_component,
    sif_weights,
    zipf,
)
from dntm.model.extensions.naming import FREQUENT, infrequent, nameable
from dntm.model.scorer import Scorer

MENTIONS = (1, 2, 4, 8)
"""Numbers of mentions after which ranks are reported."""
BANDS = (0, 1000, 3000)
"""The first candidate of each frequency band."""
TOPIC = 0.2
"""The weight t of topic vectors."""
Progress = Callable[[Sequence[Sequence[Passage]]], Iterable[Sequence[Passage]]]


class Topic:
    """Computes the topic vectors of sentences."""

    def __init__(self, x: Float[Tensor, "vocabulary dim"], entities: int) -> None:
        first = entity_rows(entities).stop
        self._x = x.detach()
        share = zipf(self._x[first:])
        self._weight = x.new_zeros(len(x))
        self._weight[first:] = sif_weights(share)
        words = self._weight[first:].unsqueeze(1) * self._x[first:]
        self._common = principal_component((share.unsqueeze(1) * words).t() @ words).to(x)

    def of(self, sentence: Sequence[int]) -> Float[Tensor, " dim"]:
        """The contribution of a sentence, as rows of the vocabulary, to c_e of its entities."""
        rows = torch.tensor(sentence, dtype=torch.long, device=self._x.device)
        found: Tensor = self._weight[rows] @ self._x[rows]
        return torch.sub(found, (found @ self._common) * self._common)


def with_topic(
    x_e: Float[Tensor, "entities dim"], c_e: Float[Tensor, "entities dim"]
) -> Float[Tensor, "entities dim"]:
    """g_e; equal to x_e where c_e is zero."""
    lengths: Tensor = x_e.norm(dim=1, keepdim=True)
    return torch.add(x_e, TOPIC * lengths * nn.functional.normalize(c_e.to(x_e), dim=1))


@dataclass(frozen=True, slots=True)
class Predictions:
    """The vectors that one method predicts for hidden words."""

    vectors: Float[Tensor, "mentions dim"]
    """After each mention, in reading order."""
    words: Float[Tensor, "vocabulary dim"]
    """The word vectors that they are compared with."""


def predict(
    model: Scorer,
    passages: Sequence[Passage],
    baselines: Mapping[str, WordBaseline],
    progress: Progress = iter,
) -> dict[str, Predictions]:
    """Read passages with the model (x, y, g) and with each baseline."""
    x, y = model.model.x.weight.detach(), model.model.output.weight.detach()
    words = {"x": x, "y": y, "g": x} | {name: way.words for name, way in baselines.items()}
    topic = Topic(x, model.vocabulary.entities)
    found: dict[str, list[Tensor]] = {name: [] for name in words}
    batches = [passages[start : start + BATCH] for start in range(0, len(passages), BATCH)]
    for batch in progress(batches):
        embeddings = model.mention_embeddings([passage.sentences for passage in batch])
        for passage, found_here in zip(batch, embeddings, strict=True):
            hidden = torch.from_numpy(np.isin(found_here.row, list(passage.hidden)))
            found["x"].append(found_here.x[hidden])
            found["y"].append(found_here.y[hidden])
            found["g"].append(with_topic(found["x"][-1], topics_of(passage, topic)))
        for name, baseline in baselines.items():
            found[name].append(baseline(batch))
    predictions = {name: Predictions(torch.cat(found[name]), words[name]) for name in words}
    for name, prediction in predictions.items():
        if not torch.isfinite(prediction.vectors).all():
            raise ValueError(f"{name}: a predicted vector is not finite")
    return predictions


def topics_of(passage: Passage, topic: Topic) -> Float[Tensor, "mentions dim"]:
    """c_e after each mention of a hidden word. A sentence counts once per entity."""
    c: dict[int, Tensor] = {}
    counted: set[tuple[int, int]] = set()
    after = []
    for sentence, _, entity in passage.mentions():
        if (sentence, entity) not in counted:
            counted.add((sentence, entity))
            c[entity] = c.get(entity, 0) + topic.of(passage.sentences[sentence])
        after.append(c[entity])
    return torch.stack(after)


def _rank(
    predictions: Mapping[str, Predictions],
    candidates: Int[np.ndarray, " candidates"],
    answers: Int[np.ndarray, " cases"],
    mentions: slice | Int[np.ndarray, " cases"],
) -> dict[str, Int[np.ndarray, " cases"]]:
    """The ranks of the answers, rows among the ascending `candidates`, after some mentions."""
    place = np.searchsorted(candidates, answers)
    return {
        name: cosine_ranks(found.vectors[mentions], found.words[candidates], place)
        for name, found in predictions.items()
    } | {"most frequent": place + 1}


def _last_mentions(passages: Sequence[Passage]) -> Int[np.ndarray, " passages"]:
    """The index of the last mention of each passage among all mentions."""
    last: Int[np.ndarray, " passages"] = np.cumsum([len(p.mentions()) for p in passages]) - 1
    return last


@dataclass(frozen=True, kw_only=True, slots=True)
class HiddenWords:
    """Ranks of hidden words."""

    parts: int
    words: int
    """A word that is hidden in two parts counts twice."""
    mentions: int
    candidates: int
    ranks: dict[str, dict[str, RankSummary]]
    """By method and number of mentions read: 1, 2, 4, 8, and 2+ (all from the second on). The last
    is repeated for each frequency band of the candidates, such as "2+ of 1001-3000"."""


def candidate_words(
    model: Scorer, count: int
) -> tuple[Int[np.ndarray, " candidates"], Bool[np.ndarray, " vocabulary"]]:
    """The rows of the most frequent words after the first 100, and a mask of those to hide.

    Closed-class words are candidates but never hidden.
    """
    able = infrequent(model.vocabulary)
    rows = np.nonzero(able)[0][:count]
    if not len(rows):
        raise ValueError(f"the vocabulary has no word after its {FREQUENT} most frequent ones")
    labels = model.vocabulary.labels()
    hidden = np.zeros(len(able), dtype=np.bool_)
    hidden[[row for row in rows if labels[row].lower() not in CLOSED]] = True
    return rows, hidden


def hidden_words(
    passages: Sequence[Passage],
    predictions: Mapping[str, Predictions],
    candidates: Int[np.ndarray, " candidates"],
) -> HiddenWords:
    """Rank every hidden word among the candidates after each of its mentions."""
    mentions = [(n, entity) for n, p in enumerate(passages) for _, _, entity in p.mentions()]
    answers = np.array([passages[n].hidden[entity] for n, entity in mentions])
    seen: Counter[tuple[int, int]] = Counter()
    count = np.zeros(len(mentions), dtype=np.int64)
    for i, mention in enumerate(mentions):
        seen[mention] += 1
        count[i] = seen[mention]
    groups = {str(n): count == n for n in MENTIONS} | {"2+": count >= 2}
    place = np.searchsorted(candidates, answers)
    for low, high in pairwise((*BANDS, max(len(candidates), BANDS[-1]))):
        groups[f"2+ of {low + 1}-{high}"] = (count >= 2) & (place >= low) & (place < high)
    return HiddenWords(
        parts=len(passages),
        words=sum(len(passage.hidden) for passage in passages),
        mentions=len(count),
        candidates=len(candidates),
        ranks={
            name: {group: RankSummary.of(r[mask]) for group, mask in groups.items() if mask.any()}
            for name, r in _rank(predictions, candidates, answers, slice(None)).items()
        },
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Definitions:
    """Ranks of words after their definitions."""

    words: int
    unknown: int
    """Words left out because they are not in the vocabulary or not nameable."""
    without_gap: int
    """Words left out because their definition has no ___."""
    candidates: int
    ranks: dict[str, RankSummary]


def definitions(
    model: Scorer, given: Sequence[tuple[str, str]], baselines: Mapping[str, WordBaseline]
) -> Definitions:
    """Rank each word among all nameable words after its definition."""
    lexicon, able = Lexicon(model.vocabulary), nameable(model.vocabulary)
    known = [(row, text) for word, text in given if able[row := lexicon.row(word)]]
    read = [(row, p) for row, text in known if (p := gap_passage([text], lexicon)) is not None]
    if not read:
        raise ValueError("no definition with ___ of a word in the vocabulary")
    passages = [passage for _, passage in read]
    candidates = np.nonzero(able)[0]
    predictions = predict(model, passages, baselines)
    answers = np.array([row for row, _ in read])
    ranks = _rank(predictions, candidates, answers, _last_mentions(passages))
    return Definitions(
        words=len(read),
        unknown=len(given) - len(known),
        without_gap=len(known) - len(read),
        candidates=len(candidates),
        ranks={name: RankSummary.of(values) for name, values in ranks.items()},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Correlation:
    """A mean of Spearman's coefficients, with a 95 % interval over resampled words."""

    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """Correlation of predicted similarities with human ratings."""

    trials: int
    words: int
    """Number of invented words."""
    unknown_probes: float
    """Share of the probes that are not in the vocabulary."""
    few_probes: int
    """Trials with fewer than two known probes. These and the next two count as 0."""
    constant: int
    """Trials whose ratings are all the same."""
    without_gap: int
    """Trials without ___."""
    correlations: dict[str, Correlation]


def trials(
    model: Scorer, given: Sequence[Trial], baselines: Mapping[str, WordBaseline], *, seed: int = 0
) -> Trials:
    """Correlate the ratings of each trial's probes with their cosines after its texts."""
    lexicon = Lexicon(model.vocabulary)
    probes = [np.array([lexicon.row(probe) for probe in trial.probes]) for trial in given]
    passages = [gap_passage(trial.texts, lexicon) for trial in given]
    constant = [len(set(trial.ratings)) < 2 for trial in given]
    few = [int((rows != UNK).sum()) < 2 for rows in probes]
    read = {
        n: passage
        for n, passage in enumerate(passages)
        if passage is not None and not constant[n] and not few[n]
    }
    last = _last_mentions(list(read.values()))
    names = ["x", "y", "g", *baselines]
    values = {name: np.zeros(len(given)) for name in names}
    for name, found in predict(model, list(read.values()), baselines).items() if read else ():
        for n, vector in zip(read, found.vectors[last], strict=True):
            cosines = nn.functional.cosine_similarity(vector.unsqueeze(0), found.words[probes[n]])
            near, unknown = cosines.double().numpy(), probes[n] == UNK
            near = np.where(unknown, near[~unknown].mean(), near)
            values[name][n] = spearman(near, np.array(given[n].ratings))
    groups = [trial.group for trial in given]
    return Trials(
        trials=len(given),
        words=len(set(groups)),
        unknown_probes=float((np.concatenate(probes) == UNK).mean()),
        few_probes=sum(few),
        constant=sum(constant),
        without_gap=sum(passage is None for passage in passages),
        correlations={name: _correlation(values[name], groups, seed) for name in names},
    )


def _correlation(
    values: Float[np.ndarray, " trials"], groups: Sequence[str], seed: int
) -> Correlation:
    """The mean, with an interval over groups drawn with replacement."""
    names, which = np.unique(np.array(groups), return_inverse=True)
    drawn = resampled(len(names), seed)
    means = (drawn @ np.bincount(which, values)) / (drawn @ np.bincount(which).astype(np.float64))
    return Correlation(mean=float(values.mean()), interval=interval(means))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """Spearman's coefficients of cosines of word embeddings with human similarity ratings."""

    pairs: int
    left_out: int
    """Pairs with a word that is not in the vocabulary."""
    x: float
    y: float


def pairs(model: Scorer, given: Sequence[tuple[str, str, float]]) -> Pairs:
    """Correlate similarities with the cosines of x and of y."""
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
    return Pairs(pairs=int(known.sum()), left_out=int((~known).sum()), x=x, y=y)


def spearman(a: Float[np.ndarray, " _"], b: Float[np.ndarray, " _"]) -> float:
    """Spearman's coefficient, with mean ranks for ties; 0 if either side is constant."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a value is not finite, expected numbers to correlate")
    if not (np.ptp(a) and np.ptp(b)):
        return 0.0
    ordered = [(np.sort(values), values) for values in (a, b)]
    # Twice the mean rank minus 1: the number of smaller values plus that of values not larger.
    ranks = [np.searchsorted(s, v) + np.searchsorted(s, v, side="right") for s, v in ordered]
    return float(np.corrcoef(ranks)[0, 1])
