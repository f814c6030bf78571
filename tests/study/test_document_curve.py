import csv
from pathlib import Path

from benchmarks.document_curve import CurveOptions, main
from dntm.study.config import StudyFolder
from dntm.study.results import read_results


def test_a_curve_has_the_comparisons_of_the_report(finished: Path, tmp_path: Path) -> None:
    main(CurveOptions(studies=(finished,), output=tmp_path / "curve.csv"))

    models = read_results(StudyFolder(finished)).models
    first = next(csv.DictReader((tmp_path / "curve.csv").read_text().splitlines()))
    assert (found := models["D-gru-relu"].compared_with(models["A"], first["group"]))
    assert (first["documents"], float(first["ratio"])) == ("30", found.ratio)
