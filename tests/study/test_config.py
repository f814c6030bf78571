"""Settings of a study: presets, the study folder, and the selection of runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from dntm.cli.main import main
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.context_encoder import ContextEncoder
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.model.sentence_completion import SentenceCompletion
from dntm.settings import to_yaml
from dntm.study.config import PRESETS, StudyConfig, StudyFolder
from dntm.study.run import pretrain_config, train_config
from tests.cli.running import Capture, fails


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_settings_survive_study_yaml(name: str, tmp_path: Path) -> None:
    config = replace(PRESETS[name], corpus="sotu", text=("a.txt",))
    (tmp_path / "study.yaml").write_text(to_yaml(config))

    assert StudyConfig.from_yaml(tmp_path / "study.yaml") == config


def test_the_papers_study_has_thirteen_models_with_three_seeds() -> None:
    assert len(PRESETS["paper"].runs) == len(PRESETS["small"].runs) == 39
    assert [run.name for run in PRESETS["quick"].runs] == ["A-1", "D-gru-relu-1"]


def test_runs_are_selected_by_letter_model_run_or_pattern() -> None:
    def names(*only: str) -> list[str]:
        return [run.name for run in PRESETS["small"].select_runs(only)]

    assert names("A") == ["A-1", "A-2", "A-3"]
    assert names("D-gru", "B-max-2") == ["D-gru-1", "B-max-2", "D-gru-2", "D-gru-3"]
    assert len(names("C")) == 12
    assert len(names("*-1")) == 13
    assert len(names()) == 39


def test_other_settings_than_those_of_the_folder_are_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    start = ("reproduce", "--preset", "small", "--output-dir", tmp_path / "study", "--list")
    main([str(word) for word in start])
    before = (tmp_path / "study" / "study.yaml").read_bytes()

    seeds = fails(capsys, *start, "--seeds", "4")
    (tmp_path / "other.yaml").write_text("training: {epochs: 99}\n")
    epochs = fails(capsys, *start, "--config", tmp_path / "other.yaml")

    assert "has different settings (seeds: (1, 2, 3) there, (4,) given)" in seeds
    assert "training.epochs: 5 there, 99 given" in epochs
    assert (tmp_path / "study" / "study.yaml").read_bytes() == before


def test_a_pretrained_core_has_no_word_baselines_and_no_encoder(capsys: Capture) -> None:
    adapter = ("reproduce", "--corpus", "sotu", "--preset", "adapter", "--list")

    assert "needs a pretrained --core" in fails(capsys, *adapter)
    assert "cannot have n-gram" in fails(capsys, *adapter, "--core", "gpt2", "--baselines")
    assert "context encoder" in fails(capsys, *adapter, "--core", "gpt2", "--text", "a.txt")


def test_models_can_be_added_to_a_study_but_not_removed(tmp_path: Path) -> None:
    folder, quick = StudyFolder(tmp_path), replace(PRESETS["quick"], corpus="sotu")
    folder.save_settings(quick)

    folder.save_settings(quick.with_baselines())

    assert StudyConfig.from_yaml(folder.settings) == quick.with_baselines()
    with pytest.raises(ValueError, match="has different settings"):
        folder.save_settings(quick)


def test_a_study_resumes_without_repeating_its_settings(tmp_path: Path, capsys: Capture) -> None:
    folder = str(tmp_path / "study")
    main(["reproduce", "--preset", "small", "--seeds", "7", "--output-dir", folder, "--list"])
    first = capsys.readouterr().out

    main(["reproduce", "--output-dir", folder, "--list"])

    assert capsys.readouterr().out == first
    assert first.count("-7\n") == 13


def test_errors_name_the_bad_setting_and_leave_no_folder(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "bad.yaml").write_text("models: [A, E-gru]\n")
    (tmp_path / "odd.yaml").write_text("modells: [A]\n")
    start = ("reproduce", "--output-dir", tmp_path / "x", "--list")

    assert "model 'E-gru', expected one of A," in fails(
        capsys, *start, "--config", tmp_path / "bad.yaml"
    )
    assert "unknown setting 'modells'" in fails(capsys, *start, "--config", tmp_path / "odd.yaml")
    assert "--corpus nowhere does not exist" in fails(capsys, *start, "--corpus", "nowhere")
    assert "--text nowhere does not exist" in fails(capsys, *start, "--text", "nowhere")
    assert "is not a pretraining checkpoint" in fails(capsys, *start, "--pretrained", tmp_path)
    assert "at most one of them" in fails(capsys, *start, "--pretrained", "a", "--text", "b")
    assert "--only Z matches no run" in fails(capsys, *start, "--only", "Z")
    assert "expected at least one, without duplicates" in fails(capsys, *start, "--seeds", "1", "1")
    assert "jobs is 0" in fails(capsys, *start, "--jobs", "0")
    assert not (tmp_path / "x").exists()


def test_a_folder_without_study_and_an_unknown_run_are_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    assert "it has no study.yaml" in fails(capsys, "report", tmp_path)
    StudyFolder(tmp_path).save_settings(replace(PRESETS["quick"], corpus="sotu"))
    error = fails(capsys, "reproduce", "--output-dir", tmp_path, "--run", "B-1")
    assert "has no run 'B-1', expected one of A-1, D-gru-relu-1" in error


def test_paths_become_absolute_and_the_encoder_has_the_sizes_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "news.txt").write_text("a b\n")
    monkeypatch.chdir(tmp_path)
    given = replace(PRESETS["quick"], corpus="news.txt", text=("news.txt",))
    folder = StudyFolder(tmp_path / "study")

    config = given.resolved()
    found = pretrain_config(folder, config)

    assert config.corpus == str(tmp_path / "news.txt")
    assert found.text == (tmp_path / "news.txt",)
    assert config.model.context_dim == config.model.embedding_dim == 96
    assert (found.model.embedding_dim, found.model.encoder_dim) == (96, 64)
    assert (found.training.iterations, found.store.min_count) == (1000, 20)
    assert (found.output_dir, found.dataset) == (folder.pretraining, folder.dataset)
    sizes = replace(PRESETS["paper"].model, hidden_dim=64)
    with pytest.raises(ValueError, match="hidden_dim is 64 and"):
        replace(PRESETS["paper"], corpus="sotu", text=("news.txt",), model=sizes).resolved()


def test_models_take_the_sizes_of_an_existing_pretraining(tmp_path: Path) -> None:
    vocabulary = Vocabulary(("a", "b"), entities=2)
    given = SentenceCompletion(7, ContextEncoder(6, 5, 4))
    PretrainedEncoder(vocabulary, given).save(tmp_path / "run" / "best")
    asked = replace(PRESETS["quick"], corpus="sotu", pretrained=str(tmp_path / "run"))

    config = asked.resolved()

    model = config.model
    assert (model.embedding_dim, model.hidden_dim, model.context_dim) == (6, 6, 4)
    assert model.encoder_dim == 5
    train = train_config(StudyFolder(tmp_path / "study"), config, config.runs[0])
    assert train.pretrained == tmp_path / "run"
