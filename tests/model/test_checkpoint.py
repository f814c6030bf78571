"""A checkpoint gives back what was saved, and says what is wrong with it."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import current_names, from_pretrained, save_pretrained
from dntm.model.config import Variant
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


def without_checksum(folder: Path) -> None:
    """The weights as they were written before they had one."""
    save_file(load_file(folder / "model.safetensors"), folder / "model.safetensors")


def test_the_same_weights_give_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    model, vocabulary = from_pretrained(saved)

    for number in range(8):
        save_pretrained(model, vocabulary, tmp_path / str(number))
    names = [tmp_path / str(number) / "model.safetensors" for number in range(8)]

    assert len({name.read_bytes() for name in names}) == 1


def test_every_flipped_bit_of_the_weights_is_noticed(saved: Path) -> None:
    path = saved / "model.safetensors"
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")

    for position in range(start, len(raw), 211):
        damaged = bytearray(raw)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
            from_pretrained(saved)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("vocab.txt", "cat", "cow"), ("config.json", '"merging": "gru"', '"merging": "gru-relu"')],
)
def test_a_word_or_setting_changed_beside_the_weights_is_noticed(
    saved: Path, name: str, old: str, new: str
) -> None:
    text = (saved / name).read_text()
    (saved / name).write_text(text.replace(old, new))

    with pytest.raises(ValueError, match=r"config\.json or vocab\.txt was changed"):
        from_pretrained(saved)
    without_checksum(saved)
    from_pretrained(saved)


def test_the_files_tell_their_type_and_version(saved: Path) -> None:
    settings = json.loads((saved / "config.json").read_text(encoding="utf-8"))

    assert settings["model_type"] == "dntm"
    assert settings["format_version"] == 2
    assert settings["merging"] == "gru"
    assert sorted(path.name for path in saved.iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]


@pytest.mark.parametrize("variant", ["input", "output", "both"])
def test_a_checkpoint_of_version_1_is_still_read(variant: Variant, tmp_path: Path) -> None:
    model = build(variant, "gru").float()
    save_pretrained(model, VOCABULARY, tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    names = {"x.W_dx": "x.W_d", "output.y.W_dy": "output.y.W_d"}
    assert names.keys() & tensors.keys()
    save_file({names.get(name, name): value for name, value in tensors.items()}, path)
    config = tmp_path / "model" / "config.json"
    settings = json.loads(config.read_text(encoding="utf-8")) | {"format_version": 1}
    config.write_text(json.dumps(settings), encoding="utf-8")

    loaded, _ = from_pretrained(tmp_path / "model")

    assert {name: value.tolist() for name, value in loaded.named_parameters()} == {
        name: value.tolist() for name, value in model.named_parameters()
    }


def test_a_training_state_of_version_1_gets_its_names_of_today() -> None:
    value = torch.zeros(1)
    old = ["model.x.W_d", "average.output.y.W_d", "model.x.weight", "optimizer.1.step"]

    found = current_names(dict.fromkeys(old, value))

    assert list(found) == [
        "model.x.W_dx", "average.output.y.W_dy", "model.x.weight", "optimizer.1.step"
    ]  # fmt: skip


def test_a_setting_that_came_later_may_be_missing(saved: Path) -> None:
    settings = json.loads((saved / "config.json").read_text(encoding="utf-8"))
    del settings["salience"]
    (saved / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    without_checksum(saved)

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
        ("[]", "expected a JSON object"),
        ('{"model_type": "bert"}', "model_type"),
        ('{"model_type": "dntm", "format_version": 3}', "format_version 3, expected 1 or 2"),
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
