"""DynamicTextModel: the language model with dynamic embeddings (Sections 2 and 3).

    h_t  = LSTM(x_{w_t}, h_{t-1})                                      Eq. 2
    p    = softmax_w(h . y_w + b_w)                                    Eq. 1
    x_e  = W_dx d_{e,i} + b_e^x,   y_e = W_dy d_{e,i} + b_e^y          Eqs. 9, 10
    d_{e,i} = merge(d'_{e,i}, d_{e,i-1}),   d'_{e,i} = ContextEncoder(e, i)

The model reads stretches as `schedule.plan` lays them out: first the contexts, level by level,
into the table of states; then the LSTM over all tokens; then the output layer over all
predictions. Every token after <bos> is predicted, <eos> too; every token is read.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.config import ModelConfig
from dntm.model.context_encoder import ContextEncoder
from dntm.model.deferred import Deferred
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.entity_memory import (
    add_dynamic_terms,
    dynamic_logits,
    encoder_tokens,
    indices,
    state_table,
)
from dntm.model.lstm import LSTM
from dntm.model.merging import merging_function
from dntm.model.output_layer import OutputLayer
from dntm.model.reading_state import ReadingState
from dntm.model.salience import Mentions, Salience
from dntm.schedule import FIRST, Stretch, plan


class DynamicTextModel(nn.Module):
    """The paper's model in all its variants; the baseline has no encoder and no merging."""

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        rows, d = config.vocabulary, config.context_dim
        self.x = DynamicEmbedding(rows, config.embedding_dim, d if config.dynamic_input else None)
        self.lstm = LSTM(config.embedding_dim, config.hidden_dim)
        self.output = OutputLayer(rows, config.hidden_dim, d if config.dynamic_output else None)
        self.salience = Salience(config.entities, config.hidden_dim) if config.salience else None
        self.encoder = self.merging = None
        if config.variant != "baseline":
            self.encoder = ContextEncoder(config.embedding_dim, config.encoder_dim, d)
            self.merging = merging_function(config.merging, d)
        for module in (self.output, self.x, self.lstm, self.encoder, self.merging):
            if module is not None:
                module.reset_parameters(generator)
        if config.tied:
            self.output.y.weight = self.x.weight

    def plan(
        self,
        documents: Sequence[Sequence[Sequence[int]]],
        goes_on: Sequence[bool] | None = None,
    ) -> Stretch:
        """The stretch of these sentences for this model; see `schedule.plan`."""
        return plan(
            documents,
            entities=self.config.entities,
            dynamic_input=self.config.dynamic_input,
            dynamic_output=self.config.dynamic_output,
            goes_on=goes_on,
        )

    def initial_state(self, documents: int) -> ReadingState:
        """The state before the first sentence: everything zero."""
        zeros = self.x.weight.new_zeros(documents, self.config.hidden_dim)
        state = zeros.new_empty(0) if self.merging is None else self.merging.initial(zeros)
        memory = state.expand(documents, self.config.entities, -1)
        mentions = None if self.salience is None else Mentions.none(*memory.shape[:2])
        return ReadingState(zeros, zeros, memory, mentions)

    def loss(
        self, stretch: Stretch, state: ReadingState, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, ""], int, ReadingState]:
        """Sum of nats over the predicted tokens, their number, and the state after them.

        Dropout, in training, draws from `generator`.
        """
        read = self._read(stretch, state, generator)
        h, entities = self._at(stretch, read, stretch.layout.predicting, generator)
        nats = self.output.loss(h, entities, indices(stretch.layout.targets, h))
        return nats, len(stretch.layout.targets), read.after

    @torch.no_grad()
    def score(
        self, stretch: Stretch, state: ReadingState
    ) -> tuple[list[Float[np.ndarray, " predicted"]], ReadingState]:
        """Log-probabilities of each document's predicted tokens, and the state after them."""
        scores, _, after = self.trace(stretch, state)
        return scores, after

    @torch.no_grad()
    def trace(
        self, stretch: Stretch, state: ReadingState
    ) -> tuple[
        list[Float[np.ndarray, " predicted"]],
        Float[Tensor, "sentences entities context_dim"],
        ReadingState,
    ]:
        """Like `score`, and between the two d_e of every entity as each sentence begins.

        Sentences count through the documents; the baseline's d has no numbers.
        """
        read = self._read(stretch, state)
        h, entities = self._at(stretch, read, stretch.layout.predicting)
        scores = self.output.score(h, entities, indices(stretch.layout.targets, h)).cpu().numpy()
        begins = read.d.index_select(0, indices(stretch.begins().ravel(), read.d))
        begins = begins.view(*stretch.known.shape, read.d.shape[1])
        return np.split(scores, np.cumsum(stretch.layout.predicted)[:-1]), begins, read.after

    @torch.no_grad()
    def log_distribution(
        self, stretch: Stretch, state: ReadingState, positions: Sequence[int]
    ) -> tuple[
        Float[Tensor, "positions hidden_dim"], Float[Tensor, "positions vocabulary"], ReadingState
    ]:
        """The h and the next token's distribution once the tokens at `positions` are read.

        Positions count every token, <bos> and <eos> too, in reading order through the documents,
        and rise. The last value is the state after the stretch.
        """
        chosen = np.asarray(positions, dtype=np.int64)
        tokens = len(stretch.layout.read)
        if np.any(np.diff(chosen) <= 0) or np.any((chosen < 0) | (chosen >= tokens)):
            raise ValueError(f"positions {positions}, expected rising ones below {tokens}")
        read = self._read(stretch, state)
        h, entities = self._at(stretch, read, chosen)
        return h, self.output.log_distribution(h, entities), read.after

    def embed(
        self, stretch: Stretch, state: ReadingState, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "places embedding_dim"], Float[Tensor, "states state_dim"]]:
        """The x at every place of the layout, and the table of all states."""
        config, layout = self.config, stretch.layout
        # One look-up for everybody: its gradient is a table as large as all embeddings.
        parts = [layout.tokens, *encoder_tokens(stretch)]
        tokens = indices(np.concatenate(parts), state.h)
        looked_up = nn.functional.embedding(tokens, self.x.weight)
        words, *encoded = torch.split(looked_up, [len(part) for part in parts])
        table = state.memory.flatten(0, 1)
        W_dx = None if self.x.W_d is None else Deferred(self.x.W_d)
        if self.encoder is not None and self.merging is not None:
            table = state_table(
                stretch,
                encoded,
                table,
                W_dx=W_dx,
                encoder=self.encoder,
                merging=self.merging,
                drop=lambda d: self._drop(d, config.dropout_context, generator),
            )
        x = add_dynamic_terms(words, W_dx, table, stretch.entity_places, stretch.entity_rows)
        return self._drop(x, config.dropout_embedding, generator), table

    def entity_logits(
        self,
        stretch: Stretch,
        h: Float[Tensor, "positions hidden_dim"],
        d: Float[Tensor, "states context_dim"],
        positions: Int[np.ndarray, " positions"],
        mentions: Mentions | None,
    ) -> Float[Tensor, "positions entities"] | None:
        """What each entity's logit has beyond the static one: h . (W_dy d_e), and its salience.

        `mentions` are those of each of the positions; None where there is no such term.
        """
        dynamic = dynamic_logits(stretch, h, d, self.output.y, positions)
        if self.salience is None or mentions is None:
            return dynamic
        salient = self.salience.logits(h, mentions)
        return salient if dynamic is None else dynamic + salient

    def input_embedding(
        self, entity: int, memory: Float[Tensor, " state_dim"]
    ) -> Float[Tensor, " embedding_dim"]:
        """x_e of entity 1, 2, ... in a state of the memory (Eq. 9)."""
        return self._entity(self.x, entity, memory)

    def output_embedding(
        self, entity: int, memory: Float[Tensor, " state_dim"]
    ) -> Float[Tensor, " hidden_dim"]:
        """y_e of entity 1, 2, ... in a state of the memory (Eq. 10)."""
        return self._entity(self.output.y, entity, memory)

    def freeze_encoder(self) -> None:
        """Fix the pretrained encoder, as the paper does; gradients still pass through it."""
        if self.encoder is not None:
            self.encoder.requires_grad_(requires_grad=False)

    def _entity(self, table: DynamicEmbedding, entity: int, memory: Tensor) -> Tensor:
        if not 1 <= entity <= self.config.entities:
            raise ValueError(f"entity {entity}, expected 1 to {self.config.entities}")
        row = torch.tensor([FIRST - 1 + entity], device=memory.device)
        return table.entity(row, memory[: self.config.context_dim].unsqueeze(0)).squeeze(0)

    def _drop(self, values: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
        if not self.training or share == 0:
            return values
        kept = torch.empty_like(values).bernoulli_(1 - share, generator=generator)
        return values * kept / (1 - share)

    def _at(
        self,
        stretch: Stretch,
        read: "_Read",
        positions: Int[np.ndarray, " positions"],
        generator: torch.Generator | None = None,
    ) -> tuple[Float[Tensor, "positions hidden_dim"], Float[Tensor, "positions entities"] | None]:
        """What the output layer sees after these tokens: h, and what entities' logits add."""
        h = read.h.index_select(0, indices(stretch.layout.read[positions], read.h))
        h = self._drop(h, self.config.dropout_hidden, generator)
        mentions = None if read.mentions is None else read.mentions.at(positions)
        return h, self.entity_logits(stretch, h, read.d, positions, mentions)

    def _read(
        self, stretch: Stretch, state: ReadingState, generator: torch.Generator | None = None
    ) -> "_Read":
        x, table = self.embed(stretch, state, generator)
        order = indices(stretch.layout.order, x)
        h, c = state.h.index_select(0, order), state.c.index_select(0, order)
        outputs, h, c = self.lstm.carry(x, stretch.layout.segments, h, c)
        mentions, last = state.follow(stretch)
        after = state.after(stretch, table, h, c, last)
        return _Read(outputs, table[:, : self.config.context_dim], mentions, after)


class _Read(NamedTuple):
    """A stretch once it has been read."""

    h: Float[Tensor, "places hidden_dim"]
    """At every place of the layout."""
    d: Float[Tensor, "states context_dim"]
    """Every state of the table."""
    mentions: Mentions | None
    """As of each token in reading order."""
    after: ReadingState


def parameter_count(config: ModelConfig, *, finetuned: bool = False) -> int:
    """Numbers to learn; with `finetuned` without the encoder, which training keeps fixed."""
    with torch.device("meta"):
        model = DynamicTextModel(config)
    if finetuned:
        model.freeze_encoder()
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
