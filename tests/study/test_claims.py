"""The verdicts on the paper's claims follow from the numbers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dntm.evaluation.records import Records
from dntm.study.claims import Claim, claims
from dntm.study.results import read_results
from tests.study.synthetic import PAPER_LIKE, study

Numbers = Mapping[str, Mapping[str, float]]


def verdicts(folder: Path, numbers: Numbers, seeds: tuple[int, ...] = (1,)) -> dict[str, Claim]:
    found = claims(read_results(study(folder, numbers, seeds=seeds)))
    return {claim.statement: claim for claim in found}


def changed(name: str, **values: float) -> Numbers:
    return {**PAPER_LIKE, name: {**PAPER_LIKE[name], **values}}


OUTPUT = "Dynamic output helps to predict reappearing entities"
INPUT = "Dynamic input helps to predict the tokens that follow entities"
BOTH = "D is better than B and C"
GRU = "GRU merging is at least as good as max pooling"
LATEST = "Only the latest context is the worst merging function"
CLOZE = "Dynamic input is what helps in the cloze test"
ALL = "The dynamic models B, C and D are better than A"


def test_all_claims_hold_with_numbers_like_the_papers(tmp_path: Path) -> None:
    found = verdicts(tmp_path / "study", PAPER_LIKE)

    assert {statement: claim.verdict for statement, claim in found.items()} == dict.fromkeys(
        (ALL, OUTPUT, INPUT, BOTH, GRU, LATEST, CLOZE), "holds"
    )
    assert "30.0 with C-gru-relu, 50.0 with A (−40.0 %" in found[OUTPUT].finding


@pytest.mark.parametrize(
    ("statement", "numbers", "finding"),
    [
        (ALL, changed("B-gru-relu", other=90.0), "with B-gru-relu, "),
        (OUTPUT, changed("C-gru-relu", reappearing=55.0), "55.0 with C-gru-relu, 50.0"),
        (INPUT, changed("B-gru-relu", following=120.0), "B-gru-relu, 100.0 with A (+20.0 %"),
        (BOTH, changed("D-gru-relu", other=75.0), "with D-gru-relu, "),
        (GRU, changed("C-gru", reappearing=90.0), "worst C-gru ("),
        (LATEST, changed("C-max", other=99.0), "Max pooling for C"),
        (CLOZE, changed("B-gru-relu", quantile=0.4), "with A (−0."),
    ],
)
def test_a_claim_does_not_hold_with_the_opposite_numbers(
    tmp_path: Path, statement: str, numbers: Numbers, finding: str
) -> None:
    found = verdicts(tmp_path / "study", numbers)

    assert found[statement].verdict == "does not hold"
    assert finding in found[statement].finding


def test_a_claim_is_unclear_if_its_interval_includes_zero(tmp_path: Path) -> None:
    found = verdicts(tmp_path / "study", changed("C-gru-relu", reappearing=49.999))

    assert found[OUTPUT].verdict == "unclear"
    assert found[INPUT].verdict == "holds"


def worsen(path: Path, nats: float, *, reappearing: bool = False) -> None:
    records = Records.read(path)
    chosen = records.occurrence > 1 if reappearing else np.ones(len(records), dtype=np.bool_)
    replace(records, log_probability=records.log_probability - nats * chosen).write(path)


def test_a_claim_is_unclear_if_the_seeds_overlap(tmp_path: Path) -> None:
    """The documents agree, but one seed of the better model is worse than one of the other."""
    folder = study(tmp_path / "study", PAPER_LIKE)
    worsen(folder.path / "runs/A-2/records-test.csv", -0.55, reappearing=True)
    worsen(folder.path / "runs/D-max-2/records-test.csv", 0.06)

    found = {claim.statement: claim for claim in claims(read_results(folder))}

    assert "(−23.9 %, 95 % interval [−23.9, −23.9], seeds overlap)" in found[OUTPUT].finding
    assert found[OUTPUT].verdict == found[LATEST].verdict == "unclear"
    assert "Only latest for D" in found[LATEST].finding
    assert found[INPUT].verdict == "holds"


def test_a_claim_is_unclear_if_merging_functions_hardly_differ(tmp_path: Path) -> None:
    """From the means alone the claim would hold."""
    numbers = {name: dict(values) for name, values in PAPER_LIKE.items()}
    for letter in "BCD":
        numbers[f"{letter}-max"]["reappearing"] -= 0.999

    found = verdicts(tmp_path / "study", numbers)

    assert found[GRU].verdict == "unclear"


def test_claims_about_missing_models_are_not_tested(tmp_path: Path) -> None:
    few = {name: PAPER_LIKE[name] for name in ("A", "D-gru-relu")}

    found = verdicts(tmp_path / "study", few)

    assert found[ALL].verdict == found[LATEST].verdict == "not tested"
    assert found[ALL].finding == "No finished run of B-gru-relu and C-gru-relu."
    assert found[OUTPUT].verdict == "not tested"
    assert found[OUTPUT].finding == "No finished run of C-gru-relu."
