"""The paper's Sections 2 and 3, word by word: the first file to read.

    p(w_t | w_1 ... w_{t-1}) = softmax_w(h_{t-1} . y_w + b_w)      Eq. 1         `Reference.read`
    h_t     = LSTM(x_{w_t}, h_{t-1})                               Eq. 2         `Reference.lstm`
    d_{e,i} = merge(d'_{e,i}, d_{e,i-1}),   d_{e,0} = 0            Eq. 4 (max)   `Reference.merge`
    d'_e    = ReLU(W_hd [h_fwd_{t-1}; h_bwd_{t+1}] + b_d)          Eqs. 5 to 8   `Reference.context`
    x_e     = W_dx d_{e,i} + b_e^x                                 Eqs. 3, 9     `Reference.x`
    y_e     = W_dy d_{e,i} + b_e^y                                 Eq. 10        `Reference.y`

`Reference` takes the parameters of a DynamicTextModel and reads one document, word by word and
sentence by sentence: no batch, no schedule, no library layer, any dtype. All else in `dntm.model`
gives the same numbers faster, and the tests compare it with this file.

    reference = Reference.of(model)
    log_p, state = reference.read(sentences, reference.begin())

Beyond the paper, and without effect unless the settings ask for them: `directly`, `salience`,
`newcomer`, `point` and `name`.

Departure: the paper does not say what becomes of several mentions in one sentence; all of them are
encoded with the embeddings from before the sentence, and merged left to right at its end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from dntm.corpus.vocabulary import entity_rows
from dntm.model.config import ModelConfig
from dntm.model.newcomer import LATER
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
        """The same values, cut off from their gradients."""
        contexts, scores = (tuple(v.detach() for v in vs) for vs in (self.contexts, self.scores))
        return Entity(self.d.detach(), contexts, scores)


@dataclass(frozen=True)
class State:
    """What is carried from one sentence of a document to the next."""

    h: Tensor
    c: Tensor
    entities: Mapping[int, Entity] = field(default_factory=dict)
    """The entities mentioned so far, by their rows."""
    mentioned: tuple[tuple[int, ...], ...] = ()
    """The rows of the entities mentioned in each sentence so far."""
    said: tuple["Moment", ...] = ()
    """Every token predicted so far, for the pointer."""

    def detach(self) -> "State":
        """The same values, cut off from their gradients."""
        entities = {row: entity.detach() for row, entity in self.entities.items()}
        said = tuple(moment._replace(h=moment.h.detach()) for moment in self.said)
        return State(self.h.detach(), self.c.detach(), entities, self.mentioned, said)


class Moment(NamedTuple):
    """h_i, the rows of w_i and of w_{i+1}."""

    h: Tensor
    read: int
    said: int


@dataclass(frozen=True)
class Reference:
    """The model with these parameters."""

    config: ModelConfig
    p: Mapping[str, Tensor]
    """The parameters, by their names in `Parameters`."""

    @classmethod
    def of(cls, model: Parameters) -> "Reference":
        """With the parameters of a model."""
        return cls(model.config, dict(model.named_parameters()))

    def begin(self) -> State:
        """The state before the first sentence."""
        zero = self.p["lstm.b"].new_zeros(self.config.hidden_dim)
        return State(zero, zero)

    def read(self, sentences: Sequence[Sequence[int]], state: State) -> tuple[list[Tensor], State]:
        """Log-probability of every token after <bos>, and the state after the sentences.

        A sentence is vocabulary rows, <bos> and <eos> around it.
        """
        log_p: list[Tensor] = []
        for sentence in sentences:
            h, c, mentioned, said = state.h, state.c, (*state.mentioned, ()), state.said
            x = [self.x(row, state.entities) for row in sentence]
            y = self.y(state.entities)
            for position, row in enumerate(sentence):
                if position > 0:
                    read = self.directly(h, sentence[position - 1], state.entities)
                    logits = y @ read + self.p["output.b"]
                    logits = logits + self.salience(read, mentioned)
                    logits = self.newcomer(logits, mentioned)
                    now = Moment(h, sentence[position - 1], row)
                    logits = self.point(logits, read, now.read, said)
                    log_p.append(logits.log_softmax(0)[row])  # Eq. 1
                    said = (*said, now)
                h, c = self.lstm("lstm", x[position], h, c)  # Eq. 2
                if self.is_entity(row):
                    mentioned = (*mentioned[:-1], (*mentioned[-1], row))
            entities = dict(state.entities)  # d_{e,i} = d_{e,i-1} if e is not in sentence i
            for position, row in enumerate(sentence):
                if self.is_entity(row) and self.config.variant != "baseline":
                    entities[row] = self.merge(self.context(x, position), entities.get(row))
            state = State(h, c, entities, mentioned, said)
        return log_p, state

    def is_entity(self, row: int) -> bool:
        """Whether a row of the vocabulary is an entity's."""
        rows = entity_rows(self.config.entities)
        return bool(rows.start <= row < rows.stop)

    def x(self, row: int, entities: Mapping[int, Entity]) -> Tensor:
        """Eqs. 3 (with W_dc) and 9: the input embedding; in B and D an entity's is dynamic."""
        x = self.p["x.weight"][row]
        if self.config.dynamic_input and row in entities:
            x = self.p["x.W_dx"] @ entities[row].d + x
        return x

    def y(self, entities: Mapping[int, Entity]) -> Tensor:
        """Eq. 10: all output embeddings; those of entities are dynamic in variants C and D."""
        y = list(self.p["x.weight" if self.config.tied else "output.y.weight"])
        if self.config.dynamic_output:
            for row, entity in entities.items():
                y[row] = self.p["output.y.W_dy"] @ entity.d + y[row]
        return torch.stack(y)

    def name(self, row: int, entities: Mapping[int, Entity]) -> Tensor:
        """Beyond the paper: log p(w | e) of every word, which one the entity in this row is."""
        words = self.p["x.weight"][entity_rows(self.config.entities).stop :]
        cosines = cosine_similarity(self.x(row, entities).unsqueeze(0), words)
        return (self.p["naming.s"] * cosines).log_softmax(0)

    def lstm(self, name: str, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Eqs. 2, 7 and 8: one step of the LSTM of this name."""
        gates = self.p[f"{name}.W_ih"] @ x + self.p[f"{name}.W_hh"] @ h + self.p[f"{name}.b"]
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def context(self, x: Sequence[Tensor], position: int) -> Tensor:
        """Eqs. 5 to 8: d'_e of the mention at a position of a sentence with embeddings x."""
        zero = x[0].new_zeros(self.config.encoder_dim)
        h_fwd, c = zero, zero
        for x_t in x[:position]:
            h_fwd, c = self.lstm("encoder.forward_lstm", x_t, h_fwd, c)  # Eq. 7
        h_bwd, c = zero, zero
        for x_t in reversed(x[position + 1 :]):
            h_bwd, c = self.lstm("encoder.backward_lstm", x_t, h_bwd, c)  # Eq. 8
        W_hd, b_d = self.p["encoder.W_hd"], self.p["encoder.b_d"]
        return torch.relu(W_hd @ torch.cat((h_fwd, h_bwd)) + b_d)  # Eq. 6

    def merge(self, context: Tensor, entity: Entity | None) -> Entity:
        """Eq. 4 and Section 3's merging functions: d_{e,i} of a context d'_{e,i} and d_{e,i-1}."""
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

    def directly(self, h: Tensor, row: int, entities: Mapping[int, Entity]) -> Tensor:
        """Beyond the paper: what the output layer reads after the token in this row."""
        if not (self.config.direct and self.config.dynamic_input and row in entities):
            return h
        return h + self.p["output.W_dh"] @ entities[row].d

    def salience(self, h: Tensor, mentioned: Sequence[Sequence[int]]) -> Tensor:
        """Beyond the paper: what an entity's logit gains by how recent and frequent it is."""
        gains = [h.new_zeros(()) for _ in range(self.config.vocabulary)]
        for row in {row for rows in mentioned for row in rows if self.config.salience}:
            ago = next(i for i, rows in enumerate(reversed(mentioned)) if row in rows)
            times = sum(rows.count(row) for rows in mentioned)
            a = ago if ago <= 2 else 3 if ago <= 4 else 4 if ago <= 8 else 5
            n = times - 1 if times <= 2 else 2 if times <= 4 else 3 if times <= 8 else 4
            k = self.p["salience.k"][row - entity_rows(self.config.entities).start]
            gains[row] = h @ (self.p["salience.r"][a] + self.p["salience.f"][n] + k)
            gains[row] = gains[row] + self.p["salience.r_b"][a] + self.p["salience.f_b"][n]
        return torch.stack(gains)

    def newcomer(self, logits: Tensor, mentioned: Sequence[Sequence[int]]) -> Tensor:
        """Beyond the paper: the rows that nobody has yet are the next newcomer's together."""
        rows, known = entity_rows(self.config.entities), {row for rows in mentioned for row in rows}
        free = [row for row in range(rows.start, rows.stop) if row not in known]
        if not self.config.newcomer or not free:
            return logits
        found = list(logits)
        for row in free[1:]:
            found[row] = logits[row] - LATER
        found[free[0]] = logits[free].exp().sum().log()
        return torch.stack(found)

    def point(self, z: Tensor, h: Tensor, read: int, said: Sequence[Moment]) -> Tensor:
        """Beyond the paper: each row's logit with those of the moments in which it was said."""
        if not self.config.pointer:
            return z
        p = {name: self.p[f"pointer.{name}"] for name in "W_q W_k W_v v r u b theta kappa".split()}
        found = list(z.exp())
        for ago, (h_i, read_i, row) in enumerate(reversed(said), start=1):
            a = p["theta"] * (h @ h_i) + (p["W_q"] @ h) @ (p["W_k"] @ h_i)
            if read_i == read:
                a = a + p["kappa"][int(self.is_entity(read))]
            a = a + (p["W_v"] @ h + p["v"]) @ self.p["x.weight"][row].detach()
            if self.is_entity(row):
                a = a + self.p["pointer.gamma"] * z[row].detach()
            age = min(ago.bit_length(), len(p["r"])) - 1
            found[row] = found[row] + (a + p["r"][age] + p["u"] @ h + p["b"]).exp()
        return torch.stack(found).log()
