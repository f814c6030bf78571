"""Merging: one representation from an entity's contexts (Section 3, Eq. 4 and three more).

    gru-relu    d_{e,i} = ReLU(GRU(d'_{e,i}, d_{e,i-1}))
    gru         d_{e,i} = GRU(d'_{e,i}, d_{e,i-1})
    max         d_{e,i} = max(d'_{e,i}, d_{e,i-1})                                      Eq. 4
    latest      d_{e,i} = d'_{e,i}
    mean        d_{e,i} = (d'_{e,1} + ... + d'_{e,i}) / i
    attention   d_{e,i} = sum_j a_j d'_{e,j},  a = softmax_j(v . tanh(W d'_{e,j}))

The last two use the whole history, which the paper leaves open (its footnote on attention). A state
is d_e followed by whatever else the function keeps: the number of contexts of the mean, or the log
of the attention's normalizer. To add a function, write a `MergingFunction` and add it to
`_FUNCTIONS` and `config.Merging`.

Departure: the paper does not say which GRU it uses. This is the GRU of Cho et al., with the reset
gate before the product and one bias. The input and output layers share it. The parameter counts of
Table 3 require one bias and one GRU.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dntm.model.config import Merging
from dntm.model.fast.recurrence import Deferred

_NOTHING = -1e30
"""The log-normalizer of no contexts; finite, so that no gradient becomes NaN."""


class Merger(NamedTuple):
    """A merging function in two parts, with its current weights, for one pass."""

    inputs: Callable[[Float[Tensor, "mentions context_dim"]], Float[Tensor, "mentions _"]]
    """W d' + b: the part of the GRU that needs no d_{e,i-1}."""
    merge: Callable[
        [Float[Tensor, "merges _"], Float[Tensor, "merges state_dim"]],
        Float[Tensor, "merges state_dim"],
    ]
    """d_{e,i} from these inputs and d_{e,i-1}."""


class MergingFunction(nn.Module):
    """Maps a state and the next context to the next state; d_{e,0} is zero."""

    def __init__(self, context_dim: int, kept: tuple[float, ...] = ()) -> None:
        super().__init__()
        self.context_dim = context_dim
        self.kept = kept
        """What a state has in addition to d_{e,0} before the first context."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the matrices, which preserve the variance of their input; vectors start at zero."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter, generator=generator)
            else:
                nn.init.zeros_(parameter)

    def initial(self, like: Float[Tensor, "..."]) -> Float[Tensor, " state_dim"]:
        """The state before the first context."""
        return like.new_tensor([0.0] * self.context_dim + list(self.kept))

    def merge(
        self,
        context: Float[Tensor, "mentions context_dim"],
        state: Float[Tensor, "mentions state_dim"],
    ) -> Float[Tensor, "mentions state_dim"]:
        """Merge one context into each state."""
        raise NotImplementedError

    def bind(self) -> Merger:
        """The same in two parts, which is faster for many merges."""
        return Merger(lambda contexts: contexts, self.merge)


class GRU(MergingFunction):
    """The gated recurrent unit of Cho et al. (2014), with one bias vector.

    r, z = sigmoid(W d' + U d + b),  n = tanh(W d' + U (r * d) + b),  d <- z * d + (1 - z) * n
    """

    def __init__(self, context_dim: int, *, relu: bool) -> None:
        super().__init__(context_dim)
        self.relu = relu
        self.W = nn.Parameter(torch.empty(3 * context_dim, context_dim))
        self.U = nn.Parameter(torch.empty(3 * context_dim, context_dim))
        self.b = nn.Parameter(torch.empty(3 * context_dim))

    def bind(self) -> Merger:
        """W d' + b for all merges at once; the gradients of W and U are computed once."""
        both = 2 * self.context_dim
        W, U_gates, U_new = Deferred(self.W), *map(Deferred, self.U.tensor_split([both]))

        def merge(inputs: Tensor, state: Tensor) -> Tensor:
            gates, new = inputs.tensor_split([both], 1)
            r, z = (gates + U_gates(state)).sigmoid().chunk(2, 1)
            merged = torch.lerp((new + U_new(r * state)).tanh(), state, z)
            return merged.relu() if self.relu else merged

        return Merger(lambda contexts: W(contexts) + self.b, merge)


class Max(MergingFunction):
    """Max pooling, as in Kobayashi et al. (2016)."""

    def merge(self, context: Tensor, state: Tensor) -> Tensor:
        """Merge one context into each state."""
        return torch.maximum(context, state)


class Latest(MergingFunction):
    """Only the latest context counts."""

    def merge(self, context: Tensor, state: Tensor) -> Tensor:  # noqa: ARG002
        """Merge one context into each state."""
        return context


class Mean(MergingFunction):
    """All contexts have the same weight; the state ends with their number."""

    def __init__(self, context_dim: int) -> None:
        super().__init__(context_dim, kept=(0.0,))

    def merge(self, context: Tensor, state: Tensor) -> Tensor:
        """Merge one context into each state."""
        d, count = state.tensor_split([self.context_dim], 1)
        return torch.cat((d + (context - d) / (count + 1), count + 1), 1)


class Attention(MergingFunction):
    """Contexts are weighted by a learned score, as in the attention of Bahdanau et al. (2014).

    The score depends on the context alone, so the softmax over the whole history can be updated
    one context at a time: the state ends with the log of its normalizer.
    """

    def __init__(self, context_dim: int) -> None:
        super().__init__(context_dim, kept=(_NOTHING,))
        self.W = nn.Parameter(torch.empty(context_dim, context_dim))
        self.v = nn.Parameter(torch.empty(context_dim))

    def merge(self, context: Tensor, state: Tensor) -> Tensor:
        """Merge one context into each state."""
        d, normalizer = state.tensor_split([self.context_dim], 1)
        score = nn.functional.linear(
            nn.functional.linear(context, self.W).tanh(), self.v.unsqueeze(0)
        )
        share = torch.sigmoid(score - normalizer)
        return torch.cat((torch.lerp(d, context, share), torch.logaddexp(normalizer, score)), 1)


_FUNCTIONS: dict[Merging, Callable[[int], MergingFunction]] = {
    "gru-relu": lambda dim: GRU(dim, relu=True),
    "gru": lambda dim: GRU(dim, relu=False),
    "max": Max,
    "latest": Latest,
    "mean": Mean,
    "attention": Attention,
}


def merging_function(name: Merging, context_dim: int) -> MergingFunction:
    """The merging function of this name."""
    return _FUNCTIONS[name](context_dim)
