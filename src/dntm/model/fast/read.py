"""read(model, window, state) -> what was read: the one entrance of the fast path.

First the contexts, level by level, into the table of states (Eqs. 4, 6 to 8); then the LSTM over
all tokens (Eqs. 2, 9). `entity_logits` and `predict` give the output layer what it needs at any
positions (Eqs. 1, 10). Losses, scores, distributions and filled gaps are functions of a `Read`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.model.cache import mixture
from dntm.model.entity_nlm import Tracked
from dntm.model.fast.entity_memory import (
    add_dynamic_terms,
    dynamic_logits,
    encoder_tokens,
    indices,
    state_table,
)
from dntm.model.fast.recurrence import Deferred, State, ragged_lstm
from dntm.model.fast.window import Merges, Window
from dntm.model.history import History, Mixture, Moments, look_back, remember
from dntm.model.newcomer import pool_free_rows
from dntm.model.parameters import Parameters
from dntm.model.pointer import Pointed
from dntm.model.reading_state import ReadingState
from dntm.model.salience import Mentions


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A window once it has been read. Places are indices into `window.layout.tokens`."""

    window: Window
    x: Float[Tensor, "places embedding_dim"]
    """The LSTM's input, after dropout."""
    h: Float[Tensor, "places hidden_dim"]
    c: Float[Tensor, "places hidden_dim"] | None
    """Only where it was asked for."""
    d: Float[Tensor, "states context_dim"]
    """The table of states; `merges.state` and `window.known` are indices into it."""
    mentions: Mentions | None
    """As of each token in reading order, where a term of the model needs them."""
    history: tuple[History, ...] | None
    """Of each document before the window, where the model looks back on it."""
    tracked: Tracked | None
    """The entities' states, where the model is one after EntityNLM."""
    after: ReadingState
    """The state after the window."""

    @property
    def merges(self) -> Merges:
        """Every merged context: its document, sentence, position and entity, and its state."""
        return self.window.merges


def read(
    model: Parameters,
    window: Window,
    state: ReadingState,
    generator: torch.Generator | None = None,
    *,
    cells: bool = False,
) -> Read:
    """Read a window from a state; dropout, in training, draws from `generator`.

    With `cells` the LSTM's c is kept for every token.
    """
    x, table = _embed(model, window, state, generator)
    layout = window.layout
    order = indices(layout.order, x)
    h, c = state.h.index_select(0, order), state.c.index_select(0, order)
    all_c, past = None, state.past
    if model.transformer is not None and past is not None:
        all_h, past = model.transformer.carry(
            x, layout, past, lambda v: _dropout(model, v, model.config.dropout_context, generator)
        )
    elif cells:
        widths = [segment.width for segment in layout.segments for _ in range(segment.steps)]
        lstm = ragged_lstm(x, model.lstm.ready(), widths, State(h, c))
        lengths = np.bincount(layout.document[layout.sentence], minlength=len(window.states))
        ends = indices(layout.read[(np.cumsum(lengths) - 1)[layout.order]], x)
        all_h, all_c = lstm.h, lstm.c
        h, c = all_h.index_select(0, ends), all_c.index_select(0, ends)
    else:
        all_h, h, c = model.lstm.carry(x, layout.segments, h, c)
    followed = state.follow(window)
    after = replace(state.after(window, table, h, c, followed), past=past)
    if state.history is not None:
        after = replace(after, history=remember(window, state.history, all_h))
    tracked = None
    if model.entity_states is not None and state.mentions is not None:
        assert state.current is not None
        tracked = model.entity_states.track(
            window, all_h, state.memory, state.current, state.mentions
        )
        after = replace(after, memory=tracked.memory, current=tracked.last)
    return Read(
        window=window,
        x=x,
        h=all_h,
        c=all_c,
        d=table[:, : model.config.context_dim],
        mentions=None if followed is None else followed.tokens,
        history=state.history,
        tracked=tracked,
        after=after,
    )


def predict(
    model: Parameters,
    read: Read,
    positions: Int[np.ndarray, " positions"],
    generator: torch.Generator | None = None,
) -> tuple[Float[Tensor, "positions hidden_dim"], Float[Tensor, "positions entities"] | None]:
    """What the output layer needs after these tokens: h, and the entities' logits beside it.

    Positions are indices of tokens in reading order, <bos> and <eos> included.
    """
    h = read.h.index_select(0, indices(read.window.layout.read[positions], read.h))
    h = model.output.directly(h, read.d, read.window.mentioned(positions))
    h = _dropout(model, h, model.config.dropout_hidden, generator)
    mentions = None if read.mentions is None else read.mentions.at(positions)
    if read.tracked is not None and model.entity_states is not None:
        assert mentions is not None
        words, entities = model.entity_states.predict(read.tracked, h, positions, mentions)
        if model.salience is not None:
            entities = entities + model.salience.logits(h, mentions)
        return words, _pooled(model, words, entities, mentions)
    return h, entity_logits(model, read, h, positions, mentions)


def scores(
    model: Parameters,
    read: Read,
    positions: Int[np.ndarray, " positions"],
    targets: Int[Tensor, " positions"],
) -> Float[Tensor, " positions"]:
    """The log-probability of each target right after a position."""
    h, entities = predict(model, read, positions)
    log_p, log_sum = model.output.score(h, entities, targets)
    for said in mixtures(model, read, positions, h, entities, log_sum):
        log_p = said.score(log_p, targets)
    return log_p


