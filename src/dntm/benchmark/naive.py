"""The obvious way to train the model, as the reference for its speed.

Sentence by sentence over the batch: packed sequences through `nn.LSTM`, the full logits and
`F.cross_entropy`, then the bidirectional encoder over the same sentences and one merge after
another. It gives the same numbers as the model it is made from, and shares its other parameters.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from dntm.model.language_model import DynamicTextModel
from dntm.model.lstm import LSTM
from dntm.model.reading_state import ReadingState
from dntm.schedule import FIRST

_NO_TARGET = -100


class NaiveModel(nn.Module):
    """A model with dynamic input and output, read sentence by sentence."""

    def __init__(self, model: DynamicTextModel) -> None:
        super().__init__()
        assert model.encoder is not None
        assert model.merging is not None
        config = model.config
        self.config, self.x, self.output = config, model.x, model.output
        self.merging, self.W_hd, self.b_d = model.merging, model.encoder.W_hd, model.encoder.b_d
        self.lstm = nn.LSTM(config.embedding_dim, config.hidden_dim, batch_first=True)
        self.encoder = nn.LSTM(
            config.embedding_dim, config.encoder_dim, batch_first=True, bidirectional=True
        )
        copy_lstm(model.lstm, self.lstm, "l0")
        copy_lstm(model.encoder.forward_lstm, self.encoder, "l0")
        copy_lstm(model.encoder.backward_lstm, self.encoder, "l0_reverse")
        self.encoder.requires_grad_(requires_grad=False)

    def initial_state(self, documents: int) -> ReadingState:
        """The state before the first sentence: everything zero."""
        zeros = self.x.weight.new_zeros(documents, self.config.hidden_dim)
        memory = self.merging.initial(zeros).expand(documents, self.config.entities, -1)
        return ReadingState(zeros, zeros, memory)

    def loss(
        self, documents: Sequence[Sequence[Sequence[int]]], state: ReadingState
    ) -> tuple[Tensor, ReadingState]:
        """Sum of nats over the predicted tokens, and the state after them."""
        nats = state.h.new_zeros(())
        for i in range(max(len(document) for document in documents)):
            active = [b for b, document in enumerate(documents) if len(document) > i]
            sentences = [torch.tensor(documents[b][i]) for b in active]
            sentence_nats, state = self._sentence(sentences, torch.tensor(active), state)
            nats = nats + sentence_nats
        return nats, state

    def _sentence(
        self, sentences: list[Tensor], active: Tensor, state: ReadingState
    ) -> tuple[Tensor, ReadingState]:
        tokens = pad_sequence(sentences, batch_first=True)
        lengths = torch.tensor([len(s) for s in sentences])
        memory = state.memory[active]
        d = memory[..., : self.config.context_dim]
        entity = (tokens - FIRST).clamp(0, self.config.entities - 1)
        mentioned = (tokens >= FIRST) & (tokens < FIRST + self.config.entities)
        term = self.x.term(d)[torch.arange(len(active)).unsqueeze(1), entity]
        x = self.x.weight[tokens] + term * mentioned.unsqueeze(2)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        before = (state.h[active].unsqueeze(0), state.c[active].unsqueeze(0))
        output, (h, c) = self.lstm(packed, before)
        nats = self._nats(pad_packed_sequence(output, batch_first=True)[0], d, tokens, lengths)
        if mentioned.any():
            contexts = pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]
            memory = self._merge(contexts, mentioned, entity, memory)
        return nats, ReadingState(
            state.h.index_put((active,), h[0]),
            state.c.index_put((active,), c[0]),
            state.memory.index_put((active,), memory),
        )

    def _nats(self, h: Tensor, d: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
        h = h[:, :-1]
        logits = nn.functional.linear(h, self.output.y.weight, self.output.b)
        first, last = FIRST, FIRST + self.config.entities
        logits[..., first:last] += h @ self.output.y.term(d).transpose(1, 2)
        inside = torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)
        targets = tokens.masked_fill(~inside, _NO_TARGET)[:, 1:]
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")

    def _merge(self, h: Tensor, mentioned: Tensor, entity: Tensor, memory: Tensor) -> Tensor:
        h_forward, h_backward = h.chunk(2, 2)
        for sentence, t in mentioned.nonzero().tolist():
            around = torch.cat((h_forward[sentence, t - 1], h_backward[sentence, t + 1]))
            context = torch.relu(self.W_hd @ around + self.b_d).unsqueeze(0)
            place = (torch.tensor([sentence]), entity[sentence, t].unsqueeze(0))
            memory = memory.index_put(place, self.merging(context, memory[place]))
        return memory


@torch.no_grad()
def copy_lstm(source: LSTM, target: nn.LSTM, suffix: str) -> None:
    """Give one direction of PyTorch's layer the weights of ours."""
    target.get_parameter(f"weight_ih_{suffix}").copy_(source.W_ih)
    target.get_parameter(f"weight_hh_{suffix}").copy_(source.W_hh)
    target.get_parameter(f"bias_ih_{suffix}").copy_(source.b)
    target.get_parameter(f"bias_hh_{suffix}").zero_()
