"""The plan of a study: its settings agreed with its folder, and what all of its cells share.

These are the dataset and, where text was given, the pretraining of the context encoder. Each is
made by whoever comes first; the others wait for it.
"""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset import Dataset
from dntm.corpus.prepare import prepare, prepare_storyworld
from dntm.corpus.storyworld.story import StoryworldConfig
from dntm.experiments.study import Cell, StudyConfig, StudyFolder
from dntm.files import claimed, new_folder, write_text
from dntm.model.config import ModelConfig
from dntm.study.jobs import run_part
from dntm.training.config import EncoderConfig, PretrainConfig, TrainConfig

Say = Callable[[str], None]
PRETRAINING = "pretraining"
"""The part of a study that comes before its cells."""


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
    """Record the settings of a new study; refuse others than those of one that exists.

    More models may come to one that exists.
    """
    if not folder.settings.exists():
        write_text(folder.settings, config.to_yaml())
        return
    saved = StudyConfig.from_yaml(folder.settings)
    if set(saved.models) < set(config.models) and saved == dataclasses.replace(
        config, models=saved.models
    ):
        write_text(folder.settings, config.to_yaml())
    elif saved != config:
        raise ValueError(
            f"{folder.settings} holds a study with other settings ({_difference(saved, config)}): "
            "choose another --output-dir, or give the same settings"
        )


def ensure_dataset(folder: StudyFolder, config: StudyConfig, say: Say) -> Dataset:
    """Build the study's dataset unless it is there."""
    if not folder.dataset.exists():
        with claimed(folder.lock("dataset"), lambda: say("the dataset is being built elsewhere")):
            if not folder.dataset.exists():
                say(f"building the dataset from {config.corpus}")
                _build(folder.dataset, config)
    dataset = Dataset.open(folder.dataset)
    if missing := [split for split in ("train", "dev", "test") if split not in dataset.splits]:
        raise ValueError(f"{folder.dataset} has no document in {', '.join(missing)}")
    return dataset


def pretraining_is_due(folder: StudyFolder, config: StudyConfig) -> bool:
    """Whether the study has text to pretrain on, and that is not done yet."""
    return bool(config.text) and not (folder.pretraining / "all_results.json").exists()


def ensure_pretraining(folder: StudyFolder, config: StudyConfig, say: Say) -> None:
    """Pretrain the context encoder on the study's text, where it has any, unless that is done."""
    if pretraining_is_due(folder, config):
        say(f"pretraining the encoder on {', '.join(config.text)}")
        run_part(folder, PRETRAINING)


def pretrain_config(folder: StudyFolder, config: StudyConfig) -> PretrainConfig:
    """The settings of the pretraining; its sizes are the model's."""
    return PretrainConfig(
        text=tuple(map(Path, config.text)),
        output_dir=folder.pretraining.resolve(),
        dataset=folder.dataset.resolve(),
        store=config.store,
        model=EncoderConfig(
            embedding_dim=config.model.embedding_dim, encoder_dim=config.model.encoder_dim
        ),
        training=config.pretraining,
    )


def train_config(folder: StudyFolder, config: StudyConfig, cell: Cell) -> TrainConfig:
    """The settings of the cell's run; its paths hold wherever a command is called."""
    return TrainConfig(
        dataset=folder.dataset.resolve(),
        output_dir=folder.run(cell).resolve(),
        seed=cell.seed,
        pretrained=folder.begins_with(config),
        model=cell.model.config(config.model),
        training=config.training,
    )


def _build(target: Path, config: StudyConfig) -> None:
    made = Path(config.corpus)
    if config.corpus == "storyworld":
        prepare_storyworld(target, StoryworldConfig(seed=config.reading.seed))
    elif (made / "dataset.json").is_file():
        Dataset.open(made)
        with new_folder(target) as copy:
            shutil.copytree(made, copy, dirs_exist_ok=True)
    else:
        prepare(config.corpus, target, config.reading, config.build, given=config.given)


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
