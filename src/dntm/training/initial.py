"""The weights that training begins with."""

from pathlib import Path

import torch

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import best_of, from_pretrained
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.training.config import TrainConfig


def initial_model(config: TrainConfig, vocabulary: Vocabulary) -> DynamicTextModel:
    """A new model, with what pretraining hands over and the weights of `start_from` it shares."""
    generator = torch.Generator().manual_seed(config.seed)
    model = DynamicTextModel(config.model, generator)
    if config.pretrained:
        PretrainedEncoder.load(best_of(config.pretrained)).hand_over(model, vocabulary)
        if config.training.freeze_encoder:
            model.freeze_encoder()
    if config.start_from:
        _copy(model, vocabulary, config.start_from)
    return model


def _copy(model: DynamicTextModel, vocabulary: Vocabulary, source: Path) -> None:
    folder = best_of(source)
    trained, words = from_pretrained(folder)
    if words != vocabulary:
        raise ValueError(f"{folder} has another vocabulary than the dataset: cannot start from it")
    weights = dict(trained.named_parameters())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in weights:
                continue
            if weights[name].shape != parameter.shape:
                raise ValueError(
                    f"{folder}: {name} has shape {tuple(weights[name].shape)}, "
                    f"expected {tuple(parameter.shape)}"
                )
            parameter.copy_(weights[name])
