"""A measure of meaning: how near x_e is to the embedding the word would have had.

Beyond the paper. After each mention of an entity whose word is known, candidates w are ranked by

    cos(x_e, x_w)    and by    cos(y_e, y_w),    x_e and y_e of Eqs. 9 and 10.

and by cos(g_e, x_w), with which readers are told what a word is taken for (`evaluation.topic`).
A rank is 1 plus the number of others that are as near or nearer: ties count against the model.
Beside it stand guesses of other kinds from the same mentions (`guesses`) and, for ranks, the most
frequent words.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.entities import CLOSED, Lexicon
from dntm.corpus.vocabulary import UNK, entity_rows
from dntm.evaluation.guesses import BATCH, CUTS, FREQUENT, MeaningModel, Way
from dntm.evaluation.passages import Passage, Tokens, Trial, gap_passage, hide
from dntm.evaluation.topic import Topic, with_topic
from dntm.evaluation.uncertainty import RESAMPLES

MENTIONS = (1, 2, 4, 8)
"""After how many mentions ranks are told."""
BANDS = (0, 1000, 3000)
"""Words are told apart by how many candidates are more frequent: below these, or as many."""


@dataclass(frozen=True, slots=True)
class RankSummary:
    """How near the right words were."""

    cases: int
    recall: dict[int, float]
    """Share of the cases in which the word was among the first 1, 10, 100."""
    reciprocal_rank: float
    median_rank: float

    @classmethod
    def of(cls, ranks: Int[np.ndarray, " cases"]) -> "RankSummary":
        """From the rank of each case, of which there is at least one."""
        recall = {cut: float((ranks <= cut).mean()) for cut in CUTS}
        return cls(len(ranks), recall, float((1 / ranks).mean()), float(np.median(ranks)))


@dataclass(frozen=True, kw_only=True, slots=True)
class HiddenWords:
    """How near hidden words were to the meaning of the entities they were read as."""

    parts: int
    words: int
    """Hidden ones, each part's counted for themselves."""
    mentions: int
    candidates: int
    ranks: dict[str, dict[str, RankSummary]]
    """By way, then by the number of mentions read: 1, 2, 4, 8 (exactly), 2+ (from the second on),
    and the last once more by how frequent the word is among the candidates, the most frequent being
    the first: 2+ of 1-1000, 2+ of 1001-3000, 2+ of 3001-10000; where there are such cases."""


def candidate_words(
    model: MeaningModel, count: int
) -> tuple[Int[np.ndarray, " candidates"], Bool[np.ndarray, " vocabulary"]]:
    """The rows of the most frequent words beyond the first 100, and which rows may be hidden.

    Words of closed classes are candidates, but never hidden.
    """
    able = model.nameable()
    able[: entity_rows(model.vocabulary.entities).stop + FREQUENT] = False
    rows = np.nonzero(able)[0][:count]
    if not len(rows):
        raise ValueError(f"the vocabulary has no word beyond its {FREQUENT} most frequent ones")
    labels = model.vocabulary.labels()
    hidden = np.zeros(len(able), dtype=np.bool_)
    hidden[[row for row in rows if labels[row].lower() not in CLOSED]] = True
    return rows, hidden


def hide_words(
    parts: Iterable[Tokens],
    words: Bool[np.ndarray, " vocabulary"],
    *,
    per_part: int,
    entities: int,
    seed: int,
) -> list[Passage]:
    """The parts in which there is something to hide, with up to `per_part` words hidden."""
    random = np.random.default_rng(seed)
    found = (hide(part, words, per_part, entities, random) for part in parts)
    return [passage for passage in found if passage is not None]


Progress = Callable[[Sequence[Passage]], Iterable[Passage]]


