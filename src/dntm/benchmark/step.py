"""Training steps, ours and the obvious ones: the loss, its gradients, clipping and Adam."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dntm.benchmark.documents import Document
from dntm.benchmark.naive import NaiveModel
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.training.batches import stretches

TRUNCATION = 20
"""Sentences between updates, as in the paper."""

Train = Callable[[Sequence[Document]], None]
"""Trains on one batch of documents."""


def make_model(config: ModelConfig, seed: int) -> DynamicTextModel:
    """A model with its encoder frozen."""
    model = DynamicTextModel(config, torch.Generator().manual_seed(seed))
    model.freeze_encoder()
    return model


def trainer(model: DynamicTextModel) -> Train:
    """Training as `dntm train` does it."""
    learned = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(learned, lr=1e-3, fused=True)

    def train(documents: Sequence[Document]) -> None:
        state = model.initial_state(len(documents))
        for sentences, goes_on, kept in stretches(documents, TRUNCATION):
            stretch = model.plan(sentences, goes_on)
            nats, tokens, state = model.loss(stretch, state.detach().select(kept))
            _update(nats / tokens, adam, learned)

    return train


def naive_trainer(naive: NaiveModel) -> Train:
    """Training the obvious way, with Adam as PyTorch gives it."""
    learned = [p for p in naive.parameters() if p.requires_grad]
    adam = torch.optim.Adam(learned, lr=1e-3)

    def train(documents: Sequence[Document]) -> None:
        state = naive.initial_state(len(documents))
        for sentences, _, kept in stretches(documents, TRUNCATION):
            nats, state = naive.loss(sentences, state.detach().select(kept))
            tokens = sum(len(s) - 1 for document in sentences for s in document)
            _update(nats / tokens, adam, learned)

    return train


def _update(loss: Tensor, adam: torch.optim.Adam, learned: list[nn.Parameter]) -> None:
    adam.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(learned, 1.0)
    adam.step()
