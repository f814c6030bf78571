"""Standard errors and the bootstrap, with scipy as the oracle where it has one."""

import numpy as np
import pytest
from scipy import stats

from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.cloze import ClozeRecords, ClozeText
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import Records
from dntm.evaluation.uncertainty import (
    DocumentSums,
    cloze_sums,
    document_names,
    group_sums,
    mean_and_error,
    paired_bootstrap,
    stacked,
    whole_documents,
)
from dntm.model.scorer import Completions

RNG = np.random.default_rng(11)
TEXTS = [
    AnonymizedDocument(name=name, sentences=[[1, "met", 2], [2, "left"] * repeats])
    for name, repeats in (("c", 1), ("a", 3), ("b", 2))
]
PLAIN = AnonymizedDocument(name="plain", sentences=[["no", "entity"]])


def run(seed: int) -> Records:
    rng = np.random.default_rng(seed)
    documents = [*TEXTS, PLAIN]
    tokens = [sum(len(s) + 1 for s in d.sentences) for d in documents]
    return Records.of(documents, [-rng.exponential(size=count) for count in tokens])


def sums(documents: int, shift: float, seed: int, seeds: int = 2) -> DocumentSums:
    """Perplexity sums of random documents; `shift` nats a token more than a common part."""
    common, own = np.random.default_rng(0), np.random.default_rng(seed)
    counts = common.integers(20, 60, size=documents)
    mean = 2 + common.normal(size=documents) + shift
    mean = mean + 0.1 * own.normal(size=(seeds, documents))
    names = tuple(f"d{i}" for i in range(documents))
    return DocumentSums(names, mean * counts, counts, perplexity=True)


def perplexity(sums: DocumentSums, drawn: np.ndarray) -> float:
    tokens = sum(sums.counts[d] for d in drawn)
    means = [sum(row[d] for d in drawn) / tokens for row in sums.sums]
    return float(np.mean(np.exp(means)))


def test_the_standard_error_is_scipys_and_one_seed_has_none() -> None:
    values = RNG.normal(size=(3, 4))

    mean, error = mean_and_error(values)

    np.testing.assert_allclose(mean, values.mean(0))
    np.testing.assert_allclose(error, stats.sem(values))
    assert np.isnan(mean_and_error(values[:1])[1]).all()


def test_document_sums_add_up_to_the_groups_perplexity() -> None:
    runs = [run(1), run(2)]

    found = stacked([group_sums(run, "reappearing") for run in runs])

    assert found.documents == ("a", "b", "c")
    assert found.counts.tolist() == [3, 2, 1]
    for row, records in zip(found.sums, runs, strict=True):
        assert row.sum() == pytest.approx(score_groups(records)["reappearing"]["nats"])
    comparison = paired_bootstrap(found, found)
    expected = np.mean([score_groups(r)["reappearing"]["perplexity"] for r in runs])
    assert comparison.baseline == pytest.approx(expected)


def test_cloze_sums_add_up_to_the_mean_quantile() -> None:
    texts = [ClozeText.of(document) for document in TEXTS]
    count = [sum(len(gap.candidates) for gap in text.gaps) for text in texts]
    records = ClozeRecords.of(texts, [Completions(RNG.normal(size=n), np.zeros(n)) for n in count])

    found = cloze_sums(records)

    assert found.sums.sum() / found.counts.sum() == pytest.approx(records.quantile.mean())


def test_the_bootstrap_interval_is_scipys() -> None:
    a, b = sums(40, 0.0, seed=1), sums(40, -0.1, seed=2)

    ours = paired_bootstrap(a, b, seed=3)

    def difference(drawn: np.ndarray) -> float:
        return perplexity(b, drawn) - perplexity(a, drawn)

    theirs = stats.bootstrap(
        (np.arange(40),), difference, n_resamples=2000, method="percentile", vectorized=False,
        rng=np.random.default_rng(4),
    )  # fmt: skip
    assert ours.difference == pytest.approx(difference(np.arange(40)))
    assert ours.ratio == pytest.approx(ours.other / ours.baseline)
    interval = theirs.confidence_interval
    width = interval.high - interval.low
    assert ours.difference_interval == pytest.approx(tuple(interval), abs=0.1 * width)


def test_parts_of_a_document_are_drawn_together() -> None:
    sums, counts = np.array([[1.0, 2.0, 4.0]]), np.array([10, 20, 40])
    parts = DocumentSums(("a/1", "a/2", "b/1"), sums, counts, perplexity=True)

    whole = whole_documents(parts, document_names({"settings": {"max_sentences": 2}}))

    assert whole.documents == ("a", "b")
    assert (whole.counts.tolist(), whole.sums.tolist()) == ([30, 40], [[3, 4]])


@pytest.mark.parametrize(
    ("settings", "name", "document"),
    [
        ({"max_sentences": 28}, "GUM_bio/2", "GUM_bio"),
        ({"max_sentences": 0, "reading": {"format": "jsonlines"}}, "news:2", "news:2"),
        ({"max_sentences": None, "reading": {"format": "conll2012"}}, "bc/x:1", "bc/x"),
        ({"max_sentences": 9, "reading": {"format": "conll2012"}}, "bc/x:1/2", "bc/x"),
        ({"joined": {}}, "ontogum/GUM_bio/2", "ontogum/GUM_bio"),
        ({"joined": {}}, "ontonotes/bc/x:1/2", "ontonotes/bc/x"),
        ({"stories": 3}, "storyworld-test-2", "storyworld-test-2"),
    ],
)
def test_the_document_of_a_part_follows_from_how_the_dataset_was_made(
    settings: dict[str, object], name: str, document: str
) -> None:
    assert document_names({"settings": settings})(name) == document


def test_what_is_no_pair_is_refused() -> None:
    a, fewer = sums(5, 0.0, seed=1), sums(4, 0.0, seed=1)

    with pytest.raises(ValueError, match="expected a pair"):
        paired_bootstrap(a, fewer)
    with pytest.raises(ValueError, match="expected a pair"):
        paired_bootstrap(a, DocumentSums(a.documents, a.sums, a.counts, perplexity=False))
    with pytest.raises(ValueError, match="have scored different texts"):
        stacked([a, fewer])
    with pytest.raises(ValueError, match="'every' is not a valid Group"):
        group_sums(run(1), "every")


def test_a_baseline_that_is_always_wrong_has_a_difference_but_no_ratio() -> None:
    counts = np.full(3, 2)
    wrong, right = (
        DocumentSums(("a", "b", "c"), value * counts[None].astype(float), counts, perplexity=False)
        for value in (0.0, 1.0)
    )

    found = paired_bootstrap(wrong, right)

    assert found.difference == 1
    assert np.isnan(found.ratio)
