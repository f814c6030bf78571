"""The naive implementation of training, as one would first write it with PyTorch's own layers.

`SentenceLoop` is the paper's model D with GRU-ReLU merging: one sentence of every document at a
time, padded and packed through `nn.LSTM`, full logits with `cross_entropy`, one merge after
another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from dntm.corpus.vocabulary import entity_rows
from dntm.model.core import LSTM
from dntm.model.language_model import DynamicTextModel
from dntm.model.reference import Reference


@dataclass(frozen=True)
class State:
    """What a document carries from one sentence to the next."""

    h: Tensor
    c: Tensor
    d: dict[int, Tensor] = field(default_factory=dict)
    """d_{e,i} of the entities mentioned so far, by row."""

    def detach(self) -> "State":
        """The same values without their gradients."""
        return State(
            self.h.detach(), self.c.detach(), {row: d.detach() for row, d in self.d.items()}
        )


class SentenceLoop(nn.Module):
    """Model D, one sentence of every document at a time."""

    def __init__(self, model: DynamicTextModel) -> None:
        super().__init__()
        self.config = config = model.config
        if (config.variant, config.merging) != ("both", "gru-relu"):
            raise ValueError(
                f"variant {config.variant} with merging {config.merging}, expected both with "
                "gru-relu: the naive loop has no other"
            )
        self.model, self.reference = model, Reference.of(model)
        self.p = self.reference.p
        self.lstm = nn.LSTM(config.embedding_dim, config.hidden_dim, batch_first=True)
        self.encoder = nn.LSTM(
            config.embedding_dim, config.encoder_dim, batch_first=True, bidirectional=True
        )
        encoder = model.memory.encoder
        assert encoder is not None
        assert isinstance(model.core, LSTM)
        copy_lstm(model.core, self.lstm, "l0")
        copy_lstm(encoder.forward_lstm, self.encoder, "l0")
        copy_lstm(encoder.backward_lstm, self.encoder, "l0_reverse")
        self.encoder.requires_grad_(requires_grad=False)

    def begin(self) -> State:
        """The state before the first sentence."""
        zero = self.p["lstm.b"].new_zeros(self.config.hidden_dim)
        return State(zero, zero)

    def loss(
        self, documents: Sequence[Sequence[Sequence[int]]], states: Sequence[State]
    ) -> tuple[Tensor, list[State]]:
        """Return the sum of nats over the predicted tokens and each document's next state."""
        nats, after = states[0].h.new_zeros(()), list(states)
        for i in range(max(len(document) for document in documents)):
            active = [b for b, document in enumerate(documents) if len(document) > i]
            sentences = [documents[b][i] for b in active]
            found, read = self._sentence(sentences, [after[b] for b in active])
            nats = nats + found
            for b, state in zip(active, read, strict=True):
                after[b] = state
        return nats, after

    def _sentence(
        self, sentences: Sequence[Sequence[int]], states: Sequence[State]
    ) -> tuple[Tensor, list[State]]:
        p, rows = self.p, entity_rows(self.config.entities)
        tokens = pad_sequence([torch.tensor(s) for s in sentences], batch_first=True)
        lengths = torch.tensor([len(s) for s in sentences])
        d = torch.stack([self._d(state) for state in states])
        entity = (tokens - rows.start).clamp(0, self.config.entities - 1)
        dynamic = ((tokens >= rows.start) & (tokens < rows.stop)).unsqueeze(2)
        terms = linear(d, p["x.W_dx"])[torch.arange(len(d)).unsqueeze(1), entity]
        x = p["x.weight"][tokens] + terms * dynamic  # Eq. 9
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        h, c = torch.stack([s.h for s in states]), torch.stack([s.c for s in states])
        output, (h, c) = self.lstm(packed, (h.unsqueeze(0), c.unsqueeze(0)))  # Eq. 2
        hidden = pad_packed_sequence(output, batch_first=True)[0][:, :-1]
        logits = linear(hidden, self.model.output.weight, p["output.b"])
        logits[..., rows] += hidden @ linear(d, p["output.y.W_dy"]).transpose(1, 2)  # Eq. 10
        inside = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
        targets = tokens.masked_fill(~inside, -100)[:, 1:]
        nats = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")  # Eq. 1
        memories = [dict(state.d) for state in states]
        if dynamic.any():
            both = pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]
            h_fwd, h_bwd = both.chunk(2, 2)  # Eqs. 7 and 8
            for b, t in dynamic.squeeze(2).nonzero().tolist():
                around = torch.cat((h_fwd[b, t - 1], h_bwd[b, t + 1]))
                context = torch.relu(p["encoder.W_hd"] @ around + p["encoder.b_d"])  # Eq. 6
                row = int(tokens[b, t])
                before = memories[b].get(row, torch.zeros_like(context))
                memories[b][row] = torch.relu(self.reference.gru(context, before))  # Eq. 4
        return nats, [State(h[0, b], c[0, b], memory) for b, memory in enumerate(memories)]

    def _d(self, state: State) -> Tensor:
        rows = entity_rows(self.config.entities)
        zero = state.h.new_zeros(self.config.context_dim)
        return torch.stack([state.d.get(row, zero) for row in range(rows.start, rows.stop)])


@torch.no_grad()
def copy_lstm(source: LSTM, target: nn.LSTM, suffix: str) -> None:
    """Copy the weights of our LSTM into one direction of PyTorch's layer."""
    target.get_parameter(f"weight_ih_{suffix}").copy_(source.W_ih)
    target.get_parameter(f"weight_hh_{suffix}").copy_(source.W_hh)
    target.get_parameter(f"bias_ih_{suffix}").copy_(source.b)
    target.get_parameter(f"bias_hh_{suffix}").zero_()
