"""Dynamic evaluation (Mikolov et al. 2010, Krause et al. 2018): weights that follow the document.

Each sentence is scored first; then one step of gradient descent makes it likelier, and the weights
are drawn back to the trained ones:

    w <- w - eta g + lambda (w_0 - w),   g = gradient of the sentence's nats a token, cut to norm 1

Each document begins with w_0. All parameters follow, those of the context encoder too.

Departure: the paper has nothing like it. It is off unless asked for (`dntm evaluate
--dynamic-evaluation`). Krause et al. also divide g by its root mean square over the training text;
this is their plain form, which needs no training text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee

import numpy as np
import torch
from torch import Tensor, nn

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.rows import DocumentRows, encode
from dntm.evaluation.records import Floats, Records
from dntm.model.cache import Tuned
from dntm.model.text_model import TextModel

RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
DECAYS = (0.0, 0.003, 0.01, 0.03, 0.1)
"""Among which `tune` looks, the decay for the best rate."""
DOCUMENTS = 20
"""On how many documents."""
CLIP = 1.0


@dataclass(frozen=True, kw_only=True)
class DynamicEvaluation(Tuned):
    """How the weights follow a document."""

    FILE = "dynamic_evaluation.json"
    rate: float
    """eta: with 0 they stay what they are."""
    decay: float
    """lambda: the share of the way back after each sentence."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decay > 1:
            raise ValueError(f"decay is {self.decay}, expected at most 1")

    def score_all(
        self, model: TextModel, documents: Iterable[AnonymizedDocument]
    ) -> Iterator[Floats]:
        """The log-probability (nats) of every predicted token of each document."""
        learned = [p for p in model.model.parameters() if p.requires_grad]
        trained = [p.detach().clone() for p in learned]
        model.model.eval()
        for document in documents:
            try:
                yield self._score(model, encode(document, model.vocabulary), learned, trained)
            finally:
                _set(learned, trained)

    def records(self, model: TextModel, documents: Iterable[AnonymizedDocument]) -> Records:
        """One record per predicted token."""
        first, second = tee(documents)
        return Records.of(first, self.score_all(model, second))

    def _score(
        self,
        text_model: TextModel,
        document: DocumentRows,
        learned: Sequence[nn.Parameter],
        trained: Sequence[Tensor],
    ) -> Floats:
        model = text_model.model
        state, found = model.initial_state(1), []
        for rows, loans in zip(document.sentences, document.loans, strict=True):
            window = model.plan([[rows]], loans=[[loans]])
            [scores], after = model.score(window, state)
            nats, tokens, _ = model.loss(window, state)
            self._step(nats / tokens, learned, trained)
            found.append(scores)
            state = after
        return np.concatenate(found).astype(np.float64)

    def _step(
        self, loss: Tensor, learned: Sequence[nn.Parameter], trained: Sequence[Tensor]
    ) -> None:
        for parameter in learned:
            parameter.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learned, CLIP)
        with torch.no_grad():
            for parameter, before in zip(learned, trained, strict=True):
                if parameter.grad is not None:
                    parameter.lerp_(before, self.decay)
                    parameter.sub_(parameter.grad, alpha=self.rate)
                    parameter.grad = None


@torch.no_grad()
def _set(learned: Sequence[nn.Parameter], values: Sequence[Tensor]) -> None:
    for parameter, value in zip(learned, values, strict=True):
        parameter.copy_(value)


def tune(model: TextModel, documents: Sequence[AnonymizedDocument]) -> DynamicEvaluation:
    """The rate and then the decay under which the first documents are likeliest."""
    texts = documents[:DOCUMENTS]

    def nats(setting: DynamicEvaluation) -> float:
        return -float(sum(scores.sum() for scores in setting.score_all(model, texts)))

    def best(settings: Iterable[DynamicEvaluation], least: float) -> DynamicEvaluation | None:
        """The last setting before the nats rise."""
        found = None
        for setting in settings:
            if (here := nats(setting)) >= least:
                break
            found, least = setting, here
        return found

    none = DynamicEvaluation(rate=0.0, decay=DECAYS[2])
    found = best((replace(none, rate=rate) for rate in RATES), nats(none))
    return min((replace(found, decay=decay) for decay in DECAYS), key=nats) if found else none
