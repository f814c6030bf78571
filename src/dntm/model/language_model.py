"""DynamicTextModel: the language model with dynamic embeddings (Sections 2 and 3).

    h_t  = LSTM(x_{w_t}, h_{t-1})                                      Eq. 2
    p    = softmax_w(h . y_w + b_w)                                    Eq. 1
    x_e  = W_dx d_{e,i} + b_e^x,   y_e = W_dy d_{e,i} + b_e^y          Eqs. 9, 10
    d_{e,i} = merge(d'_{e,i}, d_{e,i-1}),   d'_{e,i} = ContextEncoder(e, i)

`reference` computes the same values word by word. Every token is read, and every token after <bos>
is predicted, <eos> included.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import UNK, entity_rows
from dntm.model.config import NEED_MEMORY, ModelConfig
from dntm.model.fast.layout import indices
from dntm.model.fast.read import Read, query, read
from dntm.model.fast.window import EncodedDocument, Evictions, Window, plan
from dntm.model.output_layer import Query, Scores
from dntm.model.parameters import Parameters, State

MEMORY = "memory"
"""The name of the entity memory in `parts`."""
POSITIONS = 512
"""Positions that are scored at once."""


class DynamicTextModel(Parameters):
    """The paper's model in all its variants, with any core and any extensions."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that `without` can leave out: the memory and the terms of extensions."""
        terms = tuple(name for name in self.config.extensions if name in self.terms)
        return (MEMORY,) * (self.config.variant != "baseline") + terms

    def without(self, parts: Collection[str]) -> "DynamicTextModel":
        """A model without some parts; it shares all other weights with this model.

        Without memory, every d_e is zero: the result is variant A with the same weights and without
        the extensions that need d_e.
        """
        if odd := [part for part in parts if part not in self.parts]:
            found = ", ".join(self.parts) or "none"
            raise ValueError(f"the model has no part {odd[0]!r:.80}, its parts are {found}")
        if not parts:
            return self
        static = MEMORY in parts
        left_out = {*parts, *(NEED_MEMORY if static else ())}
        kept = tuple(name for name in self.config.extensions if name not in left_out)
        variant = "baseline" if static else self.config.variant
        with torch.device("meta"):  # every tensor is replaced
            other = DynamicTextModel(replace(self.config, variant=variant, extensions=kept))
        other.core, other.output = self.core, self.output
        if static:
            other.x.load_state_dict(self.x.state_dict(), strict=False, assign=True)
            other.x.weight = self.x.weight
        else:
            other.x, other.memory = self.x, self.memory
        for name in other.terms:
            other.terms[name] = self.terms[name]
        other.exchange_memories = self.exchange_memories
        return other.train(self.training)

    def plan(
        self,
        documents: Sequence[EncodedDocument],
        continues: Sequence[bool] | None = None,
        *,
        evictions: Evictions = (),
        every_context: bool = False,
    ) -> Window:
        """Plan the reading of these sentences; see `fast.window.plan`."""
        return plan(
            documents,
            self.config,
            continues,
            evictions=evictions,
            every_context=every_context and self.config.variant != "baseline",
            encoder=self.memory.encoder is not None,
        )

    def loss(
        self,
        window: Window,
        state: State,
        generator: torch.Generator | None = None,
        *,
        sample: int = 0,
    ) -> tuple[Float[Tensor, ""], Read]:
        """The sum of nats over the predicted tokens, and what was read.

        In training, dropout draws from `generator`. With `sample`, the loss is estimated from as
        many rows of the output layer (see `OutputLayer.sample`).
        """
        found = read(self, window, state, generator)
        asked = query(self, found, window.layout.predicting, generator)
        targets = indices(window.layout.targets, asked.h)
        rows = self.output.sample(targets, sample, self.config.entities, generator)
        return self.output.loss(asked, targets, rows), found

    @torch.no_grad()
    def score(
        self, window: Window, state: State
    ) -> tuple[list[Float[np.ndarray, " predicted"]], State]:
        """Log-probabilities of each document's predicted tokens, and the state after them."""
        found = read(self, window, state)
        cuts = np.cumsum(window.layout.predicted)[:-1]
        return np.split(log_p(self, found), cuts), found.after

    @torch.no_grad()
    def log_distribution(
        self, window: Window, state: State, positions: Sequence[int]
    ) -> tuple[Query, Float[Tensor, "positions vocabulary"], State]:
        """The query and the next token's distribution once the tokens at `positions` are read.

        Positions rise. They count every token, <bos> and <eos> included, in reading order through
        the documents. The last value is the state after the window.
        """
        found = read(self, window, state)
        asked = query(self, found, np.asarray(positions, dtype=np.int64))
        return asked, self.output.log_distribution(asked), found.after


def scored(
    model: Parameters, found: Read, predicting: Int[np.ndarray, " some"] | None = None
) -> Iterator[tuple[Query, Scores]]:
    """Scores of the tokens that a window predicts, some positions at a time.

    `predicting` are positions whose next token is scored; if omitted, all that predict one.
    """
    layout = found.window.layout
    positions = layout.predicting if predicting is None else predicting
    targets = layout.tokens[layout.read[np.minimum(positions + 1, len(layout.read) - 1)]]
    for start in range(0, max(len(positions), 1), POSITIONS):
        chunk = slice(start, start + POSITIONS)
        asked = query(model, found, positions[chunk])
        yield asked, model.output.score(asked, indices(targets[chunk], asked.h))


def log_p(
    model: Parameters, found: Read, predicting: Int[np.ndarray, " some"] | None = None
) -> Float[np.ndarray, " predicted"]:
    """Log-probabilities of the same tokens."""
    parts = scored(model, found, predicting)
    return np.concatenate([scores.log_p.cpu().numpy() for _, scores in parts])


