"""An entity-state model after EntityNLM (Ji et al. 2017), where the entities are given.

h is the LSTM's of the baseline (A), which knows entities by their static rows. Each entity has one
vector v_e, which every mention moves toward the h at the mention, at once and not at the end of the
sentence; v_0 is what an entity is before its first one:

    delta = sigmoid(h_t . W_delta v_e),   v_e <- unit length of  delta v_e + (1 - delta) h_t

The states enter the prediction of words through the entity mentioned last (v_c; 0 before any), and
that of entities by themselves, with a feature of the distance in sentences (`ago`):

    logit_w = (h + W_c v_c) . y_w + b_w
    logit_e = (h + W_c v_c) . y_e + b_e + h . W_e v_e + w exp(-r ago_e)      for every e mentioned

in one softmax. An entity that gets a row lent (`corpus.rows`) begins with v_0, also one that had
some before. Ji et al. first decide whether an entity comes, then which, then its words; here a
mention is one token, so that one softmax over words and entities says the same.

Departure: the paper's model is another one; this is a peer to compare with (`--model.kind
entity-nlm`).
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.vocabulary import entity_rows
from dntm.model.fast.window import Window
from dntm.model.salience import Mentions


class Tracked(NamedTuple):
    """The entities of a window at each of its tokens, in reading order, once it is read."""

    table: Float[Tensor, "states dim"]
    """Every v there was; before them 0 and v_0."""
    entity: Int[np.ndarray, "read entities"]
    """Index of each entity's v; of no meaning where it was not mentioned."""
    current: Int[np.ndarray, " read"]
    """Index of v_c."""
    memory: Float[Tensor, "batch entities dim"]
    last: Float[Tensor, "batch dim"]
    """v of every entity and v_c after the window."""


