"""Cores: the language models that turn embeddings x_t into states h_t (Eq. 2).

Every core works with every variant and every term of the output layer.

`LSTMCore` is the paper's core. The context encoder (Eqs. 7 and 8) uses the same network:

    i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x_t + W_hh h_{t-1} + b
    c_t        = f * c_{t-1} + i * g
    h_t        = o * tanh(c_t)

`LSTM.carry` continues a few long sequences, cut into segments of constant width; on a CPU each
segment is one oneDNN call. `LSTM.bind` prepares the weights for `ragged_lstm`, which runs many
short sequences with the same results.

`Transformer` is a decoder that attends to the whole document:

    x <- x + W_o attention(q, k, v),   [q; k; v] = W_qkv norm(x)
    x <- x + W_2 gelu(W_1 norm(x))                                  in every layer; then h = norm(x)

A token attends to itself and to all earlier tokens of its document. The state holds the keys and
values of earlier windows; gradients are truncated at the same points as for the LSTM. Positions
rotate q and k (rotary embeddings), so documents can have any length. Norms are RMS norms; there are
no biases. With L layers over x of size d, attention is d / L wide and the inner layer 2 d / L. All
layers together then have 8 d^2 weights, as many as the LSTM, for any L.

Departure: the LSTM has one bias vector, as the parameter counts of Table 3 require. PyTorch's own
layers have two, although only their sum matters.

Departure: the paper has no Transformer. `--model.core transformer` selects it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.model.fast.layout import Layout, Segment
from dntm.model.fast.recurrence import Weights, packed

BASE = 10_000.0
"""Wavelength of the slowest rotary pair, in tokens, divided by 2 pi."""

Dropout = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]
Carried = TypeVar("Carried", bound="CarriedState")


@dataclass(frozen=True, slots=True)
class CarriedState:
    """What a part of the model carries from window to window, for each document of a batch.

    A field is a tensor or an array over documents, another such state, or a tuple with one item per
    document; the items of tuples carry no gradients.
    """

    def select(self: Carried, documents: Sequence[int]) -> Carried:
        """The state of these documents, in this order; a document may be repeated."""

        def select(values: Any) -> Any:
            if isinstance(values, Tensor):
                rows = torch.tensor(documents, dtype=torch.long, device=values.device)
                return values.index_select(0, rows)
            if isinstance(values, CarriedState):
                return values.select(documents)
            if isinstance(values, np.ndarray):
                return values[np.array(documents, np.int64)]
            return tuple(values[document] for document in documents)

        return self._each(select)

    def detach(self: Carried) -> Carried:
        """The same values without gradients."""
        return self._each(lambda v: v.detach() if isinstance(v, Tensor | CarriedState) else v)

    def _each(self: Carried, change: Callable[[Any], Any]) -> Carried:
        return replace(self, **{f.name: change(getattr(self, f.name)) for f in fields(self)})


@runtime_checkable
class Core(Protocol):
    """A language model that reads documents window by window; its state is a `CarriedState`."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights."""

    def initial(self, documents: int) -> Any:
        """The state before the first sentence."""

    def __call__(
        self, x: Float[Tensor, "places embedding_dim"], layout: Layout, state: Any, dropout: Dropout
    ) -> tuple[Float[Tensor, "places hidden_dim"], Any]:
        """h_t at every place of the layout, and the state after the window."""


