"""A checkpoint gives back what was saved, and says what is wrong with it."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import from_pretrained, save_pretrained
from tests.model.small import build

VOCABULARY = Vocabulary(("the", "cat", "sat", "on", "a", "mat"), entities=3)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_pretrained(build("both", "gru").float(), VOCABULARY, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(("tied", "salience"), [(False, False), (True, False), (True, True)])
def test_a_model_comes_back_as_it_was_saved(tied: bool, salience: bool, tmp_path: Path) -> None:
    model = build("both", "attention", tied=tied, salience=salience).float()

    save_pretrained(model, VOCABULARY, tmp_path / "model")
    loaded, vocabulary = from_pretrained(tmp_path / "model")

    assert vocabulary == VOCABULARY
    assert loaded.config == model.config
    assert (loaded.output.y.weight is loaded.x.weight) == tied
    for (name, value), found in zip(model.named_parameters(), loaded.parameters(), strict=True):
        assert torch.equal(found, value), name


def test_the_files_tell_their_type_and_version(saved: Path) -> None:
    settings = json.loads((saved / "config.json").read_text(encoding="utf-8"))

    assert settings["model_type"] == "dntm"
    assert settings["format_version"] == 1
    assert settings["merging"] == "gru"
    assert sorted(path.name for path in saved.iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]


def test_a_setting_that_came_later_may_be_missing(saved: Path) -> None:
    settings = json.loads((saved / "config.json").read_text(encoding="utf-8"))
    del settings["salience"]
    (saved / "config.json").write_text(json.dumps(settings), encoding="utf-8")

    assert not from_pretrained(saved)[0].config.salience


def test_a_save_that_fails_leaves_the_last_one_as_it_was(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in saved.iterdir()}

    def full_disk(_: Vocabulary) -> str:
        raise OSError("no space left on device")

    monkeypatch.setattr(Vocabulary, "text", full_disk)
    with pytest.raises(OSError, match="no space"):
        save_pretrained(build("both", "max").float(), VOCABULARY, saved)

    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_vocabulary_of_another_size_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a vocabulary of 7 rows for a model of 12"):
        save_pretrained(build("both", "gru"), Vocabulary(("the",), entities=3), tmp_path / "model")


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()

    with pytest.raises(ValueError, match=f"{name} is missing"):
        from_pretrained(saved)


def test_truncated_weights_are_named(saved: Path) -> None:
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])

    with pytest.raises(ValueError, match=r"model\.safetensors cannot be read"):
        from_pretrained(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "model_type"),
        ('{"model_type": "bert"}', "model_type"),
        ('{"model_type": "dntm", "format_version": 2}', "format_version 2, expected 1"),
        ('{"model_type": "dntm", "format_version": 1, "depth": 3}', "unknown settings .*depth"),
    ],
)
def test_a_config_of_another_kind_is_refused(saved: Path, text: str, message: str) -> None:
    (saved / "config.json").write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match=rf"config\.json.*{message}"):
        from_pretrained(saved)


@pytest.mark.parametrize(("name", "value"), [("hidden_dim", 0), ("hidden_dim", "large")])
def test_a_bad_setting_is_named_with_its_file(saved: Path, name: str, value: object) -> None:
    settings = json.loads((saved / "config.json").read_text(encoding="utf-8"))
    (saved / "config.json").write_text(json.dumps(settings | {name: value}), encoding="utf-8")

    with pytest.raises(ValueError, match=r"config\.json: "):
        from_pretrained(saved)


def test_weights_of_another_shape_are_refused(saved: Path) -> None:
    weights = load_file(saved / "model.safetensors")
    save_file(weights | {"output.b": torch.zeros(3)}, saved / "model.safetensors")

    with pytest.raises(ValueError, match=r"output\.b is \(3,\), expected \(12,\)"):
        from_pretrained(saved)


def test_weights_of_another_model_are_refused(saved: Path) -> None:
    save_file({"gpt": torch.zeros(3)}, saved / "model.safetensors")

    with pytest.raises(ValueError, match="missing or unknown parameters"):
        from_pretrained(saved)