class EntityStates(nn.Module):
    """The parameters beside those of the baseline."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.v_0 = nn.Parameter(torch.empty(dim))
        self.W_delta = nn.Parameter(torch.empty(dim, dim))
        self.W_e = nn.Parameter(torch.empty(dim, dim))
        self.W_c = nn.Parameter(torch.empty(dim, dim))
        self.w = nn.Parameter(torch.empty(()))
        self.log_r = nn.Parameter(torch.empty(()))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights; at first words know of no entity."""
        dim = len(self.v_0)
        nn.init.normal_(self.v_0, 0.0, dim**-0.5, generator=generator)
        for weight in (self.W_delta, self.W_e):
            nn.init.normal_(weight, 0.0, dim**-0.5, generator=generator)
        nn.init.zeros_(self.W_c)
        nn.init.zeros_(self.w)
        nn.init.zeros_(self.log_r)

    def track(
        self,
        window: Window,
        h: Float[Tensor, "places dim"],
        memory: Float[Tensor, "batch entities dim"],
        last: Float[Tensor, "batch dim"],
        before: Mentions,
    ) -> Tracked:
        """Update every entity at its mentions; `before` are those before the window."""
        layout, (batch, entities, dim) = window.layout, memory.shape
        rows, document = layout.tokens[layout.read], layout.document[layout.sentence]
        number = rows - entity_rows(entities).start
        token = np.flatnonzero((number >= 0) & (number < entities))
        # A chain is what one owner of a row mentions; its mentions are updated one after the other,
        # all chains side by side.
        owner = np.zeros((len(rows), entities), np.int64)
        for change in window.changes:
            own = (document == change.document) & (np.arange(len(rows)) >= change.token)
            owner[own, change.row] += 1
        row = document * entities + number
        chains, chain = np.unique(
            np.stack((row[token], owner[token, number[token]])), axis=1, return_inverse=True
        )
        chain = chain.reshape(-1)
        turn = _turns(chain)
        order = np.lexsort((token, turn))
        state = np.empty(len(token), dtype=np.int64)
        first = 2 + batch + batch * entities
        state[order] = first + np.arange(len(token))
        goes_on = (before.times.ravel()[chains[0]] > 0) & (chains[1] == 0)
        began = memory.flatten(0, 1).index_select(0, torch.from_numpy(chains[0]).to(h.device))
        v = torch.where(torch.from_numpy(goes_on).to(h.device).unsqueeze(1), began, self.v_0)
        table = [h.new_zeros(1, dim), self.v_0.unsqueeze(0), last, memory.flatten(0, 1)]
        for number_of_turn in range(turn.max(initial=-1) + 1):
            now = np.flatnonzero(turn == number_of_turn)
            at = torch.from_numpy(layout.read[token[now]]).to(h.device)
            own_chain = torch.from_numpy(chain[now]).to(h.device)
            moved = self._moved(v.index_select(0, own_chain), h.index_select(0, at))
            v = v.index_copy(0, own_chain, moved)
            table.append(moved)
        held, latest = np.full((len(rows), entities), -1), np.full(len(rows), -1)
        for change in window.changes:
            held[change.token, change.row] = 1
        held[token, number[token]] = latest[token] = state
        entity, current = np.empty_like(held), np.empty_like(latest)
        memory_at = 2 + batch + np.arange(batch * entities).reshape(batch, entities)
        last_at = 2 + np.arange(batch)
        for text in np.unique(document):
            mine = np.flatnonzero(document == text)
            entity[mine] = _carried(held[mine], memory_at[text])
            current[mine] = _carried(latest[mine, None], last_at[text : text + 1])[:, 0]
            memory_at[text], last_at[text] = entity[mine[-1]], current[mine[-1]]
        states = torch.cat(table)
        after = states.index_select(0, torch.from_numpy(memory_at.ravel()).to(h.device))
        ending = states.index_select(0, torch.from_numpy(last_at).to(h.device))
        return Tracked(states, entity, current, after.view_as(memory), ending)

    def _moved(
        self, v: Float[Tensor, "mentions dim"], h: Float[Tensor, "mentions dim"]
    ) -> Float[Tensor, "mentions dim"]:
        delta = torch.sigmoid(((h @ self.W_delta) * v).sum(1, keepdim=True))
        return nn.functional.normalize(delta * v + (1 - delta) * h, dim=1)

    def predict(
        self,
        tracked: Tracked,
        h: Float[Tensor, "positions dim"],
        positions: Int[np.ndarray, " positions"],
        mentions: Mentions,
    ) -> tuple[Float[Tensor, "positions dim"], Float[Tensor, "positions entities"]]:
        """What the output layer reads in the place of h, and the entities' further logits."""
        current = torch.from_numpy(tracked.current[positions]).to(h.device)
        entity = torch.from_numpy(tracked.entity[positions]).to(h.device)
        ago = torch.from_numpy(mentions.ago).to(h)
        known = torch.from_numpy(mentions.times > 0).to(h.device)
        own = ((h @ self.W_e) @ tracked.table.t()).gather(1, entity)
        near = self.w * torch.exp(-self.log_r.exp() * torch.where(known, ago, 0))
        words = h + tracked.table.index_select(0, current) @ self.W_c.t()
        return words, torch.where(known, own + near, 0)


def _turns(chain: Int[np.ndarray, " mentions"]) -> Int[np.ndarray, " mentions"]:
    """How many mentions of its chain come before each mention."""
    order = np.argsort(chain, kind="stable")
    ranked = chain[order]
    index = np.arange(len(chain))
    starts = np.maximum.accumulate(np.where(np.diff(ranked, prepend=-1) != 0, index, 0))
    turn = np.empty(len(chain), dtype=np.int64)
    turn[order] = index - starts
    return turn


def _carried(
    held: Int[np.ndarray, "time columns"], before: Int[np.ndarray, " columns"]
) -> Int[np.ndarray, "time columns"]:
    """The last value so far of each column, in which -1 is none."""
    values = np.concatenate((before[None], held))
    index = np.where(values >= 0, np.arange(len(values))[:, None], 0)
    found: Int[np.ndarray, "time columns"] = np.take_along_axis(
        values, np.maximum.accumulate(index), 0
    )[1:]
    return found