def hidden_words(
    model: MeaningModel,
    passages: Sequence[Passage],
    candidates: Int[np.ndarray, " candidates"],
    ways: Mapping[str, Way],
    progress: Progress = iter,
) -> HiddenWords:
    """Rank every hidden word among the candidates after each of its mentions."""
    if not passages:
        raise ValueError("no word of the texts can be hidden: expected known words that come again")
    ranker = _Ranker(model, candidates, ways)
    counts, ranks, hidden = [], [], []
    for batch in _batches(progress(passages)):
        counts += [count for passage in batch for count in _counts(passage)]
        answers = [p.asked[entity] for p in batch for _, _, entity in p.mentions()]
        ranks.append(ranker.ranks(batch, np.array(answers), slice(None)))
        hidden += answers
    count, place = np.array(counts), np.searchsorted(candidates, hidden)
    groups = {str(n): count == n for n in MENTIONS} | {"2+": count >= 2}
    for low, high in pairwise((*BANDS, max(len(candidates), BANDS[-1]))):
        band = (place >= low) & (place < high)
        groups[f"2+ of {low + 1}-{high}"] = (count >= 2) & band
    all_ranks = {way: np.concatenate([found[way] for found in ranks]) for way in ranks[0]}
    return HiddenWords(
        parts=len(passages),
        words=sum(len(passage.asked) for passage in passages),
        mentions=len(count),
        candidates=len(candidates),
        ranks={
            way: {name: RankSummary.of(r[mask]) for name, mask in groups.items() if mask.any()}
            for way, r in all_ranks.items()
        },
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Definitions:
    """How near words were to the meaning that their definitions gave."""

    words: int
    unknown: int
    """Words left out: the vocabulary lacks them, or they cannot be named."""
    without_gap: int
    """Words left out because nothing is said of ___."""
    candidates: int
    ranks: dict[str, RankSummary]


def definitions(
    model: MeaningModel, given: Sequence[tuple[str, str]], ways: Mapping[str, Way]
) -> Definitions:
    """Rank each word among all words that can be named once its definition is read."""
    lexicon, nameable = Lexicon(model.vocabulary), model.nameable()
    rows = [lexicon.row(word) for word, _ in given]
    known = [(row, text) for row, (_, text) in zip(rows, given, strict=True) if nameable[row]]
    read = [(row, gap_passage([text], lexicon)) for row, text in known]
    passages = [(row, passage) for row, passage in read if passage is not None]
    if not passages:
        raise ValueError("no definition says anything of ___ whose word is in the vocabulary")
    candidates = np.nonzero(nameable)[0]
    ranker = _Ranker(model, candidates, ways)
    ranks = []
    for start in range(0, len(passages), BATCH):
        answers, batch = zip(*passages[start : start + BATCH], strict=True)
        ranks.append(ranker.ranks(batch, np.array(answers), _last_mentions(batch)))
    return Definitions(
        words=len(passages),
        unknown=len(given) - len(known),
        without_gap=len(known) - len(passages),
        candidates=len(candidates),
        ranks={w: RankSummary.of(np.concatenate([r[w] for r in ranks])) for w in ranks[0]},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Correlation:
    """A mean of Spearman's coefficients and the middle 95 % of it over resampled words."""

    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """How near the meaning of invented words was to what people made of them."""

    trials: int
    words: int
    """Invented ones."""
    unknown_probes: float
    """Share of the probes that the vocabulary lacks."""
    few_probes: int
    """Trials with fewer than two known probes."""
    constant: int
    """Trials with ratings that are all the same."""
    without_gap: int
    """Trials that say nothing of ___. All of these three count as 0."""
    correlations: dict[str, Correlation]


def trials(
    model: MeaningModel, given: Sequence[Trial], ways: Mapping[str, Way], *, seed: int = 0
) -> Trials:
    """Correlate the ratings of each trial's probes with the cosines once its texts are read."""
    lexicon = Lexicon(model.vocabulary)
    probes = [np.array([lexicon.row(probe) for probe in trial.probes]) for trial in given]
    passages = [gap_passage(trial.texts, lexicon) for trial in given]
    constant = [len(set(trial.ratings)) < 2 for trial in given]
    few = [int((rows != UNK).sum()) < 2 for rows in probes]
    told = [
        number
        for number, passage in enumerate(passages)
        if passage is not None and not constant[number] and not few[number]
    ]
    ranker = _Ranker(model, np.zeros(0, dtype=np.int64), ways)
    found = {way: np.zeros(len(given)) for way in ranker.ways}
    for start in range(0, len(told), BATCH):
        numbers = told[start : start + BATCH]
        batch = [passage for n in numbers if (passage := passages[n]) is not None]
        for way, (vectors, words) in ranker.vectors(batch).items():
            for n, vector in zip(numbers, vectors[_last_mentions(batch)], strict=True):
                near = _cosines(vector, words[probes[n]])
                found[way][n] = spearman(
                    np.where(probes[n] == UNK, near[probes[n] != UNK].mean(), near),
                    np.array(given[n].ratings),
                )
    groups = [trial.group for trial in given]
    all_probes = np.concatenate(probes)
    return Trials(
        trials=len(given),
        words=len(set(groups)),
        unknown_probes=float((all_probes == UNK).mean()),
        few_probes=sum(few),
        constant=sum(constant),
        without_gap=sum(passage is None for passage in passages),
        correlations={way: _resampled(values, groups, seed) for way, values in found.items()},
    )


def _resampled(
    values: Float[np.ndarray, " trials"], groups: Sequence[str], seed: int
) -> Correlation:
    """The mean, and its interval when groups are drawn with replacement."""
    names, which = np.unique(np.array(groups), return_inverse=True)
    sums = np.bincount(which, values)
    counts = np.bincount(which).astype(np.float64)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES)
    low, high = np.quantile((drawn @ sums) / (drawn @ counts), [0.025, 0.975])
    return Correlation(mean=float(values.mean()), interval=(float(low), float(high)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """How well cosines of word embeddings go with judgements of similarity."""

    pairs: int
    left_out: int
    """Pairs with a word that the vocabulary lacks."""
    x: float
    """Spearman's coefficient; so is `y`."""
    y: float


def pairs(model: MeaningModel, given: Sequence[tuple[str, str, float]]) -> Pairs:
    """Correlate similarities with the cosines of x and of y."""
    lexicon = Lexicon(model.vocabulary)
    rows = np.array([[lexicon.row(a), lexicon.row(b)] for a, b, _ in given])
    known = (rows != UNK).all(1)
    if known.sum() < 2:
        raise ValueError(f"{known.sum()} pairs of words in the vocabulary, expected two or more")
    left, right = torch.from_numpy(rows[known]).t()
    ratings = np.array([rating for _, _, rating in given])[known]
    x, y = (
        spearman(nn.functional.cosine_similarity(w[left], w[right]).double().numpy(), ratings)
        for w in model.word_embeddings()
    )
    return Pairs(pairs=int(known.sum()), left_out=int((~known).sum()), x=x, y=y)


def spearman(a: Float[np.ndarray, " _"], b: Float[np.ndarray, " _"]) -> float:
    """Spearman's coefficient, ties having their mean rank; 0 where all of one are the same."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a number that is not finite, expected two rows of numbers to correlate")
    centred = [_mean_ranks(values) - (len(values) + 1) / 2 for values in (a, b)]
    length = np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    return float(centred[0] @ centred[1] / length) if length else 0.0


def _mean_ranks(values: Float[np.ndarray, " _"]) -> Float[np.ndarray, " _"]:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Float[np.ndarray, " _"] = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return ranks


class _Ranker:
    """The model and the ways beside it, over one set of candidates."""

    def __init__(
        self, model: MeaningModel, candidates: Int[np.ndarray, " _"], others: Mapping[str, Way]
    ) -> None:
        self.model = model
        self.others = others
        self.ways = ("x", "y", "g", *others)
        self.topic = Topic(model.word_embeddings()[0], model.vocabulary.entities)
        self.place = np.full(len(model.vocabulary), -1)
        self.place[candidates] = np.arange(len(candidates))
        rows = torch.from_numpy(candidates)
        x, y = model.word_embeddings()
        tables = (x, y, x, *(way.words for way in others.values()))
        self.tables = dict(zip(self.ways, tables, strict=True))
        self.candidates = {way: table[rows] for way, table in self.tables.items()}

    def vectors(self, batch: Sequence[Passage]) -> dict[str, tuple[Tensor, Tensor]]:
        """After each mention that is asked for the guess of each way, and the way's words."""
        x, y = [], []
        read = self.model.mention_embeddings([passage.sentences for passage in batch])
        for passage, found in zip(batch, read, strict=True):
            asked = torch.from_numpy(np.isin(found.row, list(passage.asked)))
            x.append(found.x[asked])
            y.append(found.y[asked])
        x_e, topics = torch.cat(x), [topics_of(passage, self.topic) for passage in batch]
        guesses = [x_e, torch.cat(y), with_topic(x_e, torch.cat(topics))]
        guesses += [way(batch) for way in self.others.values()]
        for name, guess in zip(self.ways, guesses, strict=True):
            if not torch.isfinite(guess).all():
                raise ValueError(f"{name}: a meaning that is not finite, expected numbers")
        return {
            name: (guess, self.tables[name]) for name, guess in zip(self.ways, guesses, strict=True)
        }

    def ranks(
        self,
        batch: Sequence[Passage],
        answers: Int[np.ndarray, " cases"],
        which: slice | list[int],
    ) -> dict[str, Int[np.ndarray, " cases"]]:
        """The rank of each answer, after `which` of the mentions."""
        place = self.place[answers]
        found = {
            way: rank_of(guess[which], self.candidates[way], place)
            for way, (guess, _) in self.vectors(batch).items()
        }
        return found | {"most frequent": place + 1}


def topics_of(passage: Passage, topic: Topic) -> Float[Tensor, "mentions dim"]:
    """After each mention that is asked for, what the entity's sentences have spoken of."""
    found: dict[int, Tensor] = {}
    counted: set[tuple[int, int]] = set()
    after = []
    for sentence, _, entity in passage.mentions():
        if (sentence, entity) not in counted:
            counted.add((sentence, entity))
            found[entity] = found.get(entity, 0) + topic.of(passage.sentences[sentence])
        after.append(found[entity])
    return torch.stack(after)


def rank_of(
    guesses: Float[Tensor, "cases dim"],
    words: Float[Tensor, "candidates dim"],
    answers: Int[np.ndarray, " cases"],
) -> Int[np.ndarray, " cases"]:
    """The rank of each answer, an index of a candidate, by cosine; words without a vector last."""
    scores = nn.functional.normalize(guesses, dim=1) @ nn.functional.normalize(words, dim=1).t()
    scores[:, ~words.any(1)] = -2
    if not torch.isfinite(scores).all():
        raise ValueError("a cosine that is not finite, expected embeddings of words to be numbers")
    right = scores.gather(1, torch.from_numpy(answers).unsqueeze(1))
    ranks: Int[np.ndarray, " cases"] = (scores >= right).sum(1).numpy()
    return ranks


def _cosines(
    guess: Float[Tensor, " dim"], words: Float[Tensor, "words dim"]
) -> Float[np.ndarray, " words"]:
    near = nn.functional.cosine_similarity(guess.unsqueeze(0), words)
    cosines: Float[np.ndarray, " words"] = near.double().numpy()
    return cosines


def _batches(passages: Iterable[Passage]) -> Iterator[list[Passage]]:
    batch: list[Passage] = []
    for passage in passages:
        batch.append(passage)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _counts(passage: Passage) -> list[int]:
    """Which mention of its entity each one is, from 1."""
    seen = dict.fromkeys(passage.asked, 0)
    counts = []
    for _, _, entity in passage.mentions():
        seen[entity] += 1
        counts.append(seen[entity])
    return counts


def _last_mentions(batch: Sequence[Passage]) -> list[int]:
    """The last mention of each passage, counted through them."""
    ends = np.cumsum([len(passage.mentions()) for passage in batch]) - 1
    return [int(end) for end in ends]
