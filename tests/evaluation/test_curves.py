"""Figures 4 to 6 as group-bys over records."""

import numpy as np
import pytest

from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation import uncertainty
from dntm.evaluation.groups import Curve, curve_of
from dntm.evaluation.records import Records
from dntm.evaluation.uncertainty import band

TALE = AnonymizedDocument(
    name="tale", sentences=[[1, "met", 2, "."], ["then", 1, 2, "left"], ['"', 1]]
)
OTHER = AnonymizedDocument(name="other", sentences=[[1, 1], [1]])
SCORES = [-np.arange(1.0, 14.0), -np.arange(1.0, 6.0)]
RECORDS = Records.of([TALE, OTHER], SCORES)


@pytest.fixture
def every_bin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "FEWEST", 1)


def test_figure_4_takes_all_tokens_by_their_place_in_the_document() -> None:
    curve = curve_of(RECORDS, "position", edges=(1, 4, 10))

    assert curve.tokens.tolist() == [3 + 3, 6 + 2, 4]
    assert curve.nats.tolist() == [6 + 6, 39 + 9, 10 + 11 + 12 + 13]


def test_a_document_of_the_same_name_begins_anew() -> None:
    twice = Records.of([TALE, TALE], [SCORES[0], SCORES[0]])

    assert curve_of(twice, "position", edges=(1, 13, 14)).tokens.tolist() == [24, 2, 0]


def test_figure_5_takes_tokens_after_an_entity_by_its_occurrence() -> None:
    curve = curve_of(RECORDS, "occurrence", edges=(1, 2, 3))

    assert curve.tokens.tolist() == [3, 3, 2]
    assert curve.nats.tolist() == [2 + 4 + 2, 8 + 9 + 3, 13 + 5]


def test_figure_6_takes_reappearing_entities_by_their_antecedents() -> None:
    curve = curve_of(RECORDS, "antecedents", edges=(1, 2, 3))

    assert curve.tokens.tolist() == [2, 3, 0]
    assert curve.nats.tolist() == [2 + 4, 7 + 8 + 12, 0]


@pytest.mark.usefixtures("every_bin")
def test_perplexity_is_that_of_the_bins_tokens_and_nan_without_any() -> None:
    perplexity = band([curve_of(RECORDS, "antecedents", edges=(1, 2, 3))]).mean

    assert perplexity[:2].tolist() == pytest.approx([np.exp(3), np.exp(9)])
    assert np.isnan(perplexity[2])


def test_a_tiny_bin_keeps_its_count_but_has_no_perplexity() -> None:
    tokens = np.array([uncertainty.FEWEST, uncertainty.FEWEST - 1])

    found = band([Curve((1, 2), tokens, tokens * 2.0)])

    assert found.mean[0] == pytest.approx(np.exp(2))
    assert np.isnan(found.mean[1])


def test_a_band_is_the_mean_and_standard_error_over_runs() -> None:
    tokens = np.array([100, 100, 3])
    runs = [Curve((1, 2, 4), tokens, np.log(p) * tokens) for p in ([2, 8, 1], [4, 8, 1])]

    found = band(runs)

    assert found.labels == ["1", "2-3", "4+"]
    assert found.mean[:2].tolist() == pytest.approx([3, 8])
    assert found.standard_error[:2].tolist() == pytest.approx([1, 0])
    assert np.isnan([found.mean[2], found.standard_error[2]]).all()
    assert found.tokens is tokens


def test_runs_over_different_texts_have_no_band() -> None:
    with pytest.raises(ValueError, match="expected runs over the same text"):
        band([curve_of(RECORDS, "position"), curve_of(Records.of([OTHER], SCORES[1:]), "position")])
