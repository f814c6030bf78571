"""Records of predicted tokens, token groups (Table 2) and curves (Figures 4 to 6)."""

from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation import uncertainty
from dntm.evaluation.groups import CURVES, Curve, Group, curve_of, group_of, groups_of, score_groups
from dntm.evaluation.records import Records
from dntm.evaluation.uncertainty import band

TALE = AnonymizedDocument(
    name="tale", sentences=[[1, "met", 2, "."], ["then", 1, 2, "left"], ['"', 1]]
)
OTHER = AnonymizedDocument(name="other", sentences=[[1, 1], [1]])
SCORES = [-np.arange(1.0, 14.0), -np.arange(1.0, 6.0)]
BOTH = Records.of([TALE, OTHER], SCORES)
RECORDS = Records.of([TALE], SCORES[:1])


def test_every_token_and_sentence_end_has_a_record_that_counts_as_a_reader_would() -> None:
    assert RECORDS.token == (
        ["[1]", "met", "[2]", ".", "<eos>", "then", "[1]", "[2]", "left", "<eos>"]
        + ['"', "[1]", "<eos>"]
    )
    assert RECORDS.sentence.tolist() == [1] * 5 + [2] * 5 + [3] * 3
    assert RECORDS.position.tolist() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3]
    assert RECORDS.occurrence.tolist() == [1, 0, 1, 0, 0, 0, 2, 2, 0, 0, 0, 3, 0]
    assert RECORDS.follows.tolist() == [0, 1, 0, 2, 0, 0, 0, 1, 2, 0, 0, 0, 1]
    assert RECORDS.follows_occurrence.tolist() == [0, 1, 0, 1, 0, 0, 0, 2, 2, 0, 0, 0, 3]
    assert RECORDS.antecedents.tolist() == [0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]


def test_groups_sum_what_the_paper_says() -> None:
    scores = score_groups(RECORDS)

    assert {group: score["tokens"] for group, score in scores.items()} == {
        "all": 13,
        "reappearing": 3,
        "following": 5,
        "non_entities": 8,
        "first_mentions": 2,
    }
    assert scores["reappearing"]["nats"] == 7 + 8 + 12
    assert scores["following"]["nats"] == 2 + 4 + 8 + 9 + 13
    assert scores["all"]["perplexity"] == pytest.approx(np.exp(7))


def test_a_file_of_records_reads_back_as_it_was(tmp_path: Path) -> None:
    RECORDS.write(tmp_path / "records.csv")

    again = Records.read(tmp_path / "records.csv")

    assert again.token == RECORDS.token
    assert again.document == RECORDS.document
    np.testing.assert_array_equal(again.log_probability, RECORDS.log_probability)
    np.testing.assert_array_equal(again.follows_occurrence, RECORDS.follows_occurrence)


def test_too_few_scores_and_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="12 log-probabilities, expected 13"):
        Records.of([TALE], [SCORES[0][:-1]])
    with pytest.raises(ValueError, match="not finite"):
        Records.of([OTHER], [np.array([-1.0, -1.0, -1.0, -1.0, np.nan])])


def test_a_single_token_is_listed_under_a_group_that_contains_it() -> None:
    masks = groups_of(RECORDS.occurrence, RECORDS.follows)

    listed = list(map(group_of, RECORDS.occurrence.tolist(), RECORDS.follows.tolist()))

    assert all(masks[group][i] for i, group in enumerate(listed))
    assert Group.ALL not in listed
    assert listed[7] == Group.REAPPEARING  # an entity right after an entity


@pytest.mark.parametrize(
    ("figure", "edges", "sums"),
    [
        ("position", (1, 4, 10), ([3 + 3, 6 + 2, 4], [6 + 6, 39 + 9, 10 + 11 + 12 + 13])),
        ("occurrence", (1, 2, 3), ([3, 3, 2], [2 + 4 + 2, 8 + 9 + 3, 13 + 5])),
        ("antecedents", (1, 2, 3), ([2, 3, 0], [2 + 4, 7 + 8 + 12, 0])),
    ],
)
def test_figures_4_to_6_show_their_own_tokens(
    figure: str, edges: tuple[int, ...], sums: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CURVES, figure, (CURVES[figure][0], edges))
    curve = curve_of(BOTH, figure)

    assert (curve.tokens.tolist(), curve.nats.tolist()) == sums


def test_a_document_of_the_same_name_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Records.of([TALE, TALE], [SCORES[0], SCORES[0]])
    monkeypatch.setitem(CURVES, "position", (Group.ALL, (1, 13, 14)))

    assert curve_of(twice, "position").tokens.tolist() == [24, 2, 0]


def test_a_band_is_the_mean_and_standard_error_over_runs_without_tiny_bins() -> None:
    tokens = np.array([100, uncertainty.FEWEST, uncertainty.FEWEST - 1])
    runs = [Curve((1, 2, 4), tokens, np.log(p) * tokens) for p in ([2, 8, 1], [4, 8, 1])]

    found = band(runs)

    assert found.labels == ["1", "2-3", "4+"]
    assert found.mean[:2].tolist() == pytest.approx([3, 8])
    assert found.standard_error[:2].tolist() == pytest.approx([1, 0])
    assert np.isnan([found.mean[2], found.standard_error[2]]).all()
    assert found.tokens is tokens
