"""The n-gram model and the neural cache against their definitions, one token at a time."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.vocabulary import BOS, EOS, Vocabulary
from dntm.model.baselines import neural_cache
from dntm.model.baselines.neural_cache import NeuralCache
from dntm.model.baselines.ngram import FALLBACK, ORDER, NGram
from dntm.model.scorer import Scorer
from tests.model.small import build

WORDS = Vocabulary(("a", "b", "c", "d", "e"), entities=2)
ROWS = len(WORDS)
CACHED = Vocabulary(("a", "b", "c", "d", "e", "f"), entities=3)
TEXT = AnonymizedDocument(
    name="t", sentences=[[1, "a", 2], [3, "b", 1], ["c", 4, "zork", 1], [2, "a", 4, 3], ["a", 4]]
)
NGramRows = tuple[int, ...]


def sentences(count: int, seed: int) -> list[list[int]]:
    """Sentences in which words follow each other unevenly."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        rows, row = [], 3
        for _ in range(rng.integers(1, 9)):
            row = int((row + rng.choice([1, 1, 1, 2, 3, 5])) % (ROWS - 3)) + 3
            rows.append(row if rng.random() > 0.1 else 0)
        found.append([BOS, *rows, EOS])
    return found


def ngram(text: list[list[int]]) -> NGram:
    return NGram(np.array([row for sentence in text for row in sentence]), WORDS)


class PlainKneserNey:
    """Modified Kneser-Ney smoothing as Chen and Goodman define it."""

    def __init__(self, text: list[list[int]]) -> None:
        counts: Counter[NGramRows] = Counter(
            tuple(s[i : i + n])
            for s in text
            for n in range(1, ORDER + 1)
            for i in range(len(s) - n + 1)
        )
        del counts[(BOS,)]
        before = Counter(rows[1:] for rows in counts)
        self.a: dict[NGramRows, int] = {
            rows: count if len(rows) == ORDER or rows[0] == BOS else before[rows]
            for rows, count in counts.items()
        }
        self.D = {n: self.discounts(n) for n in range(1, ORDER + 1)}

    def discounts(self, n: int) -> list[float]:
        counts = Counter(a for rows, a in self.a.items() if len(rows) == n)
        if not (counts[1] and counts[2] and counts[3]):
            return [0, *FALLBACK]
        y = counts[1] / (counts[1] + 2 * counts[2])
        found = [k - (k + 1) * y * counts[k + 1] / counts[k] for k in (1, 2, 3)]
        if not all(0 < d <= k for k, d in enumerate(found, start=1)):
            return [0, *FALLBACK]
        return [0, *found]

    def p(self, row: int, context: NGramRows) -> float:
        if len(context) >= ORDER:
            context = context[-ORDER + 1 :]
        n = len(context) + 1
        lower = self.p(row, context[1:]) if context else 1 / (ROWS - 1)
        follow = [(g, a) for g, a in self.a.items() if len(g) == n and g[:-1] == context]
        total = sum(a for _, a in follow)
        if not total:
            return lower
        gamma = sum(self.D[n][min(a, 3)] for _, a in follow) / total
        own = self.a.get((*context, row), 0)
        return max(own - self.D[n][min(own, 3)], 0) / total + gamma * lower


@pytest.mark.parametrize("count", [1, 4, 300])
def test_ngram_probabilities_are_those_of_the_definition(count: int) -> None:
    text, unseen = sentences(count, seed=1), sentences(12, seed=2)
    plain = PlainKneserNey(text)

    found = ngram(text).score_sentences(unseen)

    expected = [plain.p(s[i], tuple(s[:i])) for s in unseen for i in range(1, len(s))]
    np.testing.assert_allclose(np.exp(found), expected, atol=1e-12)
    if count == 300:
        assert all(plain.D[n][1:] != list(FALLBACK) for n in (3, 4, 5)), "the discounts are real"


