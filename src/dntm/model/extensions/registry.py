"""The terms of a model, built from its config.

Each term receives the query as modified by the terms before it, so their order is fixed: terms that
change h come first, then those that add to the logits of entities, then those that rearrange or
copy logits.
"""

from collections.abc import Callable

from torch import nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.baselines.entity_nlm import EntityNLM
from dntm.model.config import ModelConfig
from dntm.model.context_encoder import ContextEncoder
from dntm.model.dynamic_embedding import DynamicOutput
from dntm.model.extensions.entity_residual import EntityResidual
from dntm.model.extensions.naming import Naming
from dntm.model.extensions.pointer import Pointer
from dntm.model.extensions.salience import Salience
from dntm.model.extensions.unseen_pooling import UnseenPooling
from dntm.model.extensions.word_attention import WordAttention
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


def build_encoder(config: ModelConfig) -> ContextEncoder | None:
    """The paper's context encoder, the one with word attention, or none for the baseline."""
    sizes = (config.embedding_dim, config.encoder_dim, config.context_dim)
    if config.variant == "baseline":
        return None
    if "word-attention" not in config.extensions:
        return ContextEncoder(*sizes)
    first_word = entity_rows(config.entities).stop
    return WordAttention(*sizes, config.vocabulary - first_word, first_word)


def build_terms(config: ModelConfig) -> nn.ModuleDict:
    """The terms by name, in their order."""
    wanted = {*config.extensions, *([DYNAMIC_OUTPUT] if config.dynamic_output else [])}
    return nn.ModuleDict({name: build(config) for name, build in _TERMS.items() if name in wanted})