class PieceScores(NamedTuple):
    """Log-probabilities of the pieces of each word of a token, given all preceding pieces."""

    rows: Float[np.ndarray, " words"]
    """In the softmax over all rows."""
    base: Float[np.ndarray, " words"]
    """In the softmax without the rows of entities."""
    lengths: Sequence[int]
    """The number of pieces."""

    def words(self) -> Float[np.ndarray, " events"]:
        """The log-probability of each beginning, and of the whole, as rows."""
        found = np.cumsum(self.rows)
        return np.append(found, found[-1])

    def q(self, ends: float) -> Float[np.ndarray, " events"]:
        """The same under q: a name ends after a piece with probability `ends`."""
        found = np.cumsum(self.base) + (np.cumsum(self.lengths) - 1) * np.log1p(-ends)
        return np.append(found, found[-1] + np.log(ends))


class RowScores(NamedTuple):
    """Log-probabilities that a model assigns before each token of a sentence."""

    first: Float[np.ndarray, "tokens rows"]
    """Of the rows of special tokens and entities."""
    word: Float[np.ndarray, " tokens"]
    """Of the row of the token's first word."""
    pieces: Sequence[PieceScores] = ()
    """Of the pieces of each token, if words are divided into pieces."""

    def split(self, cuts: Int[np.ndarray, " cuts"]) -> "list[RowScores]":
        """The scores of each sentence; with pieces there is only one."""
        if not len(cuts):
            return [self]
        parts = zip(np.split(self.first, cuts), np.split(self.word, cuts), strict=True)
        return [RowScores(*part) for part in parts]


class BlockScores(NamedTuple):
    """What a model says about some sentences of each document."""

    log_p: list[Float[np.ndarray, " predicted"]]
    """Log-probabilities (nats) of each document's predicted tokens."""
    entropies: list[Float[np.ndarray, " predicted"]]
    """Entropy (nats) of the distribution at each of them."""
    rows: list[RowScores]
    """Scores of other rows at each of them; empty unless `words` are given."""
    expected: list[Float[Tensor, "mentions hidden_dim"]]
    """The core's states before each document's mentions."""
    begins: Float[Tensor, "sentences entities context_dim"]
    """d of every slot before each sentence, with the occupants that its mentions refer to."""
    ends: Float[Tensor, "sentences entities context_dim"]
    """d of every slot after each sentence."""
    state: State


@torch.no_grad()
def score_block(
    model: Parameters,
    window: Window,
    state: State,
    words: Int[np.ndarray, " predicted"] | None = None,
) -> BlockScores:
    """Read and score a window; `words` has the row of the first word of each token."""
    found, blocks, start = read(model, window, state), list[tuple[Tensor, ...]](), 0
    for asked, scores in scored(model, found):
        chunk = slice(start, start := start + len(asked.h))
        block: tuple[Tensor, ...] = (scores.log_p, scores.entropy)
        if words is not None:
            own = np.where(words[chunk] == window.layout.targets[chunk], UNK, words[chunk])
            block += _other_rows(model, asked, scores, own)
        blocks.append(block)
    cuts = np.cumsum(window.layout.predicted)[:-1]
    columns = (torch.cat(column).cpu().numpy() for column in zip(*blocks, strict=True))
    log_p, entropies, *rows = (np.split(column, cuts) for column in columns)
    each = [RowScores(*both) for both in zip(*rows, strict=True)]
    begins, ends = (found.d[indices(rows, found.d)] for rows in (window.known, _ends(window)))
    expected = _before_mentions(found)
    return BlockScores(log_p, entropies, each, expected, begins, ends, found.after)


def _before_mentions(found: Read) -> list[Float[Tensor, "mentions hidden_dim"]]:
    """The core's states before each document's mentions."""
    layout, slots = found.window.layout, entity_rows(found.window.known.shape[1])
    is_mention = (layout.targets >= slots.start) & (layout.targets < slots.stop)
    places = layout.read[layout.predicting[is_mention]]
    cuts = np.searchsorted(np.flatnonzero(is_mention), np.cumsum(layout.predicted))
    sizes = np.diff(cuts, prepend=0).tolist()
    return list(torch.split(found.h.index_select(0, indices(places, found.h)), sizes))


def _other_rows(
    model: Parameters, asked: Query, scores: Scores, words: Int[np.ndarray, " tokens"]
) -> tuple[Float[Tensor, "tokens rows"], Float[Tensor, " tokens"]]:
    """Log-probabilities of special and entity rows, and of `words` (<unk>: of the target)."""
    first = np.arange(entity_rows(model.config.entities).stop)
    rows, column = np.unique(np.concatenate([first, words]), return_inverse=True)
    found = model.output.log_p_of(asked, indices(rows, asked.h), scores.total)
    at = indices(column[len(first) :], asked.h).unsqueeze(1)
    is_target = torch.from_numpy(words == UNK).to(at.device)
    return found[:, first], torch.where(is_target, scores.log_p, found.gather(1, at).squeeze(1))


def _ends(window: Window) -> Int[np.ndarray, "sentences entities"]:
    """Table row of each d_e after each sentence, before any slot changes in the next one."""
    layout = window.layout
    ends = np.roll(window.known, -1, axis=0)
    for change in reversed(window.changes):
        ends[layout.sentence[change.begins] - 1, change.slot] = change.before
    last = np.flatnonzero(np.diff(layout.document, append=-1))
    ends[last] = window.memory[layout.document[last]]
    return ends


def parameter_count(config: ModelConfig) -> int:
    """Number of parameters."""
    with torch.device("meta"):
        model = Parameters(config)
    return sum(p.numel() for p in model.parameters())
