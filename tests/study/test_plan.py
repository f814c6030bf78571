"""What a study folder agrees to, which runs a plan has, and who may work on a part of it."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from dntm.cli.main import main
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.context_encoder import ContextEncoder
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.study.config import PRESETS, StudyConfig, StudyFolder, cells, chosen
from dntm.study.plan import agree, pretrain_config, resolved_config, train_config
from dntm.training.machine import Session


def fails(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    assert exit_.value.code not in (0, None)
    return capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_settings_of_a_study_read_back_as_they_were(name: str, tmp_path: Path) -> None:
    config = replace(PRESETS[name], corpus="sotu", text=("a.txt",))
    (tmp_path / "study.yaml").write_text(config.to_yaml())

    assert StudyConfig.from_yaml(tmp_path / "study.yaml") == config


def test_the_papers_study_has_thirteen_models_with_three_seeds() -> None:
    assert len(cells(PRESETS["paper"])) == len(cells(PRESETS["small"])) == 39
    assert [cell.name for cell in cells(PRESETS["quick"])] == ["A-1", "D-gru-relu-1"]


def test_runs_are_chosen_by_model_letter_run_or_pattern() -> None:
    def names(*only: str) -> list[str]:
        return [cell.name for cell in chosen(PRESETS["small"], only)]

    assert names("A") == ["A-1", "A-2", "A-3"]
    assert names("D-gru", "B-max-2") == ["D-gru-1", "B-max-2", "D-gru-2", "D-gru-3"]
    assert len(names("C")) == 12
    assert len(names("*-1")) == 13
    assert len(names()) == 39


def test_other_settings_than_those_of_the_folder_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ("reproduce", "--preset", "small", "--output-dir", tmp_path / "study", "--list")
    main([str(word) for word in start])
    before = (tmp_path / "study" / "study.yaml").read_bytes()

    seeds = fails(capsys, *start, "--seeds", "4")
    (tmp_path / "other.yaml").write_text("training: {epochs: 99}\n")
    epochs = fails(capsys, *start, "--config", tmp_path / "other.yaml")

    assert "holds a study with other settings (seeds: (1, 2, 3) there, (4,) given)" in seeds
    assert "training.epochs: 5 there, 99 given" in epochs
    assert (tmp_path / "study" / "study.yaml").read_bytes() == before


def test_a_study_goes_on_without_repeating_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "study")
    main(["reproduce", "--preset", "small", "--seeds", "7", "--output-dir", folder, "--list"])
    first = capsys.readouterr().out

    main(["reproduce", "--output-dir", folder, "--list"])

    assert capsys.readouterr().out == first
    assert first.count("-7\n") == 13


def test_bad_settings_are_named_and_leave_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("models: [A, E-gru]\n")
    (tmp_path / "odd.yaml").write_text("modells: [A]\n")
    start = ("reproduce", "--output-dir", tmp_path / "x", "--list")

    assert "model 'E-gru', expected one of A," in fails(
        capsys, *start, "--config", tmp_path / "bad.yaml"
    )
    assert "unknown setting 'modells'" in fails(capsys, *start, "--config", tmp_path / "odd.yaml")
    assert "--corpus nowhere is no file or folder" in fails(capsys, *start, "--corpus", "nowhere")
    assert "--text nowhere is no file" in fails(capsys, *start, "--text", "nowhere")
    assert "--pretrained nowhere is no file" in fails(capsys, *start, "--pretrained", "nowhere")
    assert "no pretraining checkpoint" in fails(capsys, *start, "--pretrained", tmp_path)
    assert "not both" in fails(capsys, *start, "--pretrained", tmp_path, "--text", tmp_path)
    assert "--only Z matches nothing" in fails(capsys, *start, "--only", "Z")
    assert "needs each seed once" in fails(capsys, *start, "--seeds", "1", "1")
    assert "jobs is 0" in fails(capsys, *start, "--jobs", "0")
    assert not (tmp_path / "x").exists()


def test_what_is_no_study_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "it has no study.yaml" in fails(capsys, "report", tmp_path)
    agree(StudyFolder(tmp_path), replace(PRESETS["quick"], corpus="sotu"))
    assert "has no cell 'B-1': A-1, D-gru-relu-1" in fails(capsys, "cell", tmp_path, "B-1")


def test_paths_hold_wherever_the_command_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "news.txt").write_text("a b\n")
    monkeypatch.chdir(tmp_path)

    config = resolved_config(replace(PRESETS["quick"], corpus="news.txt", text=("news.txt",)))

    assert config.corpus == str(tmp_path / "news.txt")
    assert config.text == (str(tmp_path / "news.txt"),)


def test_with_text_the_encoder_is_pretrained_at_the_models_size(tmp_path: Path) -> None:
    (tmp_path / "news.txt").write_text("a b\n")
    given = replace(PRESETS["quick"], corpus="sotu", text=(str(tmp_path / "news.txt"),))
    folder = StudyFolder(tmp_path / "study")

    config = resolved_config(given)
    found = pretrain_config(folder, config)

    assert config.model.context_dim == config.model.embedding_dim == 96
    assert (found.model.embedding_dim, found.model.encoder_dim) == (96, 64)
    assert (found.training.iterations, found.store.min_count) == (1000, 20)
    assert found.text == (tmp_path / "news.txt",)
    assert (found.output_dir, found.dataset) == (folder.pretraining, folder.dataset)


def test_layers_that_pretrained_embeddings_do_not_fit_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "news.txt").write_text("a b\n")
    given = replace(PRESETS["paper"], corpus="sotu", text=(str(tmp_path / "news.txt"),))

    with pytest.raises(ValueError, match="hidden_dim is 64 and"):
        resolved_config(replace(given, model=replace(given.model, hidden_dim=64)))


@pytest.mark.parametrize(("preset", "min_count"), [("paper", 500), ("small", 20)])
def test_a_study_from_before_pretraining_had_settings_reads_as_it_was(
    tmp_path: Path, preset: str, min_count: int
) -> None:
    config = replace(PRESETS[preset], corpus="sotu")
    values = yaml.safe_load(config.to_yaml())
    iterations = values.pop("pretraining")["iterations"]
    values.pop("store")
    old = {**values, "pretraining_iterations": iterations}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(old))

    found = StudyConfig.from_yaml(tmp_path / "study.yaml")

    assert found == config
    assert found.store.min_count == min_count


def test_every_session_of_a_run_is_kept_even_one_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    Session.begin(path, threads=1).note(now=True)

    Session.begin(path, threads=2).note(now=True)

    first, second = json.loads(path.read_text())["sessions"]
    assert (first["threads"], second["threads"]) == (1, 2)
    assert first["machine"]["cores"] == os.cpu_count()
    assert {"began", "ended", "seconds", "peak_memory_gb", "versions", "commit"} <= set(first)


def test_a_pretraining_that_is_there_gives_the_models_its_sizes(tmp_path: Path) -> None:
    vocabulary = Vocabulary(("a", "b"), entities=2)
    shapes = ContextEncoder(6, 5, 4).state_dict()
    encoder = {name: torch.zeros_like(value) for name, value in shapes.items()}
    given = PretrainedEncoder(vocabulary, torch.zeros(7, 6), encoder, torch.ones(7))
    given.save(tmp_path / "run" / "best")
    asked = replace(PRESETS["quick"], corpus="sotu", pretrained=str(tmp_path / "run"))
    folder = StudyFolder(tmp_path / "study")

    config = resolved_config(asked)

    model = config.model
    assert (model.embedding_dim, model.hidden_dim, model.context_dim) == (6, 6, 4)
    assert model.encoder_dim == 5
    assert train_config(folder, config, cells(config)[0]).pretrained == tmp_path / "run"
