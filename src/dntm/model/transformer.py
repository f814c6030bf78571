"""Transformer: a decoder-only core that attends to the whole document.

    x <- x + W_o attention(q, k, v),   [q; k; v] = W_qkv norm(x)
    x <- x + W_2 gelu(W_1 norm(x))                                  in every layer; then h = norm(x)

A token attends to itself and to all earlier tokens of its document. The state holds the keys and
values of earlier windows; gradients are truncated at the same points as for the LSTM. Positions
rotate q and k (rotary embeddings), so documents can have any length. Norms are RMS norms; there are
no biases.

With L layers over x of size d, attention is d / L wide and the inner layer 2 d / L. All layers
together then have 8 d^2 weights, as many as the LSTM, for any L.

Departure: the paper has no Transformer. `--model.core transformer` selects it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.model.core import Dropout
from dntm.model.fast.layout import Layout

BASE = 10_000.0
"""Wavelength of the slowest rotary pair, in tokens, divided by 2 pi."""

Keys = tuple[Float[Tensor, "both layers heads _ head_dim"], ...]
"""Keys and values of one document, one part per window; later states share the parts."""


class Past(NamedTuple):
    """The keys and values of each document, which carry no gradients."""

    documents: tuple[Keys, ...]

    def select(self, documents: Sequence[int]) -> "Past":
        """The state of these documents, in this order."""
        return Past(tuple(self.documents[document] for document in documents))

    def detach(self) -> "Past":
        """The state itself: it carries no gradients."""
        return self


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
        layers = len(self.W_o)
        for weights, share in ((self.W_qkv, 1.0), (self.W_1, 1.0), (self.W_o, 0), (self.W_2, 0)):
            for weight in weights:
                scale = share or (2 * layers) ** -0.5
                std = scale * weight.shape[1] ** -0.5
                nn.init.normal_(weight, 0.0, std, generator=generator)
        for norm in self.norms:
            assert isinstance(norm, nn.RMSNorm)
            norm.reset_parameters()

    def initial(self, documents: int) -> "Past":
        """No keys and values yet."""
        return Past(((),) * documents)

    def forward(
        self,
        x: Float[Tensor, "places dim"],
        layout: Layout,
        state: "Past",
        dropout: Dropout,
    ) -> tuple[Float[Tensor, "places dim"], "Past"]:
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
        rotation = self._rotation(time, x)
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

    def _rotation(self, time: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of the angle by which each pair of components is rotated."""
        pairs = self.width // self.heads // 2
        rate = BASE ** (-torch.arange(pairs, device=like.device, dtype=like.dtype) / pairs)
        angle = time.to(like.dtype).unsqueeze(1) * rate
        return angle.cos(), angle.sin()


def _rotated(
    heads: Float[Tensor, "heads time head_dim"],
    cosine: Float[Tensor, "time pairs"],
    sine: Float[Tensor, "time pairs"],
) -> Float[Tensor, "heads time head_dim"]:
    one, two = heads.chunk(2, 2)
    return torch.cat((one * cosine - two * sine, one * sine + two * cosine), 2)
