"""Results read from the files of a study."""

from pathlib import Path

import pytest

from dntm.evaluation.records import Records
from dntm.study.results import read_results
from tests.study.synthetic import PAPER_LIKE, in_parts, study

ONE = {"A": PAPER_LIKE["A"]}


def test_parts_of_a_document_count_as_one_document(tmp_path: Path) -> None:
    cut = read_results(study(tmp_path / "cut", ONE, texts=in_parts))
    whole = read_results(study(tmp_path / "whole", ONE))

    parts = Records.read(tmp_path / "cut/runs/A-1/records-test.csv").document
    assert len(set(parts)) == 3 * len(whole.models["A"].sums("all").documents)
    assert cut.models["A"].sums("all").documents == whole.models["A"].sums("all").documents
    assert cut.models["A"].sums("cloze").documents == whole.models["A"].sums("cloze").documents


def test_runs_that_counted_other_tokens_are_not_averaged(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE)
    path = folder.path / "runs/A-2/records-test.csv"
    header, _first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, *others]))

    with pytest.raises(ValueError, match="scored different texts"):
        read_results(folder).models["A"].sums("all")
