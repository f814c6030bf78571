"""Parameters: the three parts of the model, everything they learn, and the state of reading.

    x         input embeddings                                     Eq. 9
    core      the language model: an LSTM or a Transformer         Eq. 2
    memory    context encoder and merging function                 Eqs. 4, 6 to 8
    output    output embeddings and biases                         Eq. 1
    terms     contributions to the output layer: Eq. 10, extensions

Each term receives the query as modified by the terms before it, so their order is fixed: terms that
change h come first, then those that add to the logits of entities, then those that rearrange or
copy logits.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.base_model import BaseEmbedding, BaseModel, BaseOutput, EntityRows, load_base
from dntm.model.baselines.entity_nlm import EntityNLM
from dntm.model.config import ModelConfig
from dntm.model.core import Core, LSTMCore, Transformer
from dntm.model.dynamic_embedding import DynamicEmbedding, DynamicOutput
from dntm.model.entity_memory import EntityMemory, MemoryState
from dntm.model.extensions.entity_residual import EntityResidual
from dntm.model.extensions.naming import Naming
from dntm.model.extensions.pointer import Pointer
from dntm.model.extensions.salience import Salience
from dntm.model.extensions.unseen_pooling import UnseenPooling
from dntm.model.extensions.word_attention import encoder_of
from dntm.model.output_layer import OutputLayer
from dntm.model.pretrained_core import CoreMemory, PretrainedCore
from dntm.model.term import Term


class State(NamedTuple):
    """What core, memory and terms carry from one window of each document to the next."""

    core: Any
    memory: MemoryState
    terms: tuple[Any, ...] = ()

    def select(self, documents: Sequence[int]) -> "State":
        """The state of these documents, in this order; a document may be repeated."""
        terms = tuple(term.select(documents) for term in self.terms)
        return State(self.core.select(documents), self.memory.select(documents), terms)

    def detach(self) -> "State":
        """The same values without gradients."""
        terms = tuple(term.detach() for term in self.terms)
        return State(self.core.detach(), self.memory.detach(), terms)


DYNAMIC_OUTPUT = "dynamic-output"
"""The paper's own term."""

_TERMS: dict[str, Callable[[ModelConfig], Term]] = {
    "entity-residual": lambda c: EntityResidual(c.hidden_dim, c.context_dim),
    DYNAMIC_OUTPUT: lambda c: DynamicOutput(c.hidden_dim, c.context_dim),
    "salience": lambda c: Salience(c.entities, c.hidden_dim),
    "entity-nlm": lambda c: EntityNLM(c.entities, c.hidden_dim),
    "unseen-pooling": lambda c: UnseenPooling(c.entities),
    "pointer": lambda c: Pointer(c.entities, c.hidden_dim, c.embedding_dim),
    "naming": lambda c: Naming(c.embedding_dim, c.context_dim),
}
_PAPER_NAMES = {
    "memory.": "",
    "output.weight": "output.y.weight",
    f"terms.{DYNAMIC_OUTPUT}.": "output.y.",
}
"""How the paper's parameters are named here, and in `paper_parameters`."""
ENTITY_ROWS = "entity-rows"
"""The term with the entities' rows of a pretrained core."""


