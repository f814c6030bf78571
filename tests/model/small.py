"""Small models in double precision, their references, and checks that every model must pass."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from dntm.model.config import Extension, Merging, ModelConfig, Variant
from dntm.model.extensions.reference import ExtendedReference
from dntm.model.fast.window import Window, windows
from dntm.model.language_model import DynamicTextModel
from dntm.model.reference import Reference
from tests.model.texts import Document

CORES = ("lstm", "transformer")
ALL_EXTENSIONS: dict[Variant, tuple[Extension, ...]] = {
    "baseline": ("salience", "entity-nlm", "unseen-pooling", "pointer"),
    "input": ("entity-residual", "salience", "unseen-pooling", "pointer", "naming"),
    "output": ("salience", "unseen-pooling", "pointer", "word-attention"),
    "both": (
        *("entity-residual", "salience", "unseen-pooling", "pointer", "naming"),
        "word-attention",
    ),
}
"""All extensions that a variant can have at once."""


def configure(
    variant: Variant = "both",
    merging: Merging = "gru-relu",
    extensions: Sequence[Extension] = (),
    **settings: Any,
) -> ModelConfig:
    """The settings of a small model; sizes differ wherever they can."""
    square = settings.get("tied") or settings.get("core") == "transformer"
    sizes: dict[str, Any] = {
        "vocabulary": 12,
        "entities": 3,
        "embedding_dim": 8 if square else 5,
        "hidden_dim": 8 if square else 4,
        "encoder_dim": 3,
        "context_dim": 6,
        "heads": 2,
    }
    own = {"variant": variant, "merging": merging, "extensions": tuple(extensions)}
    return ModelConfig(**(sizes | own | settings))


def build(*settings: Any, **named: Any) -> DynamicTextModel:
    """The model of `configure`, with parameters that are all large enough to matter."""
    generator = torch.Generator().manual_seed(7)
    model = DynamicTextModel(configure(*settings, **named), generator).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.6)
    return model


def reference_of(model: DynamicTextModel) -> Reference:
    """The reference with copies of the model's parameters, so that gradients can be compared."""
    copies: dict[int, Tensor] = {}
    for parameter in model.parameters():
        copies[id(parameter)] = parameter.detach().clone().requires_grad_()
    own = {name: copies[id(parameter)] for name, parameter in model.paper_parameters().items()}
    config = model.config
    paper = config.core == "lstm" and not config.core_dim and not config.extensions
    return (Reference if paper else ExtendedReference)(model.config, own)


def each_window(
    model: DynamicTextModel, documents: Sequence[Document], size: int
) -> Iterator[tuple[Window, list[int], list[int]]]:
    """Each window with its documents: indices in the previous window, and in the batch."""
    for text in windows(documents, size):
        yield model.plan(text.sentences, text.continues), text.kept, text.documents


def score(model: DynamicTextModel, documents: Sequence[Document], size: int) -> list[list[float]]:
    """Log-probabilities of each document, read `size` sentences at a time."""
    found: list[list[float]] = [[] for _ in documents]
    state = model.initial_state(len(documents))
    for window, kept, own in each_window(model, documents, size):
        scores, state = model.score(window, state.select(kept))
        for document, values in zip(own, scores, strict=True):
            found[document] += values.tolist()
    return found


def backward(value: Tensor) -> None:
    """Add the gradients of a value to those of the parameters."""
    value.backward()  # type: ignore[no-untyped-call]
