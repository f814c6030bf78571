"""Checkpoints: a folder with a model and everything needed to use it.

    model.safetensors   the parameters
    config.json         every field of ModelConfig, `model_type` and `format_version`
    vocab.txt           the label of each row

The header of the weights holds a checksum of the tensors (names, types, shapes, bytes) and one of
the other files. Loading verifies both, and refuses weights that are not finite floating-point
numbers: comparisons with NaN are false, so every rank would be the best.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from dntm.corpus.vocabulary import VOCABULARY_FILES, Vocabulary, entity_rows, saved_settings
from dntm.files import new_folder
from dntm.model.base_model import load_base
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.settings import cut, read_json

MODEL_TYPE, ENCODER_TYPE = "dntm", "dntm-encoder"
"""`model_type` of a language model and of a pretrained encoder."""
FORMAT_VERSION = 3
WEIGHTS, CONFIG, VOCABULARY = "model.safetensors", "config.json", "vocab.txt"
BASE = "base"
"""Setting with the base model of an adapter: its name, revision and the hash of its weights."""
CHECKSUM = "sha256"
"""Header field with the checksum of the tensors."""
OTHER_FILES = "files"
"""Header field with the checksum of the other files."""
X, ENTITIES = "x.weight", "x.entities"
"""The input embeddings, and their rows before the first word, if the folder above has the rest."""
TIED = "output.weight"
"""A tied table is saved once, under the name of the input embeddings."""


def best_of(run: Path) -> Path:
    """The best checkpoint of a run folder, or the folder itself if it is a checkpoint."""
    return run / "best" if (run / "best").is_dir() else run


def save_pretrained(model: DynamicTextModel, vocabulary: Vocabulary, directory: Path) -> None:
    """Write a checkpoint; an existing one is replaced."""
    with new_folder(directory, overwrite=True) as folder:
        write_checkpoint(model, vocabulary, folder)


def write_checkpoint(
    model: DynamicTextModel,
    vocabulary: Vocabulary,
    folder: Path,
    *,
    half: bool = False,
    beside: DynamicTextModel | None = None,
) -> None:
    """Write the files into an existing folder; with `half`, weights take two bytes each.

    Word vectors that are equal to those of the model in the folder above (`beside`) are left out.
    """
    config = asdict(model.config)
    settings = {"model_type": MODEL_TYPE, "format_version": FORMAT_VERSION, **config}
    if model.config.is_pretrained:
        base = load_base(model.config.core)
        settings[BASE] = {"name": base.name, "revision": base.revision, "sha256": base.sha256}
    parameters = {n: value.half() if half else value for n, value in _parameters(model).items()}
    first = entity_rows(model.config.entities).stop
    same = beside is not None and model.x.weight[first:].equal(beside.x.weight[first:])
    if same and X in parameters:
        parameters[ENTITIES] = parameters.pop(X)[:first].clone()
    write_files(parameters, settings, vocabulary, folder)


def write_files(
    tensors: Mapping[str, Tensor], settings: Mapping[str, Any], vocabulary: Vocabulary, folder: Path
) -> None:
    """Write the three files of a checkpoint of any kind."""
    (folder / CONFIG).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    vocabulary.save(folder)
    save_tensors(tensors, folder / WEIGHTS, other_files=_digest(folder))


def from_pretrained(directory: Path) -> tuple[DynamicTextModel, Vocabulary]:
    """Read a checkpoint; the model is in evaluation mode."""
    _require(directory, CONFIG, WEIGHTS)
    config, recorded = _config(directory / CONFIG)
    vocabulary: Vocabulary
    if recorded is not None:
        base, settings = load_base(config.core), saved_settings(directory / VOCABULARY)
        expected = recorded.get("sha256") if isinstance(recorded, dict) else None
        if expected != base.sha256:
            raise ValueError(
                f"{directory} was trained on other weights or pieces than those of {base.name}: "
                f"sha256 {cut(str(expected), 12)}, found {cut(base.sha256, 12)}"
            )
        vocabulary = base.vocabulary(config.entities, settings=settings)
    else:
        _require(directory, VOCABULARY)
        vocabulary = Vocabulary.load(directory / VOCABULARY, entities=config.entities)
    if len(vocabulary) != config.vocabulary:
        raise ValueError(
            f"{directory / VOCABULARY}: {len(vocabulary)} rows, expected {config.vocabulary}"
        )
    weights = load_tensors(directory / WEIGHTS)
    if (own := weights.pop(ENTITIES, None)) is not None:
        _require(directory.parent, WEIGHTS)
        above = load_tensors(directory.parent / WEIGHTS).get(X, own)
        weights[X] = torch.cat((own, above[len(own) :]))
    check_weights(weights, directory / WEIGHTS)
    with torch.device("meta"):
        check_shapes(weights, _parameters(DynamicTextModel(config)), directory / WEIGHTS)
    model = DynamicTextModel(config)
    model.load_state_dict(weights, strict=False)
    return model.eval(), vocabulary


def _require(directory: Path, *names: str) -> None:
    if not directory.exists():
        raise ValueError(f"{directory}: no such folder, expected a run folder or a checkpoint")
    for name in names:
        if not (directory / name).is_file():
            raise ValueError(f"{directory / name} is missing, expected a folder with a checkpoint")


def _parameters(model: DynamicTextModel) -> dict[str, Tensor]:
    tied = model.config.tied
    state: dict[str, Tensor] = model.state_dict()
    return {name: value for name, value in state.items() if not (tied and name == TIED)}


def _config(path: Path) -> tuple[ModelConfig, object]:
    """The settings of a model and, of an adapter, the description of its base model."""
    settings = read_json(path)
    base = settings.pop(BASE, None)
    if (kind := settings.pop("model_type", None)) != MODEL_TYPE:
        what = ": this is a pretrained encoder" if kind == ENCODER_TYPE else ""
        raise ValueError(f'{path}: expected "model_type": "{MODEL_TYPE}"{what}')
    if (version := settings.pop("format_version", None)) != FORMAT_VERSION:
        raise ValueError(f"{path}: format_version {version!r:.40}, expected {FORMAT_VERSION}")
    expected = {field.name for field in fields(ModelConfig)}
    if odd := expected.symmetric_difference(settings):
        named = cut(", ".join(sorted(odd)), 200)
        raise ValueError(f"{path}: missing or unknown settings {named}")
    try:
        config = ModelConfig(**settings)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
    if config.is_pretrained != (base is not None):
        raise ValueError(f"{path}: core {config.core!r:.80}, but base is {base!r:.80}")
    return config, base


def save_tensors(tensors: Mapping[str, Tensor], path: Path, *, other_files: str = "") -> None:
    """Write the file; OSError if it cannot be written."""
    found = {name: value.contiguous() for name, value in tensors.items()}
    metadata = {"format": "pt", CHECKSUM: _checksum(found)} | (
        {OTHER_FILES: other_files} if other_files else {}
    )
    data = save(found, metadata)
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    # safetensors has the metadata in random order, but equal tensors are to have equal bytes.
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    with path.open("wb") as file:
        file.write(data[:8] + text.ljust(start - 8))
        file.write(memoryview(data)[start:])


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read the file; ValueError if it or, in a checkpoint, a file next to it is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if metadata.get(CHECKSUM) != _checksum(tensors):
        raise ValueError(f"{path} is damaged: its tensors do not match its checksum")
    if metadata.get(OTHER_FILES, digest := _digest(path.parent)) != digest:
        raise ValueError(f"{path.parent} is damaged: {CONFIG} or {VOCABULARY} was changed")
    return tensors


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for name in (CONFIG, *VOCABULARY_FILES):
        if (folder / name).is_file():
            found.update(f"{name}\0".encode() + (folder / name).read_bytes())
    return found.hexdigest()


def check_weights(tensors: Mapping[str, Tensor], path: Path) -> None:
    """ValueError if a tensor holds anything but finite floating-point numbers."""
    for name, value in tensors.items():
        if not value.is_floating_point():
            kind = str(value.dtype).removeprefix("torch.")
            raise ValueError(f"{path}: {name} holds {kind}, expected floating-point numbers")
        if not bool(value.isfinite().all()):
            raise ValueError(
                f"{path}: {name} holds NaN or infinite numbers: it is damaged, or training diverged"
            )


def check_shapes(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], path: Path) -> None:
    """ValueError if names or shapes are not as expected."""
    if odd := set(expected).symmetric_difference(tensors):
        named = cut(", ".join(sorted(odd)), 200)
        raise ValueError(f"{path}: missing or unknown parameters {named}")
    for name, value in tensors.items():
        if value.shape != expected[name].shape:
            raise ValueError(
                f"{path}: {name} is {tuple(value.shape)}, expected {tuple(expected[name].shape)}"
            )


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
