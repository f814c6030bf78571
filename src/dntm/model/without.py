"""Models without some of their parts: how a reading changes without a part is its effect.

The parts are the extensions and the memory. Without memory every d_e is zero: the model is the
baseline (A) with the same weights, and extensions that read d_e are left out too.
"""

from collections.abc import Collection
from dataclasses import replace

import torch

from dntm.model.config import NEED_DYNAMIC_INPUT
from dntm.model.language_model import DynamicTextModel

MEMORY = "memory"


def parts_of(model: DynamicTextModel) -> tuple[str, ...]:
    """The parts that a model can be used without."""
    return (MEMORY,) * (model.config.variant != "baseline") + model.config.extensions


def without(model: DynamicTextModel, parts: Collection[str]) -> DynamicTextModel:
    """The model without some parts; it shares all other weights."""
    if odd := [part for part in parts if part not in parts_of(model)]:
        found = ", ".join(parts_of(model)) or "none"
        raise ValueError(
            f"the model has no part {odd[0]!r:.80} to leave out: its parts are {found}"
        )
    config, static = model.config, MEMORY in parts
    if not parts:
        return model
    left_out = {*parts, *(NEED_DYNAMIC_INPUT if static else ())}
    kept = tuple(name for name in config.extensions if name not in left_out)
    variant = "baseline" if static else config.variant
    with torch.device("meta"):  # every tensor is replaced
        other = DynamicTextModel(replace(config, variant=variant, extensions=kept))
    other.core, other.output = model.core, model.output
    if static:
        other.x.load_state_dict(model.x.state_dict(), strict=False, assign=True)
        other.x.weight = model.x.weight
    else:
        other.x, other.memory = model.x, model.memory
    for name in other.terms:
        other.terms[name] = model.terms[name]
    other.exchange_memories = model.exchange_memories
    return other.train(model.training)
