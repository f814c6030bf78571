"""The model word by word, straight from the equations: no batch, no schedule, no library layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dntm.model.config import ModelConfig


@dataclass
class Entity:
    d: Tensor
    history: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Every d' with its attention score."""


@dataclass
class Reading:
    h: Tensor
    c: Tensor
    entities: dict[int, Entity] = field(default_factory=dict)
    told: list[list[int]] = field(default_factory=list)
    """The entities mentioned in each sentence so far."""

    def detach(self) -> "Reading":
        entities = {
            row: Entity(e.d.detach(), [(d.detach(), score.detach()) for d, score in e.history])
            for row, e in self.entities.items()
        }
        return Reading(self.h.detach(), self.c.detach(), entities, self.told)


@dataclass(frozen=True)
class Oracle:
    config: ModelConfig
    p: Mapping[str, Tensor]
    """The parameters, by their names in the model."""

    def begin(self) -> Reading:
        zero = torch.zeros(self.config.hidden_dim, dtype=self.p["lstm.b"].dtype)
        return Reading(zero, zero)

    def read(
        self, sentences: Sequence[Sequence[int]], reading: Reading
    ) -> tuple[list[Tensor], Reading]:
        """Log-probability of every token after <bos>."""
        log_p: list[Tensor] = []
        h, c, entities = reading.h, reading.c, dict(reading.entities)
        told = list(reading.told)
        for sentence in sentences:
            told.append([])
            before = dict(entities)
            y = self.output(before)
            for position, row in enumerate(sentence):
                if position > 0:
                    logits = y @ h + self.p["output.b"] + self.salience(h, told)
                    log_p.append(logits[row] - logits.exp().sum().log())
                h, c = self.lstm("lstm", self.input(row, before), h, c)
                if self.is_entity(row):
                    told[-1] = [*told[-1], row]
            for position, row in enumerate(sentence):
                if self.is_entity(row) and self.config.variant != "baseline":
                    context = self.context(sentence, position, before)
                    entities[row] = self.merge(context, entities.get(row))
        return log_p, Reading(h, c, entities, told)

    def is_entity(self, row: int) -> bool:
        return 3 <= row < 3 + self.config.entities

    def input(self, row: int, entities: Mapping[int, Entity]) -> Tensor:
        x = self.p["x.weight"][row]
        if self.config.variant in ("input", "both") and row in entities:
            x = x + self.p["x.W_d"] @ entities[row].d
        return x

    def output(self, entities: Mapping[int, Entity]) -> Tensor:
        y = list(self.p["x.weight" if self.config.tied else "output.y.weight"])
        if self.config.variant in ("output", "both"):
            for row, entity in entities.items():
                y[row] = y[row] + self.p["output.y.W_d"] @ entity.d
        return torch.stack(y)

    def salience(self, h: Tensor, told: list[list[int]]) -> Tensor:
        added = [h.new_zeros(()) for _ in range(self.config.vocabulary)]
        for row in {row for sentence in told for row in sentence if self.config.salience}:
            ago = next(i for i, sentence in enumerate(reversed(told)) if row in sentence)
            times = sum(sentence.count(row) for sentence in told)
            a = ago if ago <= 2 else 3 if ago <= 4 else 4 if ago <= 8 else 5
            n = times - 1 if times <= 2 else 2 if times <= 4 else 3 if times <= 8 else 4
            rows = self.p["salience.r"][a] + self.p["salience.f"][n] + self.p["salience.k"][row - 3]
            added[row] = h @ rows + self.p["salience.r_b"][a] + self.p["salience.f_b"][n]
        return torch.stack(added)

    def lstm(self, name: str, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.p[f"{name}.W_ih"] @ x + self.p[f"{name}.W_hh"] @ h + self.p[f"{name}.b"]
        i, f, g, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def context(
        self, sentence: Sequence[int], position: int, entities: Mapping[int, Entity]
    ) -> Tensor:
        zero = torch.zeros(self.config.encoder_dim, dtype=self.p["lstm.b"].dtype)
        h_forward, c = zero, zero
        for row in sentence[:position]:
            x = self.input(row, entities)
            h_forward, c = self.lstm("encoder.forward_lstm", x, h_forward, c)
        h_backward, c = zero, zero
        for row in reversed(sentence[position + 1 :]):
            x = self.input(row, entities)
            h_backward, c = self.lstm("encoder.backward_lstm", x, h_backward, c)
        around = torch.cat((h_forward, h_backward))
        return torch.relu(self.p["encoder.W_hd"] @ around + self.p["encoder.b_d"])

    def merge(self, context: Tensor, entity: Entity | None) -> Entity:
        entity = entity or Entity(torch.zeros_like(context))
        score = context.new_zeros(())
        if self.config.merging == "attention":
            score = self.p["merging.v"] @ torch.tanh(self.p["merging.W"] @ context)
        history = [*entity.history, (context, score)]
        contexts = torch.stack([d for d, _ in history])
        match self.config.merging:
            case "gru":
                d = self.gru(context, entity.d)
            case "gru-relu":
                d = torch.relu(self.gru(context, entity.d))
            case "max":
                d = torch.maximum(context, entity.d)
            case "latest":
                d = context
            case "mean":
                d = contexts.mean(0)
            case "attention":
                d = torch.softmax(torch.stack([s for _, s in history]), 0) @ contexts
        return Entity(d, history)

    def gru(self, context: Tensor, d: Tensor) -> Tensor:
        W_r, W_z, W_n = self.p["merging.W"].chunk(3)
        U_r, U_z, U_n = self.p["merging.U"].chunk(3)
        b_r, b_z, b_n = self.p["merging.b"].chunk(3)
        r = torch.sigmoid(W_r @ context + U_r @ d + b_r)
        z = torch.sigmoid(W_z @ context + U_z @ d + b_z)
        n = torch.tanh(W_n @ context + U_n @ (r * d) + b_n)
        return z * d + (1 - z) * n
