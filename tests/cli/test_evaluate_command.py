"""`dntm evaluate`: the cloze test and the baselines."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from dntm.corpus.vocabulary import BOS
from dntm.evaluation.cloze import ClozeRecords
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import Records
from dntm.model.strings import StringReader
from tests.cli.running import SMALL, Capture, fails, run, stories


def build(folder: Path, clusters: list[list[list[int]]]) -> Path:
    """A dataset of stories in which Ann and Bo reappear, if they have a chain."""
    sentences = [["Ann", "met", "Bo"], ["she", "left"], ["he", "saw", "her"]]
    return stories(folder, sentences, clusters, train=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cloze")
    dataset = build(folder / "corpus", [[[0, 0], [3, 3], [7, 7]], [[2, 2], [5, 5]]])
    run("train", "--dataset", dataset, "--output-dir", folder / "run", *SMALL)
    return folder / "run"


def test_the_cloze_test_prints_a_table_and_writes_one_record_per_gap(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    dataset, target = trained.parent / "corpus" / "dataset", tmp_path / "cloze.json"

    run("evaluate", trained, trained / "best", "--cloze", "--dataset", dataset, "--json", target)

    lines = capsys.readouterr().out.splitlines()
    records = ClozeRecords.read(trained / "cloze-dev.csv")
    assert records.document == ["dev0"] * 3 + ["dev1"] * 3
    assert records.entity.tolist() == [1, 2, 1] * 2
    assert lines[0].startswith("cloze test on dev")
    assert [line.split()[-1] for line in lines[1:4]] == ["6", "6", "6"]
    assert lines[3].split() == ["chance", "0.500", "0.500", "0.750", "0.500", "6"]
    assert (trained / "best" / "cloze-dev.csv").is_file()
    assert json.loads(target.read_text())[str(trained)]["gaps"] == 6


def test_other_datasets_never_replace_the_run_s_own_records(trained: Path, tmp_path: Path) -> None:
    run("evaluate", trained, "--cloze")
    run("evaluate", trained)
    own = {n: (trained / n).read_bytes() for n in ("cloze-dev.csv", "records-dev.csv")}
    copy = shutil.copytree(trained.parent / "corpus" / "dataset", tmp_path / "copy")

    run("evaluate", trained, copy, "--cloze")
    run("evaluate", trained, "--dataset", copy)

    assert {name: (trained / name).read_bytes() for name in own} == own
    written = {path.name for path in trained.glob("*.csv")}
    assert {"cloze-dev-copy.csv", "records-dev-copy.csv"} < written


def test_what_cannot_be_evaluated_is_an_error_and_nothing_is_written(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    alone = build(tmp_path / "alone", [[[0, 0], [3, 3], [7, 7]]])
    other = build(tmp_path / "other", [[[0, 0], [7, 7]], [[2, 2], [5, 5]]])
    run("train", "--dataset", alone, "--output-dir", tmp_path / "run", *SMALL)

    assert f"{alone} has no gap" in fails(capsys, "evaluate", tmp_path / "run", "--cloze")
    assert "different vocabularies" in fails(capsys, "evaluate", trained, "--dataset", other)
    assert "no model given" in fails(capsys, "evaluate")
    assert "pass --dataset" in fails(capsys, "evaluate", trained / "best")
    assert "pass --dataset" in fails(capsys, "evaluate", "default")
    assert "cannot take the cloze test" in fails(capsys, "evaluate", "ngram", alone, "--cloze")
    assert not list((tmp_path / "run").glob("*.csv"))


def test_the_ngram_baseline_is_fitted_to_the_train_split(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    dataset = trained.parent / "corpus" / "dataset"

    run("evaluate", "ngram", trained, dataset, "--against", "ngram", "--output-dir", tmp_path)

    ngram = Records.read(tmp_path / "records-dev-ngram-dataset.csv")
    model = Records.read(tmp_path / "records-dev-run-dataset.csv")
    printed = capsys.readouterr().out
    assert ngram.token == model.token
    # The dev split repeats the train split, which a 5-gram model learns by heart.
    assert score_groups(ngram)["all"]["perplexity"] < 2 < score_groups(model)["all"]["perplexity"]
    assert "against ngram" in printed
    assert not list(Path(dataset).glob("*.csv"))


def test_a_cache_is_tuned_in_memory_and_leaves_no_file(trained: Path, capsys: Capture) -> None:
    before = {path.name for path in (trained / "best").iterdir()}

    run("evaluate", trained, "--cache")

    printed = capsys.readouterr()
    assert "cache: theta " in printed.err
    assert "run + cache" in printed.out
    assert {path.name for path in (trained / "best").iterdir()} == before
    cached, plain = (
        score_groups(Records.read(trained / f"records-dev{added}.csv"))["all"]
        for added in ("-cache", "")
    )
    assert cached["nats"] <= plain["nats"] + 1e-6  # tuned on these documents


def test_open_vocabulary_compares_the_model_its_static_baseline_and_ngrams(
    trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_bos: list[float] = []
    read = StringReader.read

    def noted(strings: StringReader, sentence: Any, models: Any) -> Any:
        if len(models) == 1:
            of_bos.extend(models[0].first[:, BOS].tolist())
        return read(strings, sentence, models)

    monkeypatch.setattr(StringReader, "read", noted)

    run("evaluate", trained, "--open-vocabulary", "--json", tmp_path / "a.json")
    numbers = json.loads((tmp_path / "a.json").read_text())

    assert list(numbers) == [f"{trained} {name}" for name in ("model", "static", "ngram")]
    for own in numbers.values():
        assert own["words"] == 2 * 8
        characters = 2 * len("Ann met Bo.she left.he saw her.")
        bits = own["nats_per_word"] * own["words"] / 0.6931471805599453
        assert own["bits_per_character"] == pytest.approx(bits / characters)
    assert "bits per character" in capsys.readouterr().out
    assert set(of_bos) == {-math.inf}, "the n-gram model never predicts <bos>"


def test_a_part_is_left_out(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "numbers.json"
    command = ("evaluate", trained, "--without", "memory", "--against", trained)
    run(*command, "--output-dir", tmp_path, "--json", out)
    assert f"{trained} without memory" in capsys.readouterr().out.splitlines()[-2]
    numbers = json.loads(out.read_text())
    whole, left = (numbers[f"{trained}{name}"]["all"] for name in ("", " without memory"))

    assert whole["nats"] != left["nats"]
    assert len(list(tmp_path.glob("records-dev*.csv"))) == 2
    assert "its parts are memory" in fails(capsys, "evaluate", trained, "--without", "pointer")


def test_a_run_trained_with_exchanged_memories_is_scored_with_them(
    trained: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(trained, tmp_path / "copy")
    settings = (copy / "config.yaml").read_text()
    numbers = []
    for exchanged in ("false", "true"):
        text = settings.replace("exchange_memories: false", f"exchange_memories: {exchanged}")
        (copy / "config.yaml").write_text(text)
        run("evaluate", copy, "--json", tmp_path / "numbers.json")
        numbers.append(json.loads((tmp_path / "numbers.json").read_text())[str(copy)])

    assert numbers[0]["reappearing"]["nats"] != numbers[1]["reappearing"]["nats"]


def test_a_spelling_is_fitted_on_a_dataset(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(trained / "best", tmp_path / "model")
    (tmp_path / "model" / "spelling.json").unlink()
    dataset = trained.parent / "corpus" / "dataset"
    (tmp_path / "a.txt").write_text("Ann met Bo.")

    run("score", tmp_path / "a.txt", "--model", tmp_path / "model")
    assert "no spelling.json" in capsys.readouterr().err
    run("spelling", tmp_path / "model", "--dataset", dataset)
    run("score", tmp_path / "a.txt", "--model", tmp_path / "model")

    assert "no spelling.json" not in capsys.readouterr().err
    assert (tmp_path / "model" / "spelling.json").read_bytes() == (
        trained / "best" / "spelling.json"
    ).read_bytes()
