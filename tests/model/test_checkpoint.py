"""A checkpoint restores the model that was saved; a damaged one is refused with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import from_pretrained, save_pretrained, save_tensors, write_checkpoint
from dntm.model.config import Variant
from tests.model.small import ALL_EXTENSIONS, CORES, build

VOCABULARY = Vocabulary(("the", "cat", "sat", "on", "a", "mat"), entities=3)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_pretrained(build("both", "gru").float(), VOCABULARY, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("variant", ["baseline", "both"])
@pytest.mark.parametrize("tied", [False, True])
def test_a_model_is_restored_as_it_was_saved(
    core: str, variant: Variant, tmp_path: Path, *, tied: bool
) -> None:
    model = build(variant, "attention", ALL_EXTENSIONS[variant], core=core, tied=tied).float()

    save_pretrained(model, VOCABULARY, tmp_path / "model")
    loaded, vocabulary = from_pretrained(tmp_path / "model")

    assert vocabulary == VOCABULARY
    assert loaded.config == model.config
    assert (loaded.output.weight is loaded.x.weight) == tied
    assert not loaded.training
    for (name, value), found in zip(model.named_parameters(), loaded.parameters(), strict=True):
        assert torch.equal(found, value), name


def test_word_vectors_of_the_folder_above_are_not_saved_again(saved: Path) -> None:
    model, _ = from_pretrained(saved)
    static = build("baseline").float()
    with torch.no_grad():
        static.x.weight[6:] = model.x.weight[6:]
    (saved / "static").mkdir()

    write_checkpoint(static, VOCABULARY, saved / "static", beside=model)

    assert load_file(saved / "static" / "model.safetensors")["x.entities"].shape == (6, 5)
    assert from_pretrained(saved / "static")[0].x.weight.equal(static.x.weight)
    (saved / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        from_pretrained(saved / "static")


def test_equal_weights_give_equal_bytes(saved: Path, tmp_path: Path) -> None:
    found = set()
    for _ in range(8):
        save_pretrained(*from_pretrained(saved), tmp_path / "again")
        found.add((tmp_path / "again" / "model.safetensors").read_bytes())

    assert len(found) == 1


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
def test_a_changed_word_or_setting_is_noticed(saved: Path, name: str, old: str, new: str) -> None:
    text = (saved / name).read_text()
    (saved / name).write_text(text.replace(old, new))

    with pytest.raises(ValueError, match=r"config\.json or vocab\.txt was changed"):
        from_pretrained(saved)


def test_a_failed_save_leaves_the_last_checkpoint_unchanged(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in saved.iterdir()}

    def full_disk(_: Vocabulary) -> str:
        raise OSError("no space left on device")

    monkeypatch.setattr(Vocabulary, "labels", full_disk)
    with pytest.raises(OSError, match="no space"):
        save_pretrained(build("both", "max").float(), VOCABULARY, saved)

    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_missing_or_truncated_file_is_named(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[:-10])

    with pytest.raises(ValueError, match=name.replace("vocab.txt", "vocab")):
        from_pretrained(saved)
    (saved / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        from_pretrained(saved)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "expected a JSON object"),
        ({"model_type": "bert"}, "model_type"),
        ({"format_version": 2}, "format_version 2, expected 3"),
        ({"depth": 3}, "unknown settings depth"),
        ({"hidden_dim": 0}, "hidden_dim is 0"),
        ({"hidden_dim": "large"}, "hidden_dim is 'large'"),
    ],
)
def test_a_config_of_another_kind_is_refused(saved: Path, settings: Any, message: str) -> None:
    path = saved / "config.json"
    own = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(settings and own | settings), encoding="utf-8")

    with pytest.raises(ValueError, match=rf"config\.json.*{message}"):
        from_pretrained(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output.b": torch.zeros(3)}, r"output\.b is \(3,\), expected \(12,\)"),
        ({"gpt": torch.zeros(3)}, "missing or unknown parameters gpt"),
        ({"output.b": torch.full((12,), torch.nan)}, "output.b holds NaN or infinite numbers"),
        ({"output.b": torch.zeros(12).long()}, "output.b holds int64, expected floating-point"),
    ],
)
def test_weights_of_another_model_and_nan_are_refused(
    saved: Path, changes: dict[str, torch.Tensor], message: str
) -> None:
    path = saved / "model.safetensors"
    tensors = load_file(path)

    save_tensors(tensors | changes, path)
    with pytest.raises(ValueError, match=message):
        from_pretrained(saved)
    save_file(tensors, path)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        from_pretrained(saved)
