"""The 5-gram model against the definition, with dictionaries and one n-gram at a time."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import BOS, EOS, Vocabulary
from dntm.model.kneser_ney import FALLBACK, ORDER, KneserNey, discounts

WORDS = Vocabulary(("a", "b", "c", "d", "e"), entities=2)
ROWS = len(WORDS)
Gram = tuple[int, ...]


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


class Plain:
    """Modified Kneser-Ney as Chen and Goodman define it."""

    def __init__(self, text: list[list[int]]) -> None:
        grams: Counter[Gram] = Counter(
            tuple(s[i : i + n])
            for s in text
            for n in range(1, ORDER + 1)
            for i in range(len(s) - n + 1)
        )
        del grams[(BOS,)]
        before = Counter(gram[1:] for gram in grams)
        self.a: dict[Gram, int] = {
            gram: count if len(gram) == ORDER or gram[0] == BOS else before[gram]
            for gram, count in grams.items()
        }
        self.D = {n: self.discounts(n) for n in range(1, ORDER + 1)}

    def discounts(self, n: int) -> list[float]:
        counts = Counter(a for gram, a in self.a.items() if len(gram) == n)
        if not (counts[1] and counts[2] and counts[3]):
            return [0, *FALLBACK]
        y = counts[1] / (counts[1] + 2 * counts[2])
        found = [k - (k + 1) * y * counts[k + 1] / counts[k] for k in (1, 2, 3)]
        if not all(0 < d <= k for k, d in enumerate(found, start=1)):
            return [0, *FALLBACK]
        return [0, *found]

    def p(self, row: int, context: Gram) -> float:
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
def test_scores_are_those_of_the_definition(count: int) -> None:
    text = sentences(count, seed=1)
    model = KneserNey(np.array([row for s in text for row in s]), WORDS)
    plain = Plain(text)
    unseen = sentences(12, seed=2)

    found = model.score(unseen)

    expected = [plain.p(s[i], tuple(s[:i])) for s in unseen for i in range(1, len(s))]
    np.testing.assert_allclose(np.exp(found), expected, atol=1e-12)
    if count == 300:
        assert all(plain.D[n][1:] != list(FALLBACK) for n in (3, 4, 5)), "the real discounts matter"


@pytest.mark.parametrize("beginning", [[], [3], [3, 4, 5, 6, 7], [0, 0], [9, 9, 9, 9]])
def test_every_distribution_sums_to_one(beginning: list[int]) -> None:
    text = sentences(40, seed=3)
    model = KneserNey(np.array([row for s in text for row in s]), WORDS)

    found = model.distribution([BOS, *beginning])

    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert found[BOS] == 0
    assert (np.delete(found, BOS) > 0).all()


def test_discounts_are_chen_and_goodmans() -> None:
    adjusted = np.repeat([1, 2, 3, 4, 9], [50, 20, 10, 5, 7])

    y = 50 / (50 + 2 * 20)
    assert discounts(adjusted) == pytest.approx(
        (1 - 2 * y * 20 / 50, 2 - 3 * y * 10 / 20, 3 - 4 * y * 5 / 10)
    )


def test_a_model_reads_back_as_it_was_and_says_what_is_wrong(tmp_path: Path) -> None:
    documents = [AnonymizedDocument(name="d", sentences=[["a", 1, "b"], [1, "zork", 2]])] * 3
    model = KneserNey.of(documents, WORDS)
    model.save(tmp_path / "best")

    again = KneserNey.load(tmp_path / "best")

    assert KneserNey.is_in(tmp_path / "best")
    assert not KneserNey.is_in(tmp_path)
    records, other = model.records(documents), again.records(documents)
    np.testing.assert_array_equal(records.log_probability, other.log_probability)
    assert len(records) == 24
    np.save(tmp_path / "best" / "text.npy", np.array([1, 99]))
    with pytest.raises(ValueError, match=r"text.npy holds rows that are not of its vocabulary"):
        KneserNey.load(tmp_path / "best")
