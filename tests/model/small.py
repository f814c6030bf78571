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

BOS, EOS, A, B, C = 1, 2, 3, 4, 5
"""Rows of the small vocabulary; A, B and C are entities, 6 to 11 are words."""
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

Document = Sequence[Sequence[int]]

# Several mentions of an entity in one sentence, an entity that returns after many sentences,
# sentences without entities, unknown words, documents of one and of no sentence.
LONG: Document = [
    [BOS, 7, A, 8, 9, A, B, EOS],
    [BOS, 9, 10, EOS],
    [BOS, B, 7, EOS],
    [BOS, A, 8, B, 8, A, A, 9, EOS],
    [BOS, 11, C, EOS],
    [BOS, C, EOS],
    [BOS, 6, 6, 7, A, 9, 10, C, EOS],
]
DOCUMENTS: list[Document] = [
    [[BOS, A, 7, EOS], [BOS, 8, A, 9, EOS], [BOS, A, A, EOS]],
    LONG,
    [[BOS, 0, A, 0, 10, 0, EOS]],
    [],
    [[BOS, 7, 8, EOS], [BOS, 9, B, A, EOS], [BOS, B, EOS], [BOS, 6, A, B, 10, 11, EOS]],
    [[BOS, A, 7, EOS], *[[BOS, 8, EOS]] * 10, [BOS, B, *[A] * 9, 7, B, EOS]],
]


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


def assert_equal_gradients(model: DynamicTextModel, reference: Reference) -> None:
    """Compare the gradients of all parameters; no gradient counts as zero."""
    for name, parameter in model.paper_parameters().items():
        grads = [p.grad for p in (parameter, reference.p[name])]
        found, expected = (torch.zeros_like(parameter) if g is None else g for g in grads)
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10, msg=name)
