"""The plan of a study: its settings agreed with its folder, and its text files found."""

import dataclasses
from pathlib import Path
from typing import Any

from dntm.corpus.catalog import CORPORA
from dntm.experiments.study import StudyConfig, StudyFolder
from dntm.files import write_text
from dntm.model.config import ModelConfig


def resolved(config: StudyConfig) -> StudyConfig:
    """The settings with paths that hold wherever a command is called, and sizes that fit."""
    corpus, text, model = config.corpus, config.text, config.model
    pretrained = config.pretrained
    if corpus not in CORPORA:
        corpus = _existing(corpus, "corpus")
    if text:
        text = tuple(_existing(path, "text") for path in text)
        if model.hidden_dim != model.embedding_dim:
            raise ValueError(
                f"model.hidden_dim is {model.hidden_dim} and model.embedding_dim "
                f"{model.embedding_dim}: pretrained embeddings go into both layers, expected the "
                "same size"
            )
        # Pretraining compares context vectors with embeddings.
        model = dataclasses.replace(model, context_dim=model.embedding_dim)
    if pretrained:
        pretrained = _existing(pretrained, "pretrained")
        model = _fitting(model, Path(pretrained))
    given = config.given
    if given is not None and Path(given).exists():
        given = str(Path(given).resolve())
    return dataclasses.replace(
        config, corpus=corpus, text=text, pretrained=pretrained, model=model, given=given
    )


def agree(folder: StudyFolder, config: StudyConfig) -> None:
    """Record the settings of a new study; refuse others than those of one that exists."""
    if not folder.settings.exists():
        write_text(folder.settings, config.to_yaml())
        return
    saved = StudyConfig.from_yaml(folder.settings)
    if saved != config:
        raise ValueError(
            f"{folder.settings} holds a study with other settings ({_difference(saved, config)}): "
            "choose another --output-dir, or give the same settings"
        )


def _fitting(model: ModelConfig, pretrained: Path) -> ModelConfig:
    """The model with the sizes of a pretraining, whose embeddings go into both layers."""
    from dntm.model.checkpoint import best_of
    from dntm.model.pretrained_encoder import PretrainedEncoder

    given = PretrainedEncoder.load(best_of(pretrained))
    return dataclasses.replace(
        model,
        embedding_dim=given.embedding_dim,
        hidden_dim=given.embedding_dim,
        encoder_dim=given.encoder_dim,
        context_dim=given.embedding_dim,
    )


def _existing(path: str, what: str) -> str:
    found = Path(path)
    if not found.exists():
        known = f", nor a corpus known by name: {', '.join(CORPORA)}" if what == "corpus" else ""
        raise ValueError(f"--{what} {path} is no file or folder{known}")
    return str(found.resolve())


def _difference(saved: Any, given: Any, prefix: str = "") -> str:
    """The first setting that differs, with both values."""
    for field in dataclasses.fields(saved):
        old, new = getattr(saved, field.name), getattr(given, field.name)
        if old != new and dataclasses.is_dataclass(old):
            return _difference(old, new, f"{prefix}{field.name}.")
        if old != new:
            return f"{prefix}{field.name}: {old!r} there, {new!r} given"
    raise AssertionError("the settings are the same")
