"""A decoder-only Transformer over the whole document, in the place of the language model's LSTM.

    x <- x + W_o attention(q, k, v),   [q; k; v] = W_qkv norm(x)
    x <- x + W_2 gelu(W_1 norm(x))                                  in every layer; then h = norm(x)

A token attends to itself and to all tokens of its document before it; the keys and values of
earlier sentences are carried along as the state, with their gradients cut where the LSTM's are.
Positions turn q and k (rotary embeddings), so that any length can be read. Norms are RMS norms and
there are no biases.

With L layers over x of size d the attention is d / L wide and the inner layer 2 d / L: then all
layers together have 8 d^2 weights, as many as the LSTM of the baseline (A), whatever L is.

Departure: the paper has no Transformer; this is a peer to compare with (`--model.kind
transformer`).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.model.fast.layout import Layout

BASE = 10_000.0
"""The slowest turn of the rotary embeddings takes 2 pi times as many tokens."""

Dropout = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]
Past = tuple[Float[Tensor, "both layers heads _ head_dim"], ...]
"""Keys and values of one document so far, a part a window, which later states share."""


class Transformer(nn.Module):
    """All layers."""

    def __init__(self, dim: int, layers: int, heads: int) -> None:
        super().__init__()
        self.heads, self.width = heads, dim // layers
        self.W_qkv = nn.ParameterList(torch.empty(3 * self.width, dim) for _ in range(layers))
        self.W_o = nn.ParameterList(torch.empty(dim, self.width) for _ in range(layers))
        self.W_1 = nn.ParameterList(torch.empty(2 * dim // layers, dim) for _ in range(layers))
        self.W_2 = nn.ParameterList(torch.empty(dim, 2 * dim // layers) for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(dim) for _ in range(2 * layers + 1))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; what a layer adds is small at first."""
        layers = len(self.W_o)
        for weights, share in ((self.W_qkv, 1.0), (self.W_1, 1.0), (self.W_o, 0), (self.W_2, 0)):
            for weight in weights:
                scale = share or (2 * layers) ** -0.5
                std = scale * weight.shape[1] ** -0.5
                nn.init.normal_(weight, 0.0, std, generator=generator)
        for norm in self.norms:
            assert isinstance(norm, nn.RMSNorm)
            norm.reset_parameters()

    def carry(
        self,
        x: Float[Tensor, "places dim"],
        layout: Layout,
        past: tuple[Past, ...],
        dropout: Dropout,
    ) -> tuple[Float[Tensor, "places dim"], tuple[Past, ...]]:
        """Every h_t, and each document's keys and values after the window."""
        document = torch.from_numpy(layout.document[layout.sentence]).to(x.device)
        places = torch.from_numpy(layout.read).to(x.device)
        h, after = torch.zeros_like(x), []
        for number, before in enumerate(past):
            own = places[document == number]
            if not len(own):
                after.append(before)
                continue
            found, keys = self(x.index_select(0, own), before, dropout)
            h = h.index_copy(0, own, found)
            after.append((*before, keys.detach()))
        return h, tuple(after)

    def forward(
        self, x: Float[Tensor, "time dim"], past: Past, dropout: Dropout
    ) -> tuple[Float[Tensor, "time dim"], Float[Tensor, "both layers heads time head_dim"]]:
        """Read the next tokens of one document; returns h and their keys and values."""
        before = torch.cat(past, 3) if past else None
        length = 0 if before is None else before.shape[3]
        time = torch.arange(length, length + len(x), device=x.device)
        causal = torch.arange(length + len(x), device=x.device) <= time.unsqueeze(1)
        turn = self._turn(time, x)
        kept = []
        for layer, (W_qkv, W_o, W_1, W_2) in enumerate(
            zip(self.W_qkv, self.W_o, self.W_1, self.W_2, strict=True)
        ):
            read = self.norms[2 * layer](x)
            q, k, v = (
                part.view(len(x), self.heads, -1).transpose(0, 1)
                for part in nn.functional.linear(read, W_qkv).chunk(3, 1)
            )
            q, k = _turned(q, *turn), _turned(k, *turn)
            kept.append(torch.stack((k, v)))
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
        return h, torch.stack(kept, 1)

    def _turn(self, time: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine by which each pair of a head's numbers is turned at each time."""
        pairs = self.width // self.heads // 2
        rate = BASE ** (-torch.arange(pairs, device=like.device, dtype=like.dtype) / pairs)
        angle = time.to(like.dtype).unsqueeze(1) * rate
        return angle.cos(), angle.sin()


def _turned(
    heads: Float[Tensor, "heads time head_dim"],
    cosine: Float[Tensor, "time pairs"],
    sine: Float[Tensor, "time pairs"],
) -> Float[Tensor, "heads time head_dim"]:
    one, two = heads.chunk(2, 2)
    return torch.cat((one * cosine - two * sine, one * sine + two * cosine), 2)
