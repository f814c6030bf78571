"""The extensions beyond the paper as plain loops, word by word.

`ExtendedReference` reads a document like `model.reference.Reference`; it has the Transformer core
and every term. Tests compare the values and gradients of the fast code with it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, normalize, rms_norm

from dntm.corpus.vocabulary import BOS, entity_rows
from dntm.model.context_encoder import REACH
from dntm.model.extensions.unseen_pooling import LATER
from dntm.model.extensions.word_attention import DISTANCES
from dntm.model.reference import Entity, Reference, State, Token


class ExtendedReference(Reference):
    """The model with these parameters, its core and its extensions."""

    def begin(self) -> State:
        """The state before the first sentence; a Transformer keeps the x of every token."""
        return State(()) if self.config.core == "transformer" else super().begin()

    def step(self, x: Tensor, core: Any) -> tuple[Tensor, Any]:
        """The core reads one token."""
        if self.config.core == "transformer":
            return self.transformer((*core, x)), (*core, x)
        h, core = super().step(x, core)
        return h if self.config.core_dim is None else self.p["lstm.W_sh"] @ h, core

    def context(self, x: Sequence[Tensor], rows: Sequence[int], position: int) -> Tensor:
        """d'_e; with word attention, from the attended words too."""
        if "word-attention" not in self.config.extensions:
            return super().context(x, rows, position)
        p = {n: self.p[f"encoder.{n}"] for n in ("w", "u", "Q", "K", "r", "W_hd", "b_d")}
        around, first = self.around(x, position), entity_rows(self.config.entities).stop
        near = range(max(position - REACH, 0), min(position + REACH + 1, len(rows)))
        read = [j for j in near if rows[j] >= first and j != position]
        a = torch.zeros_like(x[0])
        if read:
            query = p["u"] + p["K"].t() @ (p["Q"] @ around)
            scores = [
                p["w"][rows[j] - first] + query @ x[j] + p["r"][min(abs(position - j), DISTANCES)]
                for j in read
            ]
            a = torch.stack(scores).softmax(0) @ torch.stack([x[j] for j in read])
        return torch.relu(p["W_hd"] @ torch.cat((around, a)) + p["b_d"])

    def logits(self, y: Tensor, past: Sequence[Token], entities: Mapping[int, Entity]) -> Tensor:
        """Eq. 1 with every term in its order."""
        names, h = self.config.extensions, past[-1].h
        if "entity-residual" in names:
            h = self.entity_residual(h, past[-1].row, entities)
        z = y @ h + self.p["output.b"]
        if "salience" in names:
            z = z + self.salience(h, past)
        if "entity-nlm" in names:
            v, current = self.entity_states(past)
            words = h + self.p["terms.entity-nlm.W_c"] @ current
            z = z + y @ (words - h) + self.entity_nlm(h, v, past)
            h = words
        if "unseen-pooling" in names:
            z = self.unseen_pooling(z, past)
        return self.pointer(z, h, past) if "pointer" in names else z

    def transformer(self, x: Sequence[Tensor]) -> Tensor:
        """H of the last token; attention over all tokens of the document, layer by layer."""
        stream = list(x)
        for layer in range(self.config.layers):
            norms = [self.p[f"core.norms.{2 * layer + i}.weight"] for i in (0, 1)]
            W_qkv, W_o, W_1, W_2 = (
                self.p[f"core.{name}.{layer}"] for name in ("W_qkv", "W_o", "W_1", "W_2")
            )
            qkv = [W_qkv @ rms_norm(v, v.shape, norms[0]) for v in stream]
            heads = [[part.chunk(self.config.heads) for part in v.chunk(3)] for v in qkv]
            for t in range(len(stream)):
                read = []
                for head in range(self.config.heads):
                    q = self.rotated(heads[t][0][head], t)
                    keys = [self.rotated(heads[i][1][head], i) for i in range(t + 1)]
                    scores = torch.stack([q @ k for k in keys]) * len(q) ** -0.5
                    values = torch.stack([heads[i][2][head] for i in range(t + 1)])
                    read.append(scores.softmax(0) @ values)
                stream[t] = stream[t] + W_o @ torch.cat(read)
                inner = W_1 @ rms_norm(stream[t], stream[t].shape, norms[1])
                stream[t] = stream[t] + W_2 @ gelu(inner, approximate="tanh")
        return rms_norm(
            stream[-1], stream[-1].shape, self.p[f"core.norms.{2 * self.config.layers}.weight"]
        )

    @staticmethod
    def rotated(values: Tensor, time: int) -> Tensor:
        """Rotary embedding: pair j is rotated by time / 10000^(j / pairs)."""
        one, two = values.chunk(2)
        pairs = torch.arange(len(one), dtype=values.dtype)
        angle = time * 10_000.0 ** (-pairs / len(one))
        return torch.cat(
            (one * angle.cos() - two * angle.sin(), one * angle.sin() + two * angle.cos())
        )

    def entity_residual(self, h: Tensor, row: int, entities: Mapping[int, Entity]) -> Tensor:
        """H + W_dh d_e right after a mention of e."""
        if row not in entities:
            return h
        return h + self.p["terms.entity-residual.W_dh"] @ entities[row].d

    def salience(self, h: Tensor, past: Sequence[Token]) -> Tensor:
        """What the recency and frequency of each entity add to its logit."""
        p = {name: self.p[f"terms.salience.{name}"] for name in ("r", "r_b", "f", "f_b", "k")}
        added = [h.new_zeros(()) for _ in range(self.config.vocabulary)]
        for row, (ago, times) in self.mentions(past).items():
            a = ago if ago <= 2 else 3 if ago <= 4 else 4 if ago <= 8 else 5
            n = times - 1 if times <= 2 else 2 if times <= 4 else 3 if times <= 8 else 4
            k = p["k"][row - entity_rows(self.config.entities).start]
            added[row] = h @ (p["r"][a] + p["f"][n] + k) + p["r_b"][a] + p["f_b"][n]
        return torch.stack(added)

    def mentions(self, past: Sequence[Token]) -> dict[int, tuple[int, int]]:
        """For each entity mentioned so far: sentences since then, and how often."""
        sentence, found = 0, dict[int, tuple[int, int]]()
        for row, _ in past:
            sentence += row == BOS
            if self.is_entity(row):
                found[row] = (sentence, found.get(row, (0, 0))[1] + 1)
        return {row: (sentence - last, times) for row, (last, times) in found.items()}

    def unseen_pooling(self, z: Tensor, past: Sequence[Token]) -> Tensor:
        """All free rows stand for the first of them."""
        rows, known = entity_rows(self.config.entities), {row for row, _ in past}
        free = [row for row in range(rows.start, rows.stop) if row not in known]
        if not free:
            return z
        pooled = list(z)
        for row in free[1:]:
            pooled[row] = z[row] - LATER
        pooled[free[0]] = z[free].exp().sum().log()
        return torch.stack(pooled)

    def pointer(self, z: Tensor, h: Tensor, past: Sequence[Token]) -> Tensor:
        """Each row's logit together with those of its copies."""
        names = "theta kappa gamma W_q W_k W_v v r u b".split()
        p = {name: self.p[f"terms.pointer.{name}"] for name in names}
        total, now = list(z.exp()), past[-1].row
        # Token i was read and token i + 1 followed it in the same sentence.
        pairs = [(i, w) for i, w in pairwise(past) if w.row != BOS]
        for age, (token, following) in enumerate(reversed(pairs), start=1):
            row, h_i = following.row, token.h
            a = p["theta"] * (h @ h_i) + (p["W_q"] @ h) @ (p["W_k"] @ h_i)
            if token.row == now:
                a = a + p["kappa"][int(self.is_entity(now))]
            a = a + (p["W_v"] @ h + p["v"]) @ self.p["x.weight"][row].detach()
            if self.is_entity(row):
                a = a + p["gamma"] * z[row].detach()
            a = a + p["r"][min(age.bit_length(), len(p["r"])) - 1] + p["u"] @ h + p["b"]
            total[row] = total[row] + a.exp()
        return torch.stack(total).log()

    def entity_states(self, past: Sequence[Token]) -> tuple[dict[int, Tensor], Tensor]:
        """EntityNLM's v_e of every entity mentioned so far, and v_c."""
        p = {name: self.p[f"terms.entity-nlm.{name}"] for name in ("v_0", "W_delta")}
        v, current = dict[int, Tensor](), torch.zeros_like(p["v_0"])
        for row, h in past:
            if self.is_entity(row):
                before = v.get(row, p["v_0"])
                delta = torch.sigmoid(h @ p["W_delta"] @ before)
                current = v[row] = normalize(delta * before + (1 - delta) * h, dim=0)
        return v, current

    def entity_nlm(self, h: Tensor, v: Mapping[int, Tensor], past: Sequence[Token]) -> Tensor:
        """What the entity states add to the logits of the entities mentioned so far."""
        p = {name: self.p[f"terms.entity-nlm.{name}"] for name in ("W_e", "w", "log_r")}
        added = [h.new_zeros(()) for _ in range(self.config.vocabulary)]
        for row, (ago, _) in self.mentions(past).items():
            added[row] = h @ p["W_e"] @ v[row] + p["w"] * torch.exp(-p["log_r"].exp() * ago)
        return torch.stack(added)
