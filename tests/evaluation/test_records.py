from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.groups import Group, group_of, groups_of, score_groups
from dntm.evaluation.records import Records

DOCUMENT = AnonymizedDocument(
    name="tale", sentences=[[1, "met", 2, "."], ["then", 1, 2, "left"], ['"', 1]]
)
SCORES = -np.arange(1.0, 14.0)


@pytest.fixture
def records() -> Records:
    return Records.of([DOCUMENT], [SCORES])


def test_every_token_and_sentence_end_has_a_record(records: Records) -> None:
    assert records.token == (
        ["[1]", "met", "[2]", ".", "<eos>", "then", "[1]", "[2]", "left", "<eos>"]
        + ['"', "[1]", "<eos>"]
    )
    assert records.sentence.tolist() == [1] * 5 + [2] * 5 + [3] * 3
    assert records.position.tolist() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3]


def test_occurrences_and_antecedents_are_counted_as_a_reader_would(records: Records) -> None:
    assert records.occurrence.tolist() == [1, 0, 1, 0, 0, 0, 2, 2, 0, 0, 0, 3, 0]
    assert records.follows.tolist() == [0, 1, 0, 2, 0, 0, 0, 1, 2, 0, 0, 0, 1]
    assert records.follows_occurrence.tolist() == [0, 1, 0, 1, 0, 0, 0, 2, 2, 0, 0, 0, 3]
    assert records.antecedents.tolist() == [0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]


def test_groups_sum_what_the_paper_says(records: Records) -> None:
    scores = score_groups(records)

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


def test_a_file_of_records_reads_back_as_it_was(records: Records, tmp_path: Path) -> None:
    records.write(tmp_path / "records.csv")

    again = Records.read(tmp_path / "records.csv")

    assert again.token == records.token
    assert again.document == records.document
    np.testing.assert_array_equal(again.log_probability, records.log_probability)
    np.testing.assert_array_equal(again.follows_occurrence, records.follows_occurrence)


def test_a_model_that_scores_too_few_tokens_is_caught() -> None:
    with pytest.raises(ValueError, match="12 log-probabilities, expected 13"):
        Records.of([DOCUMENT], [SCORES[:-1]])


def test_no_perplexity_comes_from_numbers_that_are_not_finite() -> None:
    document = AnonymizedDocument(name="d", sentences=[["a"]])

    with pytest.raises(ValueError, match="not finite"):
        Records.of([document], [np.array([-1.0, np.nan])])


def test_a_single_token_is_listed_under_a_group_that_contains_it(records: Records) -> None:
    masks = groups_of(records.occurrence, records.follows)

    listed = [
        group_of(occurrence, follows)
        for occurrence, follows in zip(
            records.occurrence.tolist(), records.follows.tolist(), strict=True
        )
    ]

    assert all(masks[group][i] for i, group in enumerate(listed))
    assert Group.ALL not in listed
    assert listed[7] == Group.REAPPEARING  # an entity right after an entity
