"""The report: its numbers and its formats."""

import csv
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dntm.evaluation.groups import curve_of, score_groups
from dntm.evaluation.records import Records
from dntm.evaluation.uncertainty import band, mean_and_error
from dntm.settings import to_yaml
from dntm.study.config import PAPER_TABLE_3, StudyConfig, StudyFolder
from dntm.study.report import as_html, as_markdown, make_report, write_report
from dntm.study.results import read_results
from dntm.study.tables import table_3
from tests.study.synthetic import PAPER_LIKE, in_parts, study

ONE = {"A": PAPER_LIKE["A"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    folder = study(tmp_path_factory.mktemp("made") / "study")
    write_report(folder)
    return folder


def parsed(page: str) -> ElementTree.Element:
    """The elements of a page, all of which are closed in order."""
    return ElementTree.fromstring(re.sub(r"<(meta|br)\b([^>]*)>", r"<\1\2/>", page))


def test_the_page_is_well_formed_and_refers_to_nothing_outside_itself(made: StudyFolder) -> None:
    page = (made.report / "report.html").read_text()

    attributes = [item for element in parsed(page).iter() for item in element.items()]

    names = [value for name, value in attributes if name == "id"]
    assert len(names) == len(set(names))
    references = [value for name, value in attributes if name.endswith(("href", "src"))]
    assert all(r.startswith("#") and r[1:] in names for r in references)
    assert "<script" not in page
    assert "@import" not in page
    known = r"http://www\.w3\.org|purl\.org|matplotlib\.org|creativecommons"
    assert all(re.search(known, url) for url in re.findall(r"https?://[^\s\"'<)]+", page))


def test_names_of_files_are_escaped(tmp_path: Path) -> None:
    name = "<b>x&y|*_.jsonl"
    folder = study(tmp_path / "study", ONE, corpus=str(tmp_path / name))

    report = make_report(read_results(folder))

    page, text = as_html(report), as_markdown(report)
    assert "&lt;b&gt;x&amp;y|*_.jsonl" in page
    assert "<b>" not in page
    assert r"\<b\>x&y\|\*\_.jsonl" in text
    assert parsed(page) is not None


def test_figures_are_well_formed_and_have_no_date(made: StudyFolder) -> None:
    for number in (4, 5, 6):
        text = (made.report / "figures" / f"figure-{number}.svg").read_text()

        root = ElementTree.fromstring(text)

        words = " ".join(root.itertext())
        assert "Perplexity" in words
        assert "Baseline (A)" in words
        assert "var(--model-a" in text
        assert not re.search(r"20\d\d-\d\d-\d\d", text)


def test_the_csv_file_of_a_figure_has_all_models(made: StudyFolder) -> None:
    with (made.report / "figures" / "figure-5.csv").open() as handle:
        rows = list(csv.DictReader(handle))

    runs = made.path / "runs"
    assert {row["model"] for row in rows} == {run.name[:-2] for run in runs.glob("*-1")}
    records = [Records.read(runs / f"C-max-{seed}/records-test.csv") for seed in (1, 2)]
    found = band([curve_of(run, "occurrence") for run in records])
    mine = [row for row in rows if row["model"] == "C-max"]
    assert [row["bin"] for row in mine] == found.labels
    assert [int(row["tokens"]) for row in mine] == found.tokens.tolist()
    values = [float(row["perplexity"] or "nan") for row in mine]
    np.testing.assert_allclose(values, found.mean, rtol=1e-12)
    errors = [float(row["standard_error"] or "nan") for row in mine]
    np.testing.assert_allclose(errors, found.standard_error, rtol=1e-12)
    assert not np.isnan(values).all()


def test_perplexities_are_those_of_the_records(made: StudyFolder) -> None:
    with (made.report / "tables" / "table-3.csv").open() as handle:
        rows = {row["model"]: row for row in csv.DictReader(handle)}

    for name in ("A", "C-max", "D-gru-relu"):
        runs = [Records.read(made.path / f"runs/{name}-{seed}/records-test.csv") for seed in (1, 2)]
        for group in ("all", "reappearing", "following", "non_entities"):
            values = np.array([score_groups(run)[group]["perplexity"] for run in runs])
            mean, error = mean_and_error(values)
            assert float(rows[name][group]) == pytest.approx(float(mean), rel=1e-12)
            assert float(rows[name][f"{group}_error"]) == pytest.approx(float(error), rel=1e-6)
            assert float(rows[name][f"{group}_paper"]) == PAPER_TABLE_3[name][group]


def test_the_sums_of_documents_add_up_to_the_tables(made: StudyFolder) -> None:
    with (made.report / "documents.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["model"], row["seed"]) == ("A", "1")]

    records = Records.read(made.path / "runs" / "A-1" / "records-test.csv")

    assert sum(int(row["all_tokens"]) for row in rows) == len(records)
    nats = -sum(float(row["all_nats"]) for row in rows)
    assert nats == pytest.approx(float(records.log_probability.sum()), abs=1e-3)


def test_the_best_of_each_block_is_bold_and_the_baseline_never(made: StudyFolder) -> None:
    table = table_3(read_results(made))

    bold = {(row.entries[0].text, row.entries[1].text) for row in table.rows if row.entries[4].bold}
    assert ("Only dynamic output (C)", "GRU-ReLU") in bold
    assert ("Only dynamic output (C)", "Max pooling") not in bold
    assert not any(name.startswith("Baseline") for name, _ in bold)
    assert table.rows[-1].entries[0].text == "Baseline (A)"


def test_a_partial_study_shows_dashes_and_names_what_is_missing(tmp_path: Path) -> None:
    few = {name: PAPER_LIKE[name] for name in ("A", "C-max")}
    folder = study(tmp_path / "study", few, seeds=(1,))

    report = write_report(folder)

    text = (folder.report / "report.md").read_text()
    assert "2 of 13 runs are finished" in text
    assert "Missing: B-gru-relu-1, B-gru-1" in text
    assert "| Only dynamic input (B) | GRU | –<br>paper 18.9M (14.2M) | –<br>" in text
    assert len(report.figures) == 3


def test_a_study_without_finished_runs_has_a_report(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", {})

    report = write_report(folder)

    assert report.figures == ()
    assert "0 of 26 runs are finished" in (folder.report / "report.html").read_text()


def test_a_report_never_replaces_another_folder(made: StudyFolder, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(ValueError, match="is not a report"):
        write_report(made, tmp_path)

    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_the_same_files_give_the_same_bytes_anywhere(made: StudyFolder, tmp_path: Path) -> None:
    write_report(made, tmp_path / "two")

    one, two = (
        {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.*")}
        for folder in (made.report, tmp_path / "two")
    )
    assert one == two
    assert len(one) == 3 + 2 * 3 + 5
    assert not any(str(made.path.parent).encode() in content for content in one.values())


def test_settings_stand_next_to_the_papers(tmp_path: Path) -> None:
    folder = study(tmp_path / "study", ONE)
    config = StudyConfig.from_yaml(folder.settings)
    model = replace(config.model, extensions=("salience",), hidden_dim=64)
    folder.settings.write_text(to_yaml(replace(config, model=model, seeds=(1,))))

    table = next(t for t in make_report(read_results(folder)).tables if t.key == "settings")

    assert {row["setting"]: (row["here"], row["paper"]) for row in table.data} == {
        "corpus": ("texts.jsonl", "ontonotes"),
        "text": ("none", "gigaword"),
        "model.hidden_dim": ("64", "512"),
        "model.extensions": ("salience", "none"),
    }


def test_changes_have_intervals_over_documents(made: StudyFolder) -> None:
    """Every reappearing entity has 40 % less perplexity, so every resample has too."""
    table = table_3(read_results(made))

    row = next(row for row in table.rows if row.entries[0].text == "Only dynamic output (C)")
    assert row.entries[4].text.startswith("30.0 ±")
    assert row.entries[4].notes == ("−40.0 % [−40.0, −40.0]", "paper 35.9 ± 3.7")


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
