"""DynamicTextModel: the language model with dynamic embeddings (Sections 2 and 3).

    h_t  = LSTM(x_{w_t}, h_{t-1})                                      Eq. 2
    p    = softmax_w(h . y_w + b_w)                                    Eq. 1
    x_e  = W_dx d_{e,i} + b_e^x,   y_e = W_dy d_{e,i} + b_e^y          Eqs. 9, 10
    d_{e,i} = merge(d'_{e,i}, d_{e,i-1}),   d'_{e,i} = ContextEncoder(e, i)

`reference.py` has the same word by word. Here each method is a few lines over `fast.read.read`.
Every token after <bos> is predicted, <eos> too; every token is read.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import entity_rows, row_of_entity
from dntm.model.config import ModelConfig
from dntm.model.fast.entity_memory import indices
from dntm.model.fast.read import Read, distribution, point, predict, read, scores
from dntm.model.fast.window import EncodedDocument, Loans, Window, plan
from dntm.model.naming import Naming
from dntm.model.output_layer import CopyLogits
from dntm.model.parameters import Parameters
from dntm.model.reading_state import ReadingState


class DynamicTextModel(Parameters):
    """The paper's model in all its variants."""

    def plan(
        self,
        documents: Sequence[EncodedDocument],
        continues: Sequence[bool] | None = None,
        *,
        loans: Loans = (),
        every_context: bool = False,
    ) -> Window:
        """The window of these sentences for this model; see `fast.window.plan`."""
        return plan(
            documents,
            entities=self.config.entities,
            dynamic_input=self.config.dynamic_input,
            dynamic_output=self.config.dynamic_output,
            continues=continues,
            loans=loans,
            every_context=every_context and self.config.variant != "baseline",
        )

    def loss(
        self, window: Window, state: ReadingState, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, ""], int, ReadingState]:
        """Sum of nats over the predicted tokens, their number, and the state after them.

        Dropout, in training, draws from `generator`.
        """
        nats, _, after = self.losses(window, state, generator)
        return nats, len(window.layout.targets), after

    def losses(
        self,
        window: Window,
        state: ReadingState,
        generator: torch.Generator | None = None,
        *,
        sample: int = 0,
        answers: Int[np.ndarray, " merges"] | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""], ReadingState]:
        """Like `loss`, with the sum of nats of naming hidden words beside that of the tokens.

        A `sample` of so many rows of the output layer is drawn from `generator` (see
        `OutputLayer.sample`). `answers` are the rows of the words hidden behind
        the entities of `window.merges`, 0 where there is none.
        """
        found = read(self, window, state, generator)
        h, entities = predict(self, found, window.layout.predicting, generator)
        targets = indices(window.layout.targets, h)
        rows = self.output.sample(targets, sample, self.config.entities, generator)
        pointed = point(self, found, window.layout.predicting, h, entities)
        copies = None
        if pointed is not None:
            copies = CopyLogits(pointed.log_sum(), pointed.log_sum_of(targets))
        nats = self.output.loss(h, entities, targets, rows, copies)
        named = nats.new_zeros(()) if self.naming is None else 0 * self.naming.s
        if answers is not None and self.naming is not None and answers.any():
            named = self._named(found, answers, self.naming)
        return nats, named, found.after

    def _named(
        self, found: Read, answers: Int[np.ndarray, " merges"], naming: Naming
    ) -> Float[Tensor, ""]:
        """Nats of naming every hidden word after each of its mentions."""
        hidden = np.nonzero(answers)[0]
        merges, first = found.merges, entity_rows(self.config.entities)
        d = found.d.index_select(0, indices(merges.state[hidden], found.d))
        x_e = self.x.entity(indices(row_of_entity(merges.entity[hidden]), d), d)
        words = self.x.weight[first.stop :]
        return naming.loss(x_e, words, indices(answers[hidden] - first.stop, d))

    @torch.no_grad()
    def score(
        self, window: Window, state: ReadingState
    ) -> tuple[list[Float[np.ndarray, " _"]], ReadingState]:
        """Log-probabilities of each document's predicted tokens, and the state after them."""
        found = read(self, window, state)
        targets = indices(window.layout.targets, found.h)
        scored = scores(self, found, window.layout.predicting, targets)
        parts = np.split(scored.cpu().numpy(), np.cumsum(window.layout.predicted)[:-1])
        return parts, found.after

    @torch.no_grad()
    def log_distribution(
        self, window: Window, state: ReadingState, positions: Sequence[int]
    ) -> tuple[
        Float[Tensor, "positions hidden_dim"], Float[Tensor, "positions vocabulary"], ReadingState
    ]:
        """The h and the next token's distribution once the tokens at `positions` are read.

        Positions count every token, <bos> and <eos> too, in reading order through the documents,
        and rise. The last value is the state after the window.
        """
        chosen = np.asarray(positions, dtype=np.int64)
        tokens = len(window.layout.read)
        if np.any(np.diff(chosen) <= 0) or np.any((chosen < 0) | (chosen >= tokens)):
            raise ValueError(f"positions {positions}, expected rising ones below {tokens}")
        found = read(self, window, state)
        h, log_p = distribution(self, found, chosen)
        return h, log_p, found.after


def parameter_count(config: ModelConfig, *, finetuned: bool = False) -> int:
    """Numbers to learn; with `finetuned` without the encoder, which training keeps fixed."""
    with torch.device("meta"):
        model = Parameters(config)
    if finetuned:
        model.freeze_encoder()
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
