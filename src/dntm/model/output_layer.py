"""OutputLayer: the next token's distribution (Section 2.1, Eq. 1).

    p(w_t | w_1 ... w_{t-1}) = softmax_w(h_{t-1} . y_w + b_w)

For an entity y_e = W_dy d_e + b_e^y, so its logit is the static one plus h . (W_dy d_e): these
dynamic logits are few, and join the static ones before the log-sum-exp.

Beyond the paper, `ModelConfig.direct`: where the token just read is an entity, h_{t-1} + W_dh d_e
takes the place of h_{t-1}, with the d_e that x_e was made of; W_dh is zero at first.

Departure: `direct` is not in the paper.

The layer is half of the model's work. Over chunks of tokens that fit the cache, with the logits
transposed (W h^T), its loss makes the gradients while the logits are there and keeps none of them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.dynamic_embedding import DynamicEmbedding

CHUNK = 384
"""Tokens whose logits are made at once."""


class OutputLayer(nn.Module):
    """Output embeddings y and biases b."""

    def __init__(
        self, rows: int, dim: int, context_dim: int | None, *, direct: int | None = None
    ) -> None:
        super().__init__()
        self.y = DynamicEmbedding(rows, dim, context_dim, name="W_dy")
        self.b = nn.Parameter(torch.empty(rows))
        self.W_dh: nn.Parameter | None = None
        if direct is not None:
            self.W_dh = nn.Parameter(torch.zeros(dim, direct))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the embeddings; at first no token is likelier than another."""
        self.y.reset_parameters(generator)
        nn.init.zeros_(self.b)

    def directly(
        self,
        h: Float[Tensor, "tokens hidden_dim"],
        d: Float[Tensor, "states context_dim"],
        states: Int[np.ndarray, " tokens"],
    ) -> Float[Tensor, "tokens hidden_dim"]:
        """The sum h + W_dh d; `states` are those of the entities just read, -1 after a word."""
        if self.W_dh is None:
            return h
        after = np.flatnonzero(states >= 0)
        read = d.index_select(0, torch.from_numpy(states[after]).to(h.device))
        return h.index_add(0, torch.from_numpy(after).to(h.device), read @ self.W_dh.t())

    def loss(
        self,
        h: Float[Tensor, "tokens hidden_dim"],
        dynamic: Float[Tensor, "tokens entities"] | None,
        targets: Int[Tensor, " tokens"],
        rows: "Rows | None" = None,
        copies: "CopyLogits | None" = None,
    ) -> Float[Tensor, ""]:
        """The sum of -log p(target), in nats; of `rows` alone an estimate of it.

        With `copies` the softmax is over these logits, too.
        """
        y: Tensor = self.y.weight
        b: Tensor = self.b
        if rows is not None:
            y = nn.functional.embedding(rows.rows, y)
            b = b.index_select(0, rows.rows) + rows.log_weight
            targets = torch.searchsorted(rows.rows, targets)
        inputs = (h, y, b, dynamic, targets, *(copies or (None, None)))
        nats: Tensor = _Loss.apply(*inputs)  # type: ignore[no-untyped-call]
        return nats

    def sample(
        self,
        targets: Int[Tensor, " tokens"],
        size: int,
        entities: int,
        generator: torch.Generator | None = None,
    ) -> "Rows | None":
        """Some `size` rows for `loss`: cheaper than all, and right on average.

        Always there are the first half of them (special, entity and the most frequent words' rows)
        and every target. Of the other words as many again are drawn, each of which counts for all
        that were not, so that the sum of exponentials is right on average; its logarithm is
        slightly too small. None where there are not so many rows.
        """
        total, certain = len(self.b), max(size // 2, entity_rows(entities).stop)
        if not 0 < size < total:
            return None
        found = torch.unique(targets)
        wanted = torch.zeros(total, dtype=torch.bool, device=targets.device)
        wanted[:certain] = True
        wanted[found] = True
        rest = torch.nonzero(~wanted).squeeze(1)
        drawn = min(size - size // 2, len(rest))
        order = torch.randperm(len(rest), generator=generator, device=targets.device)[:drawn]
        weight = self.b.new_zeros(total)
        weight[rest[order]] = math.log(len(rest) / max(drawn, 1))
        wanted[rest[order]] = True
        rows = torch.nonzero(wanted).squeeze(1)
        return Rows(rows, weight.index_select(0, rows))

    def score(
        self,
        h: Float[Tensor, "tokens hidden_dim"],
        dynamic: Float[Tensor, "tokens entities"] | None,
        targets: Int[Tensor, " tokens"],
    ) -> tuple[Float[Tensor, " tokens"], Float[Tensor, " tokens"]]:
        """The log-probability of each target, and the log sum exp of all logits."""
        scores, log_sum = h.new_empty(2, len(h))
        for chunk in _chunks(len(h)):
            logits = self._logits(h[chunk], None if dynamic is None else dynamic[chunk])
            picked = logits.gather(0, targets[chunk].unsqueeze(0)).squeeze(0)
            log_sum[chunk] = logits.logsumexp(0)
            scores[chunk] = picked - log_sum[chunk]
        return scores, log_sum

    def log_distribution(
        self,
        h: Float[Tensor, "tokens hidden_dim"],
        dynamic: Float[Tensor, "tokens entities"] | None,
    ) -> tuple[Float[Tensor, "tokens vocabulary"], Float[Tensor, " tokens"]]:
        """The log-probability of every row of the vocabulary, and the log sum exp of its logits."""
        logits = self._logits(h, dynamic)
        log_sum = logits.logsumexp(0)
        return (logits - log_sum).t(), log_sum

    def entities(
        self, h: Float[Tensor, "tokens hidden_dim"], entities: int
    ) -> Float[Tensor, "tokens entities"]:
        """The static logits of the entities' rows."""
        rows = entity_rows(entities)
        return torch.addmm(self.b[rows], h, self.y.weight[rows].t())

    def logits_of(
        self,
        h: Float[Tensor, "tokens hidden_dim"],
        dynamic: Float[Tensor, "tokens entities"] | None,
        rows: Int[Tensor, " rows"],
    ) -> Float[Tensor, "tokens rows"]:
        """The logits of some rows."""
        found = torch.addmm(self.b.index_select(0, rows), h, self.y.weight[rows].t())
        if dynamic is None:
            return found
        entity = rows - entity_rows(dynamic.shape[1]).start
        column = torch.nonzero((entity >= 0) & (entity < dynamic.shape[1])).squeeze(1)
        return found.index_add(1, column, dynamic.index_select(1, entity[column]))

    def _logits(
        self,
        h: Float[Tensor, "tokens hidden_dim"],
        dynamic: Float[Tensor, "tokens entities"] | None,
    ) -> Float[Tensor, "vocabulary tokens"]:
        return _logits(h, self.y.weight, self.b, dynamic)


class Rows(NamedTuple):
    """Rows of the vocabulary, rising, and the logarithm of how many each of them counts for."""

    rows: Int[Tensor, " rows"]
    log_weight: Float[Tensor, " rows"]


class CopyLogits(NamedTuple):
    """Logits beside the vocabulary's, each of which stands for one of its rows (`pointer`)."""

    log_sum: Float[Tensor, " tokens"]
    """Log sum exp of all of them, at every token."""
    log_sum_of_target: Float[Tensor, " tokens"]
    """The same of those that stand for the target."""


def _chunks(tokens: int) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, tokens, CHUNK)]