def distribution(
    model: Parameters, read: Read, positions: Int[np.ndarray, " positions"]
) -> tuple[Float[Tensor, "positions hidden_dim"], Float[Tensor, "positions vocabulary"]]:
    """The output layer's h right after each position, and the log-probability of every row."""
    h, entities = predict(model, read, positions)
    log_p, log_sum = model.output.log_distribution(h, entities)
    for said in mixtures(model, read, positions, h, entities, log_sum):
        log_p = said.distribution(log_p)
    return h, log_p


def mixtures(  # noqa: PLR0917
    model: Parameters,
    read: Read,
    positions: Int[np.ndarray, " positions"],
    h: Float[Tensor, "positions hidden_dim"],
    entities: Float[Tensor, "positions entities"] | None,
    log_sum: Float[Tensor, " positions"],
) -> Iterator[Mixture]:
    """What the pointer says after these tokens, and then the cache, of a model that has them."""
    if read.history is None or not len(positions):
        return
    if (pointed := point(model, read, positions, h, entities)) is not None:
        yield pointed.mixture(log_sum)
    if model.cache is not None:
        yield mixture(model.cache, read.window, read.history, read.h, positions)


def point(
    model: Parameters,
    read: Read,
    positions: Int[np.ndarray, " positions"],
    h: Float[Tensor, "positions hidden_dim"],
    entities: Float[Tensor, "positions entities"] | None,
) -> Pointed | None:
    """What the pointer looks back on after these tokens; None where the model has none."""
    if model.pointer is None or not len(positions):
        return None
    assert read.history is not None, "a model with a pointer keeps the history"
    parts = []
    for found in look_back(read.window, read.history, read.h, positions):
        part = found.chosen
        terms = None if entities is None else entities[part]
        parts.append((point_at(model, found, h[part], terms), found.said))
    return Pointed(tuple(parts))


def point_at(
    model: Parameters,
    moments: Moments,
    h: Float[Tensor, "positions hidden_dim"],
    entities: Float[Tensor, "positions entities"] | None,
) -> Float[Tensor, "positions said"]:
    """The pointer's logits of some moments; `entities` as `entity_logits` gives them."""
    assert model.pointer is not None
    static = model.output.entities(h, model.config.entities)
    z = static if entities is None else static + entities
    return model.pointer.logits(moments, h, model.x.weight, z)


def entity_logits(
    model: Parameters,
    read: Read,
    h: Float[Tensor, "positions hidden_dim"],
    positions: Int[np.ndarray, " positions"],
    mentions: Mentions | None,
) -> Float[Tensor, "positions entities"] | None:
    """What each entity's logit has beyond the static one: h . (W_dy d_e), salience, newcomers.

    `mentions` are those of each of the positions; None where no term needs them.
    """
    found = dynamic_logits(read.window, h, read.d, model.output.y, positions)
    if model.salience is not None and mentions is not None:
        salient = model.salience.logits(h, mentions)
        found = salient if found is None else found + salient
    return _pooled(model, h, found, mentions)


def _pooled(
    model: Parameters,
    h: Float[Tensor, "positions hidden_dim"],
    terms: Float[Tensor, "positions entities"] | None,
    mentions: Mentions | None,
) -> Float[Tensor, "positions entities"] | None:
    """The entities' terms with those of newcomers in the next one's, where the model does that."""
    if not model.config.newcomer or mentions is None:
        return terms
    static = model.output.entities(h, model.config.entities)
    return pool_free_rows(static if terms is None else static + terms, mentions) - static


def _embed(
    model: Parameters, window: Window, state: ReadingState, generator: torch.Generator | None
) -> tuple[Float[Tensor, "places embedding_dim"], Float[Tensor, "states state_dim"]]:
    """The x at every place of the layout, and the table of all states."""
    config, layout = model.config, window.layout
    # One look-up for everybody: its gradient is a table as large as all embeddings.
    parts = [layout.tokens, *encoder_tokens(window)]
    tokens = indices(np.concatenate(parts), state.h)
    looked_up = nn.functional.embedding(tokens, model.x.weight)
    words, *encoded = torch.split(looked_up, [len(part) for part in parts])
    table = state.memory.flatten(0, 1)
    if window.guests:
        guests = state.guests(window, model.initial_state(1).memory[0, 0])
        table = torch.cat((table, guests))
    W_dx = None if model.x.W_d is None else Deferred(model.x.W_d)
    if model.encoder is not None and model.merging is not None:
        table = state_table(
            window,
            encoded,
            table,
            W_dx=W_dx,
            encoder=model.encoder,
            merging=model.merging,
            dropout=lambda d: _dropout(model, d, config.dropout_context, generator),
        )
    x = add_dynamic_terms(words, W_dx, table, window.entity_places, window.entity_rows)
    return _dropout(model, x, config.dropout_embedding, generator), table


def _dropout(
    model: Parameters, values: Tensor, rate: float, generator: torch.Generator | None
) -> Tensor:
    if not model.training or rate == 0:
        return values
    kept = torch.empty_like(values).bernoulli_(1 - rate, generator=generator)
    return values * kept / (1 - rate)
