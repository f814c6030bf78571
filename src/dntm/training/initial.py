"""The weights that training begins with."""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.corpus.vectors import WordVectors, resized
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import best_of, from_pretrained
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.training.config import TrainConfig

LENGTH = 0.3
"""Length of an input row that begins with a word vector, for each root of its width."""


def initial_model(config: TrainConfig, vocabulary: Vocabulary) -> DynamicTextModel:
    """A new model, with what pretraining hands over and the weights of `start_from` it shares."""
    generator = torch.Generator().manual_seed(config.seed)
    try:
        model = DynamicTextModel(config.model, generator)
    except RuntimeError as error:
        if "alloc" not in str(error):
            raise
        count = parameter_count(config.model)
        raise ValueError(f"a model of {count:,} numbers does not fit into memory") from None
    if config.pretrained:
        PretrainedEncoder.load(best_of(config.pretrained)).hand_over(model, vocabulary)
        if config.training.freeze_encoder:
            model.freeze_encoder()
    if config.vectors:
        vectors = WordVectors.read(config.vectors, vocabulary)
        begin_with(model.x.weight, vectors, vocabulary)
        # Logits that begin small, as after pretraining; a tied table too is an output layer
        begin_with(model.output.y.weight, vectors, vocabulary, length=1.0)
    if config.start_from:
        _copy(model, vocabulary, config.start_from)
    return model


@torch.no_grad()
def begin_with(
    x: Float[Tensor, "rows dim"],
    vectors: WordVectors,
    vocabulary: Vocabulary,
    *,
    length: float | None = None,
) -> None:
    """Let the rows of words that have a vector begin with it, in this table's width.

    All rows have the same length, so that cosines are kept and no word is louder than another.
    """
    rows, found = vectors.of(vocabulary)
    if not len(rows):
        raise ValueError("the word vectors have no word of the vocabulary")
    length = length or LENGTH * x.shape[1] ** 0.5
    x.copy_(length * nn.functional.normalize(x, dim=1))
    begun = torch.from_numpy(resized(found, x.shape[1])).to(x)
    x.index_copy_(
        0, torch.from_numpy(rows).to(x.device), length * nn.functional.normalize(begun, dim=1)
    )


def _copy(model: DynamicTextModel, vocabulary: Vocabulary, source: Path) -> None:
    folder = best_of(source)
    trained, words = from_pretrained(folder)
    if words != vocabulary:
        raise ValueError(f"{folder} has another vocabulary than the dataset: cannot start from it")
    # Unlike `named_parameters` this names a tied table twice, as x and as y.
    weights = trained.state_dict()
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
