"""The terms of a model, built from its config.

Each term receives the query as modified by the terms before it, so their order is fixed: terms that
change h come first, then those that add to the logits of entities, then those that rearrange or
copy logits.
"""

from collections.abc import Callable

from torch import nn

from dntm.model.baselines.entity_nlm import EntityNLM
from dntm.model.config import ModelConfig
from dntm.model.dynamic_embedding import DynamicOutput
from dntm.model.extensions.entity_residual import EntityResidual
from dntm.model.extensions.naming import Naming
from dntm.model.extensions.pointer import Pointer
from dntm.model.extensions.salience import Salience
from dntm.model.extensions.unseen_pooling import UnseenPooling
from dntm.model.term import Term

DYNAMIC_OUTPUT = "dynamic-output"
"""The paper's own term."""

_TERMS: dict[str, Callable[[ModelConfig], Term]] = {
    "entity-residual": lambda c: EntityResidual(c.hidden_dim, c.context_dim),
    DYNAMIC_OUTPUT: lambda c: DynamicOutput(c.hidden_dim, c.context_dim),
    "salience": lambda c: Salience(c.entities, c.hidden_dim),
    "entity-nlm": lambda c: EntityNLM(c.entities, c.hidden_dim),
    "unseen-pooling": lambda c: UnseenPooling(c.entities),
    "pointer": lambda c: Pointer(c.entities, c.hidden_dim, c.embedding_dim),
    "naming": lambda _: Naming(),
}


def build_terms(config: ModelConfig) -> nn.ModuleDict:
    """The terms by name, in their order."""
    wanted = {*config.extensions, *([DYNAMIC_OUTPUT] if config.dynamic_output else [])}
    return nn.ModuleDict({name: build(config) for name, build in _TERMS.items() if name in wanted})