class Parameters(nn.Module):
    """The parts of a model."""

    core: Core
    exchange_memories = False
    """Whether entities have each other's states, see `fast.read`."""

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.x: DynamicEmbedding
        self.terms: nn.ModuleDict
        if config.is_pretrained:
            self._add_base(load_base(config.core))
        else:
            self._add_own()
        # This order decides what a seed draws. W_dy follows y.
        first = [term for term in self.ordered_terms if isinstance(term, DynamicOutput)]
        rest = [term for term in self.ordered_terms if term not in first]
        for part in (self.output, *first, self.x, self.core, self.memory, *rest):
            part.reset_parameters(generator)
        if config.is_pretrained and self.W_dy is not None:
            nn.init.zeros_(self.W_dy)  # like W_dx: at first the memory changes nothing
        if config.tied:
            self.output.weight = self.x.weight

    def _add_own(self) -> None:
        config = self.config
        context_dim = config.context_dim if config.dynamic_input else None
        self.x = DynamicEmbedding(config.vocabulary, config.embedding_dim, context_dim)
        if config.core == "transformer":
            self.core = Transformer(config.embedding_dim, config.layers, config.heads)
        else:
            self.core = LSTMCore(config.embedding_dim, config.hidden_dim, config.core_dim)
        encoder = None
        if config.variant != "baseline":
            sizes = (config.embedding_dim, config.encoder_dim, config.context_dim)
            first_word = entity_rows(config.entities).stop
            attention = "word-attention" in config.extensions
            encoder = encoder_of(sizes, config.vocabulary, first_word, attention=attention)
        self.memory = EntityMemory(config, encoder)
        self.output = OutputLayer(config.vocabulary, config.hidden_dim)
        self.terms = _terms(config)

    def _add_base(self, base: BaseModel) -> None:
        config = self.config
        context_dim = config.context_dim if config.dynamic_input else None
        self.x = embedding = BaseEmbedding(base, config.entities, context_dim)
        self.core = PretrainedCore(base)
        has_memory = config.variant != "baseline"
        self.memory = CoreMemory(config) if has_memory else EntityMemory(config)
        self.output = BaseOutput(base, embedding, config.entities)
        rows = EntityRows(base, config.entities)
        self.terms = nn.ModuleDict({ENTITY_ROWS: rows, **_terms(config)})

    def initial_state(self, documents: int) -> State:
        """The state before the first sentence."""
        return State(
            self.core.initial(documents),
            self.memory.initial(documents, self.x.weight),
            tuple(term.initial(documents) for term in self.ordered_terms),
        )

    @property
    def ordered_terms(self) -> tuple[Term, ...]:
        """The terms in the order in which they change a query."""
        return tuple(term for term in self.terms.values() if isinstance(term, Term))

    @property
    def W_dy(self) -> nn.Parameter | None:
        """The matrix of Eq. 10, in variants C and D."""
        if not self.config.dynamic_output:
            return None
        term = self.terms[DYNAMIC_OUTPUT]
        assert isinstance(term, DynamicOutput)
        return term.W_dy

    def y_entity(
        self, rows: Int[Tensor, " entities"], d: Float[Tensor, "entities context_dim"]
    ) -> Float[Tensor, "entities hidden_dim"]:
        """Eq. 10: the output embeddings of the entities in these rows, given their states d."""
        y = nn.functional.embedding(rows, self.output.weight)
        if self.config.is_pretrained:
            first = entity_rows(self.config.entities).start
            term = self.terms[ENTITY_ROWS]
            assert isinstance(term, EntityRows)
            y = y + nn.functional.embedding(rows - first, term.weight)
        return y if self.W_dy is None else y + nn.functional.linear(d, self.W_dy)

    def paper_parameters(self) -> dict[str, Tensor]:
        """All parameters, those of the paper under their names in its equations.

        x.weight, x.W_dx; lstm.W_ih, W_hh, b; encoder.forward_lstm.*, encoder.backward_lstm.*,
        encoder.W_hd, encoder.b_d; merging.W, U, b; output.y.weight, output.y.W_dy, output.b.
        """
        names = _PAPER_NAMES | ({"core.": "lstm."} if self.config.core == "lstm" else {})
        found: dict[str, Tensor] = {}
        for name, parameter in self.named_parameters(remove_duplicate=False):
            prefix = next(filter(name.startswith, names), "")
            found[names.get(prefix, "") + name.removeprefix(prefix)] = parameter
        return found

    def freeze_encoder(self, *, merging: bool = False) -> None:
        """Keep the pretrained encoder fixed, as the paper does; gradients still flow through it.

        With `merging` the merging function and W_dx are kept fixed too, so that training the
        language model does not change how x_e resembles a word.
        """
        if self.memory.encoder is not None:
            self.memory.encoder.requires_grad_(requires_grad=False)
        if merging and self.memory.merging is not None:
            self.memory.merging.requires_grad_(requires_grad=False)
        if merging and self.x.W_dx is not None:
            self.x.W_dx.requires_grad = False


def _terms(config: ModelConfig) -> nn.ModuleDict:
    """The terms by name, in their order."""
    wanted = {*config.extensions, *([DYNAMIC_OUTPUT] if config.dynamic_output else [])}
    return nn.ModuleDict({name: build(config) for name, build in _TERMS.items() if name in wanted})