class LSTM(nn.Module):
    """One direction, one layer; gates in the order i, f, g, o."""

    no_bias: Tensor

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.W_ih = nn.Parameter(torch.empty(4 * hidden_dim, input_dim))
        self.W_hh = nn.Parameter(torch.empty(4 * hidden_dim, hidden_dim))
        self.b = nn.Parameter(torch.empty(4 * hidden_dim))
        self.register_buffer("no_bias", torch.zeros(4 * hidden_dim), persistent=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights. Forget gates start open (b_f = 1)."""
        hidden_dim = self.W_hh.shape[1]
        bound = hidden_dim**-0.5
        nn.init.uniform_(self.W_ih, -bound, bound, generator=generator)
        nn.init.uniform_(self.W_hh, -bound, bound, generator=generator)
        nn.init.zeros_(self.b)
        nn.init.ones_(self.b[hidden_dim : 2 * hidden_dim])

    def carry(
        self,
        x: Float[Tensor, "places input_dim"],
        segments: Sequence[Segment],
        h: Float[Tensor, "batch hidden_dim"],
        c: Float[Tensor, "batch hidden_dim"],
    ) -> tuple[
        Float[Tensor, "places hidden_dim"],
        Float[Tensor, "batch hidden_dim"],
        Float[Tensor, "batch hidden_dim"],
    ]:
        """Every h_t, and each sequence's last h and c."""
        outputs, last_h, last_c = [h[:0]], [h[:0]], [c[:0]]
        narrower = [*[segment.width for segment in segments][1:], 0]
        parts = torch.split(x, [segment.steps * segment.width for segment in segments])
        for part, segment, width in zip(parts, segments, narrower, strict=False):
            output, h, c = torch.lstm(
                part.view(segment.steps, segment.width, -1),
                (h.unsqueeze(0), c.unsqueeze(0)),
                [self.W_ih, self.W_hh, self.b, self.no_bias],
                has_biases=True,
                num_layers=1,
                dropout=0.0,
                train=torch.is_grad_enabled(),
                bidirectional=False,
                batch_first=False,
            )
            h, c = h.squeeze(0), c.squeeze(0)
            outputs.append(output.flatten(0, 1))
            last_h.insert(0, h[width:])
            last_c.insert(0, c[width:])
            h, c = h[:width], c[:width]
        return torch.cat(outputs), torch.cat(last_h), torch.cat(last_c)

    def bind(self) -> Weights:
        """The current weights, prepared for the calls of one window."""
        return Weights(
            self.W_ih, self.W_hh, self.b, step=packed(self.W_hh), step_back=packed(self.W_hh.t())
        )


@dataclass(frozen=True, slots=True)
class LSTMState(CarriedState):
    """The last h (before a projection) and c of each document."""

    h: Float[Tensor, "batch core_dim"]
    c: Float[Tensor, "batch core_dim"]


class LSTMCore(LSTM):
    """Eq. 2: h_t = LSTM(x_{w_t}, h_{t-1}), carried through each document.

    With `core_dim`, the LSTM has states s_t of that size, and h_t = W_sh s_t (Sak et al. 2014, but
    the recurrence is not projected): a wider core without wider output embeddings.
    """

    def __init__(self, embedding_dim: int, hidden_dim: int, core_dim: int | None = None) -> None:
        super().__init__(embedding_dim, core_dim or hidden_dim)
        self.W_sh = None if core_dim is None else nn.Parameter(torch.empty(hidden_dim, core_dim))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; W_sh preserves the variance of its input."""
        super().reset_parameters(generator)
        if self.W_sh is not None:
            nn.init.xavier_uniform_(self.W_sh, generator=generator)

    def initial(self, documents: int) -> LSTMState:
        """The state before the first sentence."""
        zeros = self.b.new_zeros(documents, self.W_hh.shape[1])
        return LSTMState(zeros, zeros)

    def forward(
        self,
        x: Float[Tensor, "places embedding_dim"],
        layout: Layout,
        state: LSTMState,
        dropout: Dropout,  # noqa: ARG002 (a single layer has nothing between its layers)
    ) -> tuple[Float[Tensor, "places hidden_dim"], LSTMState]:
        """Every h_t, and the state after the window."""
        order = torch.from_numpy(layout.order).to(x.device)
        h, c = (value.index_select(0, order) for value in (state.h, state.c))
        all_h, h, c = self.carry(x, layout.segments, h, c)
        if self.W_sh is not None:
            all_h = nn.functional.linear(all_h, self.W_sh)
        return all_h, LSTMState(state.h.index_copy(0, order, h), state.c.index_copy(0, order, c))


Keys = tuple[Float[Tensor, "both layers heads _ head_dim"], ...]
"""Keys and values of one document, one part per window; later states share the parts."""


@dataclass(frozen=True, slots=True)
class Past(CarriedState):
    """What each document has read, without gradients; in a Transformer, its `Keys`."""

    documents: tuple[Any, ...]


class Transformer(nn.Module):
    """A stack of pre-norm layers."""

    def __init__(self, dim: int, layers: int, heads: int) -> None:
        super().__init__()
        self.heads, self.width = heads, dim // layers
        self.W_qkv = nn.ParameterList(torch.empty(3 * self.width, dim) for _ in range(layers))
        self.W_o = nn.ParameterList(torch.empty(dim, self.width) for _ in range(layers))
        self.W_1 = nn.ParameterList(torch.empty(2 * dim // layers, dim) for _ in range(layers))
        self.W_2 = nn.ParameterList(torch.empty(dim, 2 * dim // layers) for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(dim) for _ in range(2 * layers + 1))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights. Each layer adds little at first."""
        little = (2 * len(self.W_o)) ** -0.5
        scales = ((self.W_qkv, 1.0), (self.W_1, 1.0), (self.W_o, little), (self.W_2, little))
        for weights, scale in scales:
            for weight in weights:
                nn.init.normal_(weight, 0.0, scale * weight.shape[1] ** -0.5, generator=generator)

    def initial(self, documents: int) -> Past:
        """No keys and values yet."""
        return Past(((),) * documents)

    def forward(
        self, x: Float[Tensor, "places dim"], layout: Layout, state: Past, dropout: Dropout
    ) -> tuple[Float[Tensor, "places dim"], Past]:
        """Every h_t, and each document's keys and values after the window."""
        document = torch.from_numpy(layout.document[layout.sentence]).to(x.device)
        places = torch.from_numpy(layout.read).to(x.device)
        h, after = torch.zeros_like(x), []
        for number, before in enumerate(state.documents):
            own = places[document == number]
            if not len(own):
                after.append(before)
                continue
            found, keys = self._document(x.index_select(0, own), before, dropout)
            h = h.index_copy(0, own, found)
            after.append((*before, keys.detach()))
        return h, Past(tuple(after))

    def _document(
        self, x: Float[Tensor, "time dim"], past: Keys, dropout: Dropout
    ) -> tuple[Float[Tensor, "time dim"], Float[Tensor, "both layers heads time head_dim"]]:
        """Read the next tokens of one document: h, and their keys and values."""
        before = torch.cat(past, 3) if past else None
        length = 0 if before is None else before.shape[3]
        time = torch.arange(length, length + len(x), device=x.device)
        causal = torch.arange(length + len(x), device=x.device) <= time.unsqueeze(1)
        # Cosine and sine of the angle by which each pair of components is rotated.
        pairs = self.width // self.heads // 2
        rate = BASE ** (-torch.arange(pairs, device=x.device, dtype=x.dtype) / pairs)
        angle = time.to(x.dtype).unsqueeze(1) * rate
        rotation = angle.cos(), angle.sin()
        keys_values = []
        for layer, (W_qkv, W_o, W_1, W_2) in enumerate(
            zip(self.W_qkv, self.W_o, self.W_1, self.W_2, strict=True)
        ):
            normed = self.norms[2 * layer](x)
            q, k, v = (
                part.view(len(x), self.heads, -1).transpose(0, 1)
                for part in nn.functional.linear(normed, W_qkv).chunk(3, 1)
            )
            q, k = _rotated(q, *rotation), _rotated(k, *rotation)
            keys_values.append(torch.stack((k, v)))
            if before is not None:
                k, v = torch.cat((before[0, layer], k), 1), torch.cat((before[1, layer], v), 1)
            found = nn.functional.scaled_dot_product_attention(
                q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), attn_mask=causal
            )
            joined = found.squeeze(0).transpose(0, 1).reshape(len(x), self.width)
            x = x + dropout(nn.functional.linear(joined, W_o))
            inner = nn.functional.gelu(
                nn.functional.linear(self.norms[2 * layer + 1](x), W_1), approximate="tanh"
            )
            x = x + dropout(nn.functional.linear(inner, W_2))
        h: Tensor = self.norms[-1](x)
        return h, torch.stack(keys_values, 1)


def _rotated(
    heads: Float[Tensor, "heads time head_dim"],
    cosine: Float[Tensor, "time pairs"],
    sine: Float[Tensor, "time pairs"],
) -> Float[Tensor, "heads time head_dim"]:
    one, two = heads.chunk(2, 2)
    return torch.cat((one * cosine - two * sine, one * sine + two * cosine), 2)
