"""A small model in double precision, the reference with its parameters, and what holds of any."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from dntm.model.config import Merging, ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.model.reading_state import ReadingState
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


def assert_distributions(model: DynamicTextModel, document: Sequence[Sequence[int]]) -> None:
    """Every distribution sums to one, and scores are read off it."""
    state = model.initial_state(1)
    for sentence in document:
        window = model.plan([[sentence]])
        [scores], _ = model.score(window, state)
        _, log_p, state = model.log_distribution(window, state, range(len(sentence)))

        torch.testing.assert_close(log_p.exp().sum(1), torch.ones(len(sentence)).double())
        own = log_p[range(len(sentence) - 1), sentence[1:]]
        np.testing.assert_allclose(own.numpy(), scores, atol=1e-12)


def assert_begun_as_whole(
    model: DynamicTextModel, sentence: Sequence[int], state: ReadingState
) -> None:
    """What is expected next does not depend on whether a sentence has ended."""
    count = len(sentence) - 1
    _, whole, _ = model.log_distribution(model.plan([[sentence]]), state, range(count))
    for length in range(1, count + 1):
        begun = model.plan([[sentence[:length]]])
        _, log_p, _ = model.log_distribution(begun, state, [length - 1])
        torch.testing.assert_close(log_p[0], whole[length - 1])