def _logits(h: Tensor, y: Tensor, b: Tensor, dynamic: Tensor | None) -> Tensor:
    logits = torch.addmm(b.unsqueeze(1), y, h.t())
    if dynamic is not None:
        logits[entity_rows(dynamic.shape[1])] += dynamic.t()
    return logits


class _Loss(torch.autograd.Function):
    """Sum of -log p(target), with the gradients made in the forward pass.

    d loss / d logits is softmax - one-hot. The softmax of a chunk stays unnormalised: dividing h
    and the result by the sums costs less than dividing the chunk. The one-hot part is a matter of
    single rows, and is taken off in the end. With copies the vocabulary has a share of the softmax
    and the target's own row a share of the one-hot part.
    """

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        h: Tensor,
        y: Tensor,
        b: Tensor,
        dynamic: Tensor | None,
        targets: Tensor,
        copies: Tensor | None,
        target_copies: Tensor | None,
    ) -> Tensor:
        of_h, of_y, of_b, of_dynamic = ctx.needs_input_grad[:4]
        dh = torch.empty_like(h) if of_h else None
        dy = torch.zeros_like(y) if of_y else None
        db = torch.zeros_like(b) if of_b else None
        ddynamic = torch.empty_like(dynamic) if dynamic is not None and of_dynamic else None
        vocabulary_share, target_share = torch.ones_like(h[:, 0]), torch.ones_like(h[:, 0])
        nats = h.new_zeros(())
        for chunk in _chunks(len(h)):
            logits = _logits(h[chunk], y, b, None if dynamic is None else dynamic[chunk])
            picked = logits.gather(0, targets[chunk].unsqueeze(0)).squeeze(0)
            peak = logits.amax(0)
            exp = logits.sub_(peak).exp_()
            total = exp.sum(0)
            log_sum = total.log() + peak
            share = total.reciprocal_()
            if copies is not None and target_copies is not None:
                vocabulary_share[chunk] = torch.sigmoid(log_sum - copies[chunk])
                target_share[chunk] = torch.sigmoid(picked - target_copies[chunk])
                share.mul_(vocabulary_share[chunk])
                log_sum = torch.logaddexp(log_sum, copies[chunk])
                picked = torch.logaddexp(picked, target_copies[chunk])
            nats += (log_sum - picked).sum()
            if dh is not None:
                torch.mul(exp.t() @ y, share.unsqueeze(1), out=dh[chunk])
            if dy is not None:
                dy.addmm_(exp, h[chunk] * share.unsqueeze(1))
            if db is not None:
                db.addmv_(exp, share)
            if ddynamic is not None:
                entities = exp[entity_rows(ddynamic.shape[1])]
                torch.mul(entities, share, out=ddynamic[chunk].t())
        if dh is not None:
            dh -= y.index_select(0, targets) * target_share.unsqueeze(1)
        if dy is not None:
            dy.index_add_(0, targets, h * target_share.unsqueeze(1), alpha=-1)
        if db is not None:
            db.index_add_(0, targets, target_share, alpha=-1)
        if ddynamic is not None:
            entity = targets - entity_rows(ddynamic.shape[1]).start
            token = torch.nonzero((entity >= 0) & (entity < ddynamic.shape[1])).squeeze(1)
            ddynamic[token, entity[token]] -= target_share[token]
        of_copies = (None, None) if copies is None else (1 - vocabulary_share, target_share - 1)
        ctx.save_for_backward(dh, dy, db, ddynamic, *of_copies)
        return nats

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, copies, of_target = (None if d is None else d * grad for d in ctx.saved_tensors)
        return *inputs, None, copies, of_target
