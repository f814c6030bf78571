"""A measure of meaning: how near x_e is to the embedding the word would have had.

Beyond the paper. After each mention of an entity whose word is known, candidates w are ranked by

    cos(x_e, x_w)    and by    cos(y_e, y_w),    x_e and y_e of Eqs. 9 and 10.

A rank is 1 plus the number of others that are as near or nearer: ties count against the model.
Beside it stand guesses of other kinds, all from the same mentions, mean over those read so far:

    bag of context    mean of a / (a + p(c)) x_c over the context words c, less its projection on
                      the first principal component (SIF; Arora et al. 2017)
    a la carte        A u, with u the mean of x_c over the context words c and A the least
                      squares map from the u of words to their x (Khodak et al. 2018)
    encoder           x_hat of a pretrained encoder (`Gaps`)

and, for ranks, the most frequent words. The context of a mention are the known words of its
sentence, up to ten on each side; mentions of entities are none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dntm.corpus.entities import CLOSED, Lexicon
from dntm.corpus.vocabulary import UNK, Vocabulary, entity_rows
from dntm.evaluation.completion import CUTS, Contexts
from dntm.evaluation.passages import Passage, Tokens, Trial, gap_passage, hide
from dntm.evaluation.uncertainty import RESAMPLES

FREQUENT = 100
"""So many of the most frequent words are neither hidden nor candidates."""
MENTIONS = (1, 2, 4, 8)
"""After how many mentions ranks are told."""
SMOOTHING = 1e-3
"""SIF's a."""
WINDOW = 10
"""Context words on each side."""
BATCH = 32
"""Passages read at once; what comes out does not depend on it."""


@dataclass(frozen=True, slots=True)
class MentionEmbeddings:
    """The embeddings of a document's entities after each of their mentions, in reading order."""

    row: Int[np.ndarray, " mentions"]
    """The entity's."""
    x: Float[Tensor, "mentions embedding_dim"]
    y: Float[Tensor, "mentions hidden_dim"]


@runtime_checkable
class MeaningModel(Protocol):
    """What is asked of a model; `dntm.model.text_model.TextModel` is one."""

    vocabulary: Vocabulary

    def nameable(self) -> Bool[np.ndarray, " vocabulary"]:
        """Which rows an entity can be named by."""

    def word_embeddings(self) -> tuple[Tensor, Tensor]:
        """x_w and y_w of every row."""

    def mention_embeddings(
        self, documents: Iterable[Sequence[Sequence[int]]]
    ) -> Iterator[MentionEmbeddings]:
        """For every mention of every document x_e and y_e after it."""


