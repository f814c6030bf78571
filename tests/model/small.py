"""A small model in double precision, and the reference with the same parameters."""

from collections.abc import Mapping
from typing import Any

import torch

from dntm.model.config import Merging, ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.model.reference import Reference

BOS, EOS, A, B, C = 1, 2, 3, 4, 5
"""Rows of the small vocabulary; A, B and C are entities, 6 to 11 words."""


def build(
    variant: Variant,
    merging: Merging,
    *,
    tied: bool = False,
    salience: bool = False,
    newcomer: bool = False,
    beyond: bool = False,
    naming: bool = False,
    dropouts: Mapping[str, Any] | None = None,
) -> DynamicTextModel:
    """A model whose parameters, biases too, are all large enough to matter.

    With `beyond` it has all terms of the output layer that the paper does not have.
    """
    config = ModelConfig(
        vocabulary=12,
        entities=3,
        variant=variant,
        merging=merging,
        tied=tied,
        salience=salience or beyond,
        newcomer=newcomer or beyond,
        direct=beyond,
        pointer=beyond,
        naming=naming,
        embedding_dim=5,
        hidden_dim=5 if tied else 4,
        encoder_dim=3,
        context_dim=6,
        **(dropouts or {}),
    )
    generator = torch.Generator().manual_seed(7)
    model = DynamicTextModel(config, generator).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.7)
    return model


def oracle_of(model: DynamicTextModel) -> Reference:
    """The reference with the model's parameters, as leaves of their own."""
    parameters = {
        name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()
    }
    return Reference(model.config, parameters)
