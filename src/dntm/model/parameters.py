"""Parameters: everything that the model learns, by the paper's symbols (Sections 2 and 3).

x.weight, x.W_dx               input embeddings and their dynamic term             Eq. 9
lstm.*                         the language model's LSTM                           Eq. 2
encoder.*                      the context encoder                                 Eqs. 6 to 8
merging.*                      the merging function                                Eq. 4
output.y.weight, output.y.W_dy, output.b     the output layer                      Eqs. 1, 10
output.W_dh                    what it reads of an entity just mentioned
salience.*                     how recently and how often an entity was mentioned
pointer.*                      what the document has said, as rows of the output layer
transformer.*, entity_states.*     what a peer has in the LSTM's place, or besides it
naming.s                       how sharply hidden words are named

`newcomer` has no parameters.
"""

import torch
from torch import nn

from dntm.model.cache import Cache
from dntm.model.config import ModelConfig
from dntm.model.context_encoder import ContextEncoder
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.entity_nlm import EntityStates
from dntm.model.history import History
from dntm.model.lstm import LSTM
from dntm.model.merging import merging_function
from dntm.model.naming import Naming
from dntm.model.output_layer import OutputLayer
from dntm.model.pointer import Pointer
from dntm.model.reading_state import ReadingState
from dntm.model.salience import Mentions, Salience
from dntm.model.transformer import Transformer


class Parameters(nn.Module):
    """The parameters of every variant; the baseline has no encoder and no merging function."""

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.cache: Cache | None = None
        rows, d = config.vocabulary, config.context_dim
        self.x = DynamicEmbedding(
            rows, config.embedding_dim, d if config.dynamic_input else None, name="W_dx"
        )
        self.transformer = self.entity_states = None
        if config.kind == "transformer":
            self.transformer = Transformer(config.embedding_dim, config.layers, config.heads)
        else:
            self.lstm = LSTM(config.embedding_dim, config.hidden_dim)
        if config.kind == "entity-nlm":
            self.entity_states = EntityStates(config.hidden_dim)
        self.output = OutputLayer(
            rows,
            config.hidden_dim,
            d if config.dynamic_output else None,
            direct=d if config.direct and config.dynamic_input else None,
        )
        self.salience = Salience(config.entities, config.hidden_dim) if config.salience else None
        self.pointer = None
        if config.pointer:
            self.pointer = Pointer(config.hidden_dim, config.embedding_dim)
        self.naming = Naming() if config.naming else None
        self.encoder = self.merging = None
        if config.variant != "baseline":
            self.encoder = ContextEncoder(config.embedding_dim, config.encoder_dim, d)
            self.merging = merging_function(config.merging, d)
        core = self.transformer or self.lstm
        parts = (self.output, self.x, core, self.encoder, self.merging, self.entity_states)
        for module in (*parts, self.pointer):
            if module is not None:
                module.reset_parameters(generator)
        if config.tied:
            self.output.y.weight = self.x.weight

    def initial_state(self, documents: int) -> ReadingState:
        """The state before the first sentence: everything zero."""
        zeros = self.x.weight.new_zeros(documents, self.config.hidden_dim)
        state = zeros.new_empty(0) if self.merging is None else self.merging.initial(zeros)
        memory = state.expand(documents, self.config.entities, -1)
        mentions = current = None
        if self.salience is not None or self.config.newcomer or self.entity_states is not None:
            mentions = Mentions.none(*memory.shape[:2])
        if self.entity_states is not None:
            memory = zeros.unsqueeze(1).expand(-1, self.config.entities, -1)
            current = zeros
        looks_back = self.cache is not None or self.pointer is not None
        history = (History(),) * documents if looks_back else None
        past = None if self.transformer is None else ((),) * documents
        return ReadingState(zeros, zeros, memory, mentions, (), history, past, current)

    def freeze_encoder(self, *, merging: bool = False) -> None:
        """Fix the pretrained encoder, as the paper does; gradients still pass through it.

        With `merging`, that function and W_dx are fixed, too: what makes x_e look like a word is
        then not changed by what makes the next word likely.
        """
        if self.encoder is not None:
            self.encoder.requires_grad_(requires_grad=False)
        if merging and self.merging is not None:
            self.merging.requires_grad_(requires_grad=False)
        if merging and self.x.W_d is not None:
            self.x.W_d.requires_grad = False
