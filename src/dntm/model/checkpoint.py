"""Checkpoints: a folder that holds a model and all it takes to use it.

    model.safetensors   the parameters
    config.json         every field of ModelConfig, `model_type` and `format_version`
    vocab.txt           the label of each row

A save goes into a temporary folder beside its target and is then moved into place, so that an
interrupted save or a full disk loses nothing.
"""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from dntm.corpus.vocabulary import Vocabulary
from dntm.files import new_folder
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.model.tensors import load_tensors, save_tensors

MODEL_TYPE = "dntm"
FORMAT_VERSION = 1
WEIGHTS, CONFIG, VOCABULARY = "model.safetensors", "config.json", "vocab.txt"
ADDED = {"salience"}
"""Settings that checkpoints written before them lack; they mean the default."""
TIED = "output.y.weight"
"""The name under which a tied table is not saved a second time."""


def best_of(run: Path) -> Path:
    """The best checkpoint of a run folder, or the folder itself where it is a checkpoint."""
    return run / "best" if (run / "best").is_dir() else run


def save_pretrained(model: DynamicTextModel, vocabulary: Vocabulary, directory: Path) -> None:
    """Write a checkpoint; one that stood there before is replaced."""
    with new_folder(directory, overwrite=True) as folder:
        write_checkpoint(model, vocabulary, folder)


def write_checkpoint(
    model: DynamicTextModel, vocabulary: Vocabulary, folder: Path, *, half: bool = False
) -> None:
    """Write the files into a folder that is there; with `half` weights take two bytes each."""
    if len(vocabulary) != model.config.vocabulary:
        raise ValueError(
            f"a vocabulary of {len(vocabulary)} rows for a model of {model.config.vocabulary}, "
            "expected as many"
        )
    header = {"model_type": MODEL_TYPE, "format_version": FORMAT_VERSION}
    settings = header | asdict(model.config)
    parameters = _parameters(model)
    if half:
        parameters = {name: value.half() for name, value in parameters.items()}
    save_tensors(parameters, folder / WEIGHTS)
    (folder / CONFIG).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (folder / VOCABULARY).write_text(vocabulary.text(), encoding="utf-8", newline="\n")


def from_pretrained(directory: Path) -> tuple[DynamicTextModel, Vocabulary]:
    """Read a checkpoint; the model is ready to read texts (in evaluation mode)."""
    for name in (CONFIG, VOCABULARY, WEIGHTS):
        if not (directory / name).is_file():
            raise ValueError(f"{directory / name} is missing, expected a folder with a checkpoint")
    config = _config(directory / CONFIG)
    vocabulary = Vocabulary.load(directory / VOCABULARY, entities=config.entities)
    if len(vocabulary) != config.vocabulary:
        raise ValueError(
            f"{directory / VOCABULARY}: {len(vocabulary)} rows, expected {config.vocabulary}"
        )
    model = DynamicTextModel(config)
    _load(model, directory / WEIGHTS)
    return model.eval(), vocabulary


def _parameters(model: DynamicTextModel) -> dict[str, Tensor]:
    tied = model.config.tied
    state: dict[str, Tensor] = model.state_dict()
    return {name: value for name, value in state.items() if not (tied and name == TIED)}


def _config(path: Path) -> ModelConfig:
    try:
        settings: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(settings, dict) or settings.pop("model_type", None) != MODEL_TYPE:
        raise ValueError(f'{path}: expected "model_type": "{MODEL_TYPE}"')
    if (version := settings.pop("format_version", None)) != FORMAT_VERSION:
        raise ValueError(f"{path}: format_version {version!r}, expected {FORMAT_VERSION}")
    expected = {field.name for field in fields(ModelConfig)}
    if odd := expected.symmetric_difference(settings) - (ADDED - settings.keys()):
        raise ValueError(f"{path}: missing or unknown settings {', '.join(sorted(odd))}")
    try:
        return ModelConfig(**settings)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _load(model: DynamicTextModel, path: Path) -> None:
    loaded = load_tensors(path)
    expected = _parameters(model)
    if odd := set(expected).symmetric_difference(loaded):
        raise ValueError(f"{path}: missing or unknown parameters {', '.join(sorted(odd))}")
    for name, value in loaded.items():
        if value.shape != expected[name].shape:
            raise ValueError(
                f"{path}: {name} is {tuple(value.shape)}, expected {tuple(expected[name].shape)}"
            )
    model.load_state_dict(loaded, strict=False)
