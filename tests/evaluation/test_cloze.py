"""The cloze test: which gaps there are, how candidates are ranked, and what it comes to."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dntm.corpus.document import AnonymizedDocument, Gap
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.cloze import ClozeRecords, ClozeText, summarize_cloze
from dntm.model.scorer import Completions, Scorer
from tests.model.small import build

TALE = AnonymizedDocument(
    name="tale", sentences=[[1, "met", 1], [1, "saw", 2], ["then", 2, "left", 3, 3], [3, 1]]
)
TEXT = ClozeText.of(TALE)


def records(*likelihoods: float) -> ClozeRecords:
    """One gap among 1, 2 and 3, whose true entity is 2."""
    document = AnonymizedDocument(name="d", sentences=[[1, 2, 3], [2]])
    gap = np.array(likelihoods)
    return ClozeRecords.of([ClozeText.of(document)], [Completions(gap, np.zeros(3))])


def test_candidates_are_two_or_more_entities_of_earlier_sentences() -> None:
    alone = AnonymizedDocument(name="d", sentences=[[1], [1], [1, 2]])

    assert TEXT.gaps == (
        Gap(2, 1, 2, 2, (1, 2)),
        Gap(3, 0, 3, 3, (1, 2, 3)),
        Gap(3, 1, 1, 4, (1, 2, 3)),
    )
    assert ClozeText.of(alone).gaps == ()


@pytest.mark.parametrize(
    ("likelihoods", "rank", "quantile", "correct"),
    [
        ((-3.0, -1.0, -2.0), 1, 1.0, 1),
        ((-3.0, -2.0, -1.0), 2, 0.5, 0),
        ((-1.0, -3.0, -2.0), 3, 0.0, 0),
        ((-1.0, -1.0, -1.0), 3, 0.0, 0),
        ((-1.0, -1.0, -2.0), 2, 0.5, 0),
        ((-1.0, -1.0 + 1e-6, -2.0), 2, 0.5, 0),
    ],
)
def test_ties_count_against_the_model(
    likelihoods: tuple[float, ...], rank: int, quantile: float, correct: int
) -> None:
    found = records(*likelihoods)

    assert found.rank.tolist() == [rank]
    assert found.quantile.tolist() == [quantile]
    assert found.correct.tolist() == [correct]


def test_records_say_where_the_gap_is_and_rank_the_words_after_it_too() -> None:
    gap, rest = np.array([-1.0, -4.0] + [0.0] * 6), np.array([-3.0, -1.0] + [0.0] * 6)

    found = ClozeRecords.of([TEXT], [Completions(gap, rest)])

    assert (found.rank[0], found.rest_rank[0]) == (2, 1)
    assert (found.quantile[0], found.rest_quantile[0]) == (0.0, 1.0)
    assert found.margin[0] == pytest.approx(-1.0)
    assert found.document == ["tale"] * 3
    assert found.sentence.tolist() == [3, 4, 4]
    assert found.position.tolist() == [2, 1, 2]
    assert found.entity.tolist() == [2, 3, 1]
    assert found.occurrence.tolist() == [2, 3, 4]
    assert found.candidates.tolist() == [2, 3, 3]


def test_a_table_without_gaps_reads_back_and_has_no_mean(tmp_path: Path) -> None:
    ClozeRecords.of([], []).write(tmp_path / "cloze.csv")

    summary = summarize_cloze(ClozeRecords.read(tmp_path / "cloze.csv"))

    assert summary["gaps"] == 0
    assert np.isnan(summary["mean_quantile"])


def test_damaged_records_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "cloze.csv"
    records(-1.0, 0.0, -1.0).write(path)
    whole = path.read_text()

    path.write_text(whole.replace("d,2,", "d,two,"))
    with pytest.raises(ValueError, match=r"line 2: invalid literal for int.*'two'"):
        ClozeRecords.read(path)
    path.write_text(whole[:-10])
    with pytest.raises(ValueError, match=r"line 2: \d+ values, expected 12"):
        ClozeRecords.read(path)
    path.write_text(whole.replace("rank", "place"))
    with pytest.raises(ValueError, match="line 1: expected the columns document"):
        ClozeRecords.read(path)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_no_rank_comes_from_too_few_numbers_or_from_one_that_is_not_finite(wrong: float) -> None:
    with pytest.raises(ValueError, match="log-likelihoods that are not finite"):
        records(-1.0, wrong, -2.0)
    with pytest.raises(ValueError, match="7 log-likelihoods, expected 8"):
        ClozeRecords.of([TEXT], [Completions(np.zeros(8), np.zeros(7))])


def test_chance_is_what_guessing_comes_to() -> None:
    rng = np.random.default_rng(0)
    trials = 4000
    guesses = [Completions(rng.normal(size=8), rng.normal(size=8)) for _ in range(trials)]

    summary = summarize_cloze(ClozeRecords.of([TEXT] * trials, guesses))

    assert summary["gaps"] == 3 * trials
    assert summary["mean_quantile"] == pytest.approx(summary["chance_mean_quantile"], abs=0.015)
    assert summary["rest_mean_quantile"] == pytest.approx(0.5, abs=0.015)
    assert summary["accuracy"] == pytest.approx(summary["chance_accuracy"], abs=0.015)
    assert summary["reciprocal_rank"] == pytest.approx(summary["chance_reciprocal_rank"], abs=0.015)
    assert summary["chance_accuracy"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 3) / 3)


def test_entities_that_the_model_cannot_tell_apart_are_ties() -> None:
    model = build("baseline").float()
    with torch.no_grad():
        for table in (model.x.weight, model.output.weight, model.output.b):
            table[3:6] = table[3]

    scorer = Scorer(model, Vocabulary(tuple("abcdef"), entities=3))
    completions = scorer.complete([TEXT])

    assert ClozeRecords.of([TEXT], completions).quantile.tolist() == [0.0] * len(TEXT.gaps)
