"""OutputLayer: the next token's distribution (Section 2.1, Eq. 1).

    p(w_t | w_1 ... w_{t-1}) = softmax_w(h_{t-1} . y_w + b_w)

`Query` is the input of the softmax at each position. The terms of the output layer (`term`) may
change its h, add logits e to the rows of entities, and add copies: further rows of the softmax,
each of which stands for a row of the vocabulary.

    p(w) ~ exp(h . y_w + b_w + e_w) + sum over copies c of w of exp(a_c)

In the paper's model e_e = h . (W_dy d_e), and there are no copies. Loss and scores are computed in
blocks, so that the logits of many tokens are never in memory at once.

The output layer accounts for half of the model's computation. The loss processes chunks of tokens
that fit into the CPU cache, with transposed logits (y h^T), and computes the gradients while the
logits are still cached.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.fast.recurrence import linear

LOSS_TOKENS = 384
"""Tokens per block of the loss, with all rows of the vocabulary."""
SCORE_ROWS = 1024
"""Rows per block of the scores."""
MASKED = -1e4
"""Logit of a copy that a position cannot see: no probability in any precision, and no NaN in the
gradients."""


@dataclass(frozen=True, slots=True)
class CopyLogits:
    """Further rows of the softmax at some positions."""

    parts: tuple[tuple[Float[Tensor, "_ _"], Int[Tensor, " _"]], ...]
    """For consecutive positions: the logits of all copies, and the vocabulary row that each stands
    for (negative: none)."""

    def log_sum(self) -> Float[Tensor, " positions"]:
        """Log of the summed exponentials of all copies."""
        return torch.cat([a.logsumexp(1) for a, _ in self.nonempty()])

    def log_sum_of(self, targets: Int[Tensor, " positions"]) -> Float[Tensor, " positions"]:
        """The same for the copies of each position's target."""
        wanted = torch.split(targets, [len(a) for a, _ in self.parts])
        return torch.cat(
            [
                a.masked_fill(rows != own.unsqueeze(1), MASKED).logsumexp(1)
                for (a, rows), own in zip(self.nonempty(), wanted, strict=True)
            ]
        )

    def add_to(
        self, log_p: Float[Tensor, "positions vocabulary"], log_sum: Float[Tensor, " positions"]
    ) -> Float[Tensor, "positions vocabulary"]:
        """The distribution with copies, from the one without and its log-normalizer."""
        total = torch.logaddexp(log_sum, self.log_sum())
        start, found = 0, []
        for a, rows in self.nonempty():
            part = slice(start, start := start + len(a))
            shares = (a - total[part].unsqueeze(1)).exp().masked_fill(rows < 0, 0)
            copied = torch.zeros_like(log_p[part]).index_add(1, rows.clamp(min=0), shares)
            rest = (log_sum - total)[part].unsqueeze(1)
            found.append(torch.logaddexp(log_p[part] + rest, copied.log()))
        return torch.cat(found)

    def nonempty(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """The parts; one masked copy in a part without any."""
        return tuple(
            (a, rows) if len(rows) else (a.new_full((len(a), 1), MASKED), rows.new_full((1,), -1))
            for a, rows in self.parts
        )


@dataclass(frozen=True, slots=True)
class Query:
    """The input of the output layer at some positions."""

    h: Float[Tensor, "positions hidden_dim"]
    entity_logits: Float[Tensor, "positions entities"] | None = None
    """Added to the static logits of the entity rows."""
    copies: CopyLogits | None = None

    def add(self, entity_logits: Float[Tensor, "positions entities"]) -> "Query":
        """The query with these logits added to those of the entities."""
        if self.entity_logits is not None:
            entity_logits = self.entity_logits + entity_logits
        return replace(self, entity_logits=entity_logits)


class SampledRows(NamedTuple):
    """Rows of the vocabulary, rising, and the log of the number of rows each stands for."""

    rows: Int[Tensor, " rows"]
    log_weight: Float[Tensor, " rows"]


class Scores(NamedTuple):
    """What the output layer says about some tokens, in nats."""

    log_p: Float[Tensor, " tokens"]
    """Log-probability of the target."""
    entropy: Float[Tensor, " tokens"]
    total: Float[Tensor, " tokens"]
    """Log of the sum of exponentials over all rows and copies."""


class OutputLayer(nn.Module):
    """Output embeddings y (`weight`) and biases b."""

    weight: Tensor
    b: Tensor

    def __init__(self, rows: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, dim))
        self.b = nn.Parameter(torch.zeros(rows))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw embeddings within 0.1 of zero; biases start at zero."""
        nn.init.uniform_(self.weight, -0.1, 0.1, generator=generator)

    def loss(
        self, query: Query, targets: Int[Tensor, " tokens"], rows: SampledRows | None = None
    ) -> Float[Tensor, ""]:
        """The sum of -log p(target) in nats, or with `rows` an estimate of it."""
        y, b = self.weight, self.b
        copies: tuple[Tensor | None, Tensor | None] = (None, None)
        if query.copies is not None:
            copies = query.copies.log_sum(), query.copies.log_sum_of(targets)
        if rows is not None:
            y = nn.functional.embedding(rows.rows, y)
            b = b.index_select(0, rows.rows) + rows.log_weight
            targets = torch.searchsorted(rows.rows, targets)
        inputs = (query.h, y, b, query.entity_logits, targets, *copies)
        nats: Tensor = _Loss.apply(*inputs)  # type: ignore[no-untyped-call]
        return nats

    def sample(
        self,
        targets: Int[Tensor, " tokens"],
        size: int,
        entities: int,
        generator: torch.Generator | None = None,
    ) -> SampledRows | None:
        """About `size` rows for `loss`, which is then cheaper.

        The first half of them (special, entity and the most frequent words' rows) and every target
        are always included. As many again are drawn from the other words, and each stands for all
        that were not drawn: the sum of exponentials is unbiased, its logarithm slightly too small.
        None if there are not as many rows.
        """
        total, certain = len(self.b), max(size // 2, entity_rows(entities).stop)
        if not 0 < size < total:
            return None
        wanted = torch.zeros(total, dtype=torch.bool, device=targets.device)
        wanted[:certain] = True
        wanted[torch.unique(targets)] = True
        rest = torch.nonzero(~wanted).squeeze(1)
        drawn = min(size - size // 2, len(rest))
        order = torch.randperm(len(rest), generator=generator, device=targets.device)[:drawn]
        weight = self.b.new_zeros(total)
        weight[rest[order]] = math.log(len(rest) / max(drawn, 1))
        wanted[rest[order]] = True
        rows = torch.nonzero(wanted).squeeze(1)
        return SampledRows(rows, weight.index_select(0, rows))

    @torch.no_grad()
    def score(self, query: Query, targets: Int[Tensor, " tokens"]) -> Scores:
        """Log-probability of each target, and the entropy of its distribution.

        m = max_w l_w,   z = sum_w exp(l_w - m),   s = sum_w (l_w - m) exp(l_w - m)
        log p(w) = l_w - m - log z,   entropy = log z - s / z
        """
        picked, z, s = query.h.new_zeros(3, len(query.h), 1)
        m = torch.full_like(z, -1e30)  # below all logits
        for first in range(0, len(self.b), SCORE_ROWS):
            logits = self._logits(query, slice(first, first + SCORE_ROWS))
            own = targets.unsqueeze(1) - first
            here = (own >= 0) & (own < logits.shape[1])
            picked = torch.where(here, logits.gather(1, own.clamp(0, logits.shape[1] - 1)), picked)
            peak = torch.maximum(m, logits.amax(1, keepdim=True))
            lower = m - peak
            m, z, s = peak, lower.exp() * z, lower.exp() * (s + lower * z)
            exp = logits.sub_(peak).exp()
            z += exp.sum(1, keepdim=True)
            s += exp.mul_(logits).sum(1, keepdim=True)
        picked, log_sum, entropy = (v.squeeze(1) for v in (picked, m + z.log(), z.log() - s / z))
        if query.copies is None:
            return Scores(picked - log_sum, entropy, log_sum)
        total, log_p, start = torch.empty_like(log_sum), torch.empty_like(log_sum), 0
        for a, values in query.copies.nonempty():
            part, peak = slice(start, start := start + len(a)), a.amax(1, keepdim=True)
            # Copies of the same row are summed.
            own, column = torch.unique(values.clamp(min=0), return_inverse=True)
            shares = a.new_zeros(len(a), len(own)).index_add_(1, column, (a - peak).exp_())
            peak = peak.squeeze(1)
            total[part] = torch.logaddexp(log_sum[part], shares.sum(1).log() + peak)
            copied = torch.where(own == targets[part].unsqueeze(1), shares, 0).sum(1).log() + peak
            log_p[part] = torch.logaddexp(picked[part], copied) - total[part]
            shares.mul_((peak - total[part]).exp().unsqueeze(1))
            kept = (log_sum - total)[part].exp()
            change = self._entropy_of_copies(query, part, (shares, own), total[part])
            entropy[part] = kept * entropy[part] + torch.special.entr(kept) + change
        return Scores(log_p, entropy, total)

    def _entropy_of_copies(
        self,
        query: Query,
        part: slice,
        copies: tuple[Float[Tensor, "tokens rows"], Int[Tensor, " rows"]],
        total: Float[Tensor, " tokens"],
    ) -> Float[Tensor, " tokens"]:
        """The change of the entropy by the rows that have copies, given as their shares and rows.

        The vocabulary keeps the share r = exp(log_sum - total). With entr(p) = -p log p,

            H <- r H + entr(r) + sum over rows with copies of entr(p after) - entr(r p)
        """
        copied, rows = copies
        before = (self._logits(query, rows, part) - total.unsqueeze(1)).exp_()
        entr = torch.special.entr
        change: Tensor = (entr(before + copied) - entr(before)).sum(1)
        return change

    @torch.no_grad()
    def log_distribution(self, query: Query) -> Float[Tensor, "tokens vocabulary"]:
        """The log-probability of every row of the vocabulary."""
        logits = self._logits(query, slice(None))
        log_sum = logits.logsumexp(1)
        log_p = logits.sub_(log_sum.unsqueeze(1))
        return log_p if query.copies is None else query.copies.add_to(log_p, log_sum)

    @torch.no_grad()
    def log_p_of(
        self, query: Query, rows: Int[Tensor, " rows"], total: Float[Tensor, " tokens"]
    ) -> Float[Tensor, "tokens rows"]:
        """Log-probabilities of `rows` (ascending) at each position, given `Scores.total`."""
        found = self._logits(query, rows) - total.unsqueeze(1)
        if query.copies is None:
            return found
        copied, start = torch.zeros_like(found), 0
        for a, values in query.copies.parts:
            part = slice(start, start := start + len(a))
            entry = torch.isin(values, rows).nonzero().squeeze(1)
            shares = (a[:, entry] - total[part].unsqueeze(1)).exp()
            copied[part].index_add_(1, torch.searchsorted(rows, values[entry]), shares)
        return torch.logaddexp(found, copied.log())

    def entity_logits(self, query: Query, entities: int) -> Float[Tensor, "tokens entities"]:
        """All logits of the entity rows."""
        rows = entity_rows(entities)
        static = torch.addmm(self.b[rows], query.h, self.weight[rows].t())
        return static if query.entity_logits is None else static + query.entity_logits

    def _logits(
        self, query: Query, rows: slice | Int[Tensor, " rows"], tokens: slice = slice(None)
    ) -> Float[Tensor, "tokens rows"]:
        """The logits of some rows, without copies."""
        found = linear(query.h[tokens], self.weight[rows], self.b[rows])
        if query.entity_logits is None:
            return found
        rows = torch.arange(len(self.b), device=found.device)[rows]
        column, entity = entity_columns(rows, query.entity_logits.shape[1])
        return found.index_add_(1, column, query.entity_logits[tokens].index_select(1, entity))


def entity_columns(
    rows: Int[Tensor, " rows"], entities: int
) -> tuple[Int[Tensor, " found"], Int[Tensor, " found"]]:
    """Where the rows of entities are among `rows`, and the index of each entity."""
    entity = rows - entity_rows(entities).start
    column = torch.nonzero((entity >= 0) & (entity < entities)).squeeze(1)
    return column, entity[column]


class _Loss(torch.autograd.Function):
    """Sum of -log p(target), with the gradients computed in the forward pass.

    d loss / d logits is softmax - one-hot. The softmax of a chunk stays unnormalized: dividing h
    and the result by the sums costs less than dividing the chunk. The one-hot part concerns single
    rows and is subtracted at the end. With copies, the vocabulary has a share of the softmax, and
    the target's own row a share of the one-hot part.
    """

    @staticmethod
    def forward(  # noqa: PLR0917 (autograd passes by position)
        ctx: Any,
        h: Tensor,
        y: Tensor,
        b: Tensor,
        extra: Tensor | None,
        targets: Tensor,
        copies: Tensor | None,
        target_copies: Tensor | None,
    ) -> Tensor:
        of_h, of_y, of_b, of_extra = ctx.needs_input_grad[:4]
        dh = torch.empty_like(h) if of_h else None
        dy = torch.zeros_like(y) if of_y else None
        db = torch.zeros_like(b) if of_b else None
        dextra = torch.empty_like(extra) if extra is not None and of_extra else None
        vocabulary_share, target_share = torch.ones_like(h[:, 0]), torch.ones_like(h[:, 0])
        nats = h.new_zeros(())
        buffer = h.new_empty(len(y) * min(LOSS_TOKENS, len(h)))  # every chunk reuses it
        for start in range(0, len(h), LOSS_TOKENS):
            chunk = slice(start, min(start + LOSS_TOKENS, len(h)))
            logits = buffer[: len(y) * (chunk.stop - start)].view(len(y), -1)
            torch.addmm(b.unsqueeze(1), y, h[chunk].t(), out=logits)
            if extra is not None:
                logits[entity_rows(extra.shape[1])] += extra[chunk].t()
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
            if dextra is not None:
                entities = exp[entity_rows(dextra.shape[1])]
                torch.mul(entities, share, out=dextra[chunk].t())
        if dh is not None:
            dh -= y.index_select(0, targets) * target_share.unsqueeze(1)
        if dy is not None:
            dy.index_add_(0, targets, h * target_share.unsqueeze(1), alpha=-1)
        if db is not None:
            db.index_add_(0, targets, target_share, alpha=-1)
        if dextra is not None:
            token, entity = entity_columns(targets, dextra.shape[1])
            dextra[token, entity] -= target_share[token]
        of_copies = (None, None) if copies is None else (1 - vocabulary_share, target_share - 1)
        ctx.save_for_backward(dh, dy, db, dextra, *of_copies)
        return nats

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, copies, of_target = (None if d is None else d * grad for d in ctx.saved_tensors)
        return *inputs, None, copies, of_target