@pytest.mark.parametrize("beginning", [[], [3], [3, 4, 5, 6, 7], [0, 0], [9, 9, 9, 9]])
def test_ngram_distributions_sum_to_one(beginning: list[int]) -> None:
    model, rows = ngram(sentences(40, seed=3)), [row for row in range(ROWS) if row != BOS]

    found = [np.exp(model.score_sentences([[BOS, *beginning, row]])[-1]) for row in rows]

    assert sum(found) == pytest.approx(1, abs=1e-12)


def test_an_ngram_model_of_documents_scores_every_token_and_end_of_sentence() -> None:
    documents = [AnonymizedDocument(name="d", sentences=[["a", 1, "b"], [1, "zork", 2]])] * 3

    model = NGram.of(documents, WORDS)

    rows = [[BOS, 5, 3, 6, EOS], [BOS, 3, 0, 4, EOS]]
    np.testing.assert_array_equal(
        next(model.score(documents)), ngram(rows * 3).score_sentences(rows)
    )
    assert model.parameters == len(PlainKneserNey(rows * 3).a) + 1, "<bos> is counted too"


def states(scorer: Scorer) -> tuple[list[float], list[Tensor]]:
    """Log-probability and h of each predicted token, read one sentence at a time."""
    log_p, h = list[float](), list[Tensor]()
    for end in range(1, len(TEXT.sentences) + 1):
        # The last sentence only makes the part evict like the document; it is not scored.
        part = AnonymizedDocument(name="", sentences=[*TEXT.sentences[:end], [TEXT.largest]])
        [found] = scorer.states([part])
        log_p += found.log_p[len(log_p) : -2].tolist()
        h += found.h[len(h) : -2]
    return log_p, h


@pytest.mark.parametrize("size", [4, 10_000])
@pytest.mark.parametrize("core", ["lstm", "transformer"])
def test_a_cache_is_what_a_loop_over_earlier_tokens_says(
    core: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neural_cache, "SIZE", size)
    monkeypatch.setattr(neural_cache, "CHUNK", 3)
    scorer = Scorer(build("both", "gru-relu", core=core), CACHED)
    log_p, h = states(scorer)

    [found] = NeuralCache(scorer, theta=0.7, weight=0.3).score([TEXT])

    # Entities are values of their own, whatever slots they have; all unknown words are one value.
    tokens = [t for sentence in TEXT.sentences for t in [*sentence, "<eos>"]]
    values = [t if t != "zork" else "<unk>" for t in tokens]
    for t, value in enumerate(values):
        p = np.exp(log_p[t])
        if t:
            mass: dict[Token, float] = defaultdict(float)
            for i in range(max(0, t - size), t):
                mass[values[i]] += np.exp(0.7 * float(h[t] @ h[i]))
            p = 0.7 * p + 0.3 * mass[value] / sum(mass.values())
        assert found[t] == pytest.approx(np.log(p), abs=1e-12)


def test_tuning_finds_the_best_cache() -> None:
    parts: list[list[Token]] = [["a", 1, "b"], ["c", 2, "d", 1], ["b", 1, "a"], ["e", "f"]]
    orders = [(0, 1, 2, 0, 1, 1), (3, 2, 2, 3, 0, 3), (1, 0, 1, 3, 1, 2)]
    documents = [AnonymizedDocument(name="", sentences=[parts[i] for i in o]) for o in orders]
    scorer = Scorer(build("both", "gru"), CACHED)

    found = NeuralCache.tune(scorer, documents)

    def nats(theta: float, weight: float) -> float:
        cache = NeuralCache(scorer, theta=theta * found.theta, weight=weight * found.weight)
        return -float(sum(values.sum() for values in cache.score(documents)))

    assert 0 < found.weight < 1
    for theta, weight in ((1, 0), (1, 0.97), (1, 1.03), (0.7, 1), (1.45, 1)):
        assert nats(theta, weight) > nats(1, 1) - 1e-4
    assert nats(1, 1) < nats(1, 0)
