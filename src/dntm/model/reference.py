"""The paper's Sections 2 and 3, word by word: the first file to read.

    p(w_t | w_1 ... w_{t-1}) = softmax_w(h_{t-1} . y_w + b_w)      Eq. 1         `Reference.logits`
    h_t     = LSTM(x_{w_t}, h_{t-1})                               Eq. 2         `Reference.step`
    d_{e,i} = merge(d'_{e,i}, d_{e,i-1}),   d_{e,0} = 0            Eq. 4 (max)   `Reference.merge`
    d'_e    = ReLU(W_hd [h_fwd_{t-1}; h_bwd_{t+1}] + b_d)          Eqs. 5 to 8   `Reference.context`
    x_e     = W_dx d_{e,i} + b_e^x                                 Eqs. 3, 9     `Reference.x`
    y_e     = W_dy d_{e,i} + b_e^y                                 Eq. 10        `Reference.y`

`Reference` takes the parameters of a DynamicTextModel and reads one document, word by word and
sentence by sentence: no batch, no schedule, no library layer, any dtype. Everything else in
`dntm.model` computes the same numbers faster, and the tests compare it with this file.

`extensions.reference` adds a plain loop for each addition beyond the paper.

Departure: the paper does not say what happens to several mentions in one sentence. Here all of them
are encoded with the embeddings from before the sentence, and merged left to right at its end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from dntm.corpus.vocabulary import entity_rows
from dntm.model.config import ModelConfig
from dntm.model.parameters import Parameters


@dataclass(frozen=True)
class Entity:
    """What is known of an entity after its contexts so far."""

    d: Tensor
    """d_{e,i}"""
    contexts: tuple[Tensor, ...] = ()
    """d'_{e,1} ... d'_{e,i}"""
    scores: tuple[Tensor, ...] = ()
    """Their attention scores, for the merging function `attention`."""

    def detach(self) -> "Entity":
        """The same values without gradients."""
        contexts, scores = (tuple(v.detach() for v in vs) for vs in (self.contexts, self.scores))
        return Entity(self.d.detach(), contexts, scores)


class Token(NamedTuple):
    """A token that was read: its row and h_t."""

    row: int
    h: Tensor


@dataclass(frozen=True)
class State:
    """What is carried from one sentence of a document to the next."""

    core: Any
    """What `step` needs: h and c."""
    entities: Mapping[int, Entity] = field(default_factory=dict)
    """The entities mentioned so far, by their rows."""
    past: tuple[Token, ...] = ()
    """Every token read so far."""

    def detach(self) -> "State":
        """The same values without gradients."""
        entities = {row: entity.detach() for row, entity in self.entities.items()}
        past = tuple(Token(row, h.detach()) for row, h in self.past)
        return State(tuple(value.detach() for value in self.core), entities, past)


@dataclass(frozen=True)
class Reference:
    """The model with these parameters."""

    config: ModelConfig
    p: Mapping[str, Tensor]
    """The parameters by name, see `Parameters.paper_parameters`."""

    @classmethod
    def of(cls, model: Parameters) -> Self:
        """The reference of a model."""
        return cls(model.config, model.paper_parameters())

    def begin(self) -> State:
        """The state before the first sentence."""
        zero = self.p["lstm.b"].new_zeros(len(self.p["lstm.b"]) // 4)
        return State((zero, zero))

    def read(self, sentences: Sequence[Sequence[int]], state: State) -> tuple[list[Tensor], State]:
        """Log-probability of every token after <bos>, and the state after the sentences.

        A sentence is vocabulary rows, from <bos> to <eos>.
        """
        log_p: list[Tensor] = []
        for sentence in sentences:
            core, past = state.core, state.past
            x = [self.x(row, state.entities) for row in sentence]
            y = self.y(state.entities)
            for position, row in enumerate(sentence):
                if position > 0:
                    log_p.append(self.logits(y, past, state.entities).log_softmax(0)[row])  # Eq. 1
                h, core = self.step(x[position], core)  # Eq. 2
                past = (*past, Token(row, h))
            entities = dict(state.entities)  # d_{e,i} = d_{e,i-1} if e is not in sentence i
            for position, row in enumerate(sentence):
                if self.is_entity(row) and self.config.variant != "baseline":
                    context = self.context(x, sentence, position)  # Eqs. 5 to 8
                    entities[row] = self.merge(context, entities.get(row))
            state = State(core, entities, past)
        return log_p, state

    def is_entity(self, row: int) -> bool:
        """Whether a row of the vocabulary is an entity's."""
        rows = entity_rows(self.config.entities)
        return bool(rows.start <= row < rows.stop)

    def logits(
        self,
        y: Tensor,
        past: Sequence[Token],
        entities: Mapping[int, Entity],  # noqa: ARG002 (for extensions)
    ) -> Tensor:
        """Eq. 1: the logit of every row after the past."""
        return y @ past[-1].h + self.p["output.b"]

    def step(self, x: Tensor, core: Any) -> tuple[Tensor, Any]:
        """Eq. 2: the core reads one token."""
        h, c = self.lstm("lstm", x, *core)
        return h, (h, c)

    def x(self, row: int, entities: Mapping[int, Entity]) -> Tensor:
        """Eqs. 3 (with W_dc) and 9: the input embedding; in B and D an entity's is dynamic."""
        x = self.p["x.weight"][row]
        if self.config.dynamic_input and row in entities:
            x = self.p["x.W_dx"] @ entities[row].d + x
        return x

    def y(self, entities: Mapping[int, Entity]) -> Tensor:
        """Eq. 10: all output embeddings; those of entities are dynamic in variants C and D."""
        y = list(self.p["output.y.weight"])
        if self.config.dynamic_output:
            for row, entity in entities.items():
                y[row] = self.p["output.y.W_dy"] @ entity.d + y[row]
        return torch.stack(y)

    def lstm(self, name: str, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Eqs. 2, 7 and 8: one step of the LSTM of this name."""
        gates = self.p[f"{name}.W_ih"] @ x + self.p[f"{name}.W_hh"] @ h + self.p[f"{name}.b"]
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def context(self, x: Sequence[Tensor], rows: Sequence[int], position: int) -> Tensor:  # noqa: ARG002
        """Eqs. 5, 6: d'_e of the mention at a position of a sentence with these x and rows."""
        return torch.relu(self.p["encoder.W_hd"] @ self.around(x, position) + self.p["encoder.b_d"])

    def around(self, x: Sequence[Tensor], position: int) -> Tensor:
        """Eqs. 7, 8: the encoder's states on both sides of a position."""
        zero = x[0].new_zeros(self.config.encoder_dim)
        h_fwd, c = zero, zero
        for x_t in x[:position]:
            h_fwd, c = self.lstm("encoder.forward_lstm", x_t, h_fwd, c)  # Eq. 7
        h_bwd, c = zero, zero
        for x_t in reversed(x[position + 1 :]):
            h_bwd, c = self.lstm("encoder.backward_lstm", x_t, h_bwd, c)  # Eq. 8
        return torch.cat((h_fwd, h_bwd))

    def merge(self, context: Tensor, entity: Entity | None) -> Entity:
        """Eq. 4 and Section 3's merging functions: d_{e,i} from d'_{e,i} and d_{e,i-1}."""
        before = entity or Entity(torch.zeros_like(context))
        contexts, scores = (*before.contexts, context), before.scores
        match self.config.merging:
            case "gru-relu":
                d = torch.relu(self.gru(context, before.d))
            case "gru":
                d = self.gru(context, before.d)
            case "max":
                d = torch.maximum(context, before.d)  # Eq. 4
            case "latest":
                d = context
            case "mean":
                d = torch.stack(contexts).mean(0)
            case "attention":
                score = self.p["merging.v"] @ torch.tanh(self.p["merging.W"] @ context)
                scores = (*scores, score)
                d = torch.stack(scores).softmax(0) @ torch.stack(contexts)
        return Entity(d, contexts, scores)

    def gru(self, context: Tensor, d: Tensor) -> Tensor:
        """The gated recurrent unit of Cho et al. (2014)."""
        W_r, W_z, W_n = self.p["merging.W"].chunk(3)
        U_r, U_z, U_n = self.p["merging.U"].chunk(3)
        b_r, b_z, b_n = self.p["merging.b"].chunk(3)
        r = torch.sigmoid(W_r @ context + U_r @ d + b_r)
        z = torch.sigmoid(W_z @ context + U_z @ d + b_z)
        n = torch.tanh(W_n @ context + U_n @ (r * d) + b_n)
        return z * d + (1 - z) * n
