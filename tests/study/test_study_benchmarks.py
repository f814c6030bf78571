"""Benchmarks that read the records of studies agree with the report."""

import csv
from pathlib import Path

from benchmarks import document_curve, study_groups
from dntm.study.config import StudyFolder
from dntm.study.results import read_results


def rows(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(table.read_text().splitlines()))


def test_a_curve_has_the_comparisons_of_the_report(finished: Path, tmp_path: Path) -> None:
    options = document_curve.CurveOptions(studies=(finished,), output=tmp_path / "curve.csv")
    document_curve.main(options)

    models = read_results(StudyFolder(finished)).models
    first = rows(tmp_path / "curve.csv")[0]
    assert (found := models["D-gru-relu"].compared_with(models["A"], first["group"]))
    assert (first["documents"], float(first["ratio"])) == ("30", found.ratio)


def test_the_groups_of_a_study_are_those_of_its_report(finished: Path, tmp_path: Path) -> None:
    study_groups.main(study_groups.GroupOptions(study=finished, output=tmp_path / "groups.csv"))

    models = read_results(StudyFolder(finished)).models
    found = {
        (row["model"], row["group"]): float(row["ratio"]) for row in rows(tmp_path / "groups.csv")
    }
    assert (following := models["D-gru-relu"].compared_with(models["A"], "following"))
    assert found["D-gru-relu", "following"] == following.ratio
    assert found["A", "first_mentions"] == 1