@runtime_checkable
class Way(Protocol):
    """A guess at what entities mean."""

    @property
    def words(self) -> Float[Tensor, "vocabulary dim"]:
        """What the guesses are compared with, by rows of the model's vocabulary."""

    def __call__(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        """The guess after each mention that is asked for, in reading order."""


@dataclass(frozen=True)
class ContextWords:
    """Guesses from the words around mentions, in any order."""

    words: Float[Tensor, "vocabulary dim"]
    weights: Float[Tensor, " vocabulary"]
    """0 for rows that are no words."""
    projection: Float[Tensor, "dim dim"]
    """What the mean over mentions is multiplied with."""

    def __call__(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        """Means over the mentions so far."""
        sentences, which, entities = _mentioning(passages)
        found = context_vectors(sentences, self.words, self.weights)
        return _running_mean(found.index_select(0, which), entities) @ self.projection.t()


@dataclass(frozen=True)
class Gaps:
    """Guesses of whoever fills gaps in sentences, such as a pretrained encoder."""

    words: Float[Tensor, "vocabulary dim"]
    contexts: Contexts
    rows: Int[np.ndarray, " vocabulary"]
    """The rows of its own vocabulary; that of <unk> for entities."""

    def __call__(self, passages: Sequence[Passage]) -> Float[Tensor, "mentions dim"]:
        """Means over the mentions so far."""
        sentences, which, entities = _mentioning(passages)
        inside = [self.rows[np.asarray(sentence[1:-1])] for sentence in sentences]
        # <bos> and <eos> of the sentences before it, and its own <bos>, have no gap.
        ends = np.cumsum([0, *map(len, sentences)])
        sentence = np.searchsorted(ends, which.numpy(), side="right") - 1
        found = self.contexts(inside)
        at = which - torch.from_numpy(2 * sentence + 1)
        return _running_mean(found.index_select(0, at), entities)


def _mentioning(
    passages: Sequence[Passage],
) -> tuple[list[Sequence[int]], Int[Tensor, " mentions"], list[tuple[int, int]]]:
    """The sentences with a mention that is asked for; of each the token among all; who it is."""
    sentences: list[Sequence[int]] = []
    which: list[int] = []
    entities: list[tuple[int, int]] = []
    tokens = 0
    for number, passage in enumerate(passages):
        last = -1
        for s, position, entity in passage.mentions():
            if s != last:
                sentences.append(passage.sentences[s])
                tokens += len(sentences[-1])
            last = s
            which.append(tokens - len(sentences[-1]) + position)
            entities.append((number, entity))
    return sentences, torch.tensor(which, dtype=torch.int64), entities


def _running_mean(
    values: Float[Tensor, "mentions dim"], entities: Sequence[tuple[int, int]]
) -> Float[Tensor, "mentions dim"]:
    """The mean over an entity's mentions up to each of them."""
    means = torch.empty_like(values)
    own: dict[tuple[int, int], list[int]] = {}
    for mention, entity in enumerate(entities):
        own.setdefault(entity, []).append(mention)
    for mentions in own.values():
        count = torch.arange(1, len(mentions) + 1, dtype=values.dtype)
        means[mentions] = values[mentions].cumsum(0) / count.unsqueeze(1)
    return means


def context_vectors(
    sentences: Sequence[Sequence[int]],
    words: Float[Tensor, "vocabulary dim"],
    weights: Float[Tensor, " vocabulary"],
) -> Float[Tensor, "tokens dim"]:
    """For each token the mean of weight times embedding over the words around it.

    Rows of weight 0 are no words; where there is no word around, the mean is 0.
    """
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    rows = torch.tensor([row for sentence in sentences for row in sentence], dtype=torch.int64)
    end = np.repeat(np.cumsum(lengths), lengths)
    start = end - np.repeat(lengths, lengths)
    here = np.arange(len(rows))
    low = torch.from_numpy(np.maximum(start, here - WINDOW))
    high = torch.from_numpy(np.minimum(end, here + WINDOW + 1))
    weight = weights[rows].double()
    values = torch.cat((weight.unsqueeze(1) * words[rows].double(), (weight > 0).unsqueeze(1)), 1)
    sums = torch.cat((torch.zeros_like(values[:1]), values.cumsum(0)))
    around = sums[high] - sums[low] - values
    return (around[:, :-1] / around[:, -1:].clamp(min=1)).to(words.dtype)


@dataclass(frozen=True)
class Fitted:
    """What the ways that know context words have learned from a text."""

    bag: ContextWords
    a_la_carte: ContextWords


def fit(
    texts: Sequence[Sequence[Sequence[int]]], model: MeaningModel, *, counted: bool = True
) -> Fitted:
    """Fit both to a text; without `counted`, p(w) is not the text's but Zipf's, by row.

    The principal component is that of the contexts of the words that can be hidden; of the map's
    targets, all words that can be named, each counts by the logarithm of its frequency.
    """
    x, nameable = model.word_embeddings()[0], torch.from_numpy(model.nameable())
    first = entity_rows(model.vocabulary.entities).stop
    is_word = torch.ones(len(x), dtype=x.dtype)
    is_word[:first] = 0
    rows = torch.tensor(
        [r for text in texts for sentence in text for r in sentence], dtype=torch.int64
    )
    frequency = torch.bincount(rows, minlength=len(x)).to(x.dtype) * is_word
    if not counted:
        frequency[first:] = 1 / torch.arange(1, len(x) - first + 1, dtype=x.dtype)
    sif = is_word * SMOOTHING / (SMOOTHING + frequency / frequency.sum().clamp(min=1e-30))
    hidden = nameable.clone()
    hidden[: first + FREQUENT] = False
    sums = torch.zeros(x.shape, dtype=torch.float64)
    counts = torch.zeros(len(x), dtype=torch.float64)
    moments = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    for start in range(0, len(texts), BATCH):
        sentences = [sentence for text in texts[start : start + BATCH] for sentence in text]
        flat = torch.tensor([r for sentence in sentences for r in sentence], dtype=torch.int64)
        targets = nameable[flat].nonzero().squeeze(1)
        means = context_vectors(sentences, x, is_word).index_select(0, targets)
        sums.index_add_(0, flat[targets], means.double())
        counts.index_add_(0, flat[targets], torch.ones(len(targets), dtype=torch.float64))
        bags = context_vectors(sentences, x, sif)[hidden[flat]]
        moments += (bags.t() @ bags).double()
    component = torch.linalg.eigh(moments)[1][:, -1].to(x.dtype)
    same = torch.eye(len(component), dtype=x.dtype)
    removal = same - torch.outer(component, component) if moments.any() else same
    return Fitted(
        ContextWords(x, sif, removal),
        ContextWords(x, is_word, _least_squares(sums, counts, x)),
    )


def _least_squares(
    sums: Float[Tensor, "vocabulary dim"],
    counts: Float[Tensor, " vocabulary"],
    x: Float[Tensor, "vocabulary dim"],
) -> Float[Tensor, "dim dim"]:
    """The A of least sum over w of log(count_w) |x_w - A u_w|^2."""
    seen = (counts > 1).nonzero().squeeze(1)
    root = counts[seen].log().sqrt().unsqueeze(1)
    u = sums[seen] / counts[seen].unsqueeze(1)
    found, *_ = np.linalg.lstsq((root * u).numpy(), (root * x[seen].double()).numpy(), rcond=None)
    return torch.from_numpy(found.T.copy()).to(x.dtype)


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
    """By way, then by the number of mentions read: 1, 2, 4, 8 (exactly), 2+ (from the second on);
    where there are such cases."""


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
    counts, ranks = [], []
    for batch in _batches(progress(passages)):
        counts += [count for passage in batch for count in _counts(passage)]
        answers = [p.asked[entity] for p in batch for _, _, entity in p.mentions()]
        ranks.append(ranker.ranks(batch, np.array(answers), slice(None)))
    count = np.array(counts)
    groups = {str(n): count == n for n in MENTIONS} | {"2+": count >= 2}
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
        self.ways = ("x", "y", *others)
        self.place = np.full(len(model.vocabulary), -1)
        self.place[candidates] = np.arange(len(candidates))
        rows = torch.from_numpy(candidates)
        tables = (*model.word_embeddings(), *(way.words for way in others.values()))
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
        guesses = [torch.cat(x), torch.cat(y), *(way(batch) for way in self.others.values())]
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
