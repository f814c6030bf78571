"""Every tensor is created on the model's device, tested with PyTorch's meta device.

A model on the meta device fails if another tensor stays on the CPU. No GPU was tested.
"""

from typing import Any

import numpy as np
import pytest
import torch

import dntm
from dntm.corpus.entity_slots import encode
from dntm.evaluation.cloze import ClozeText
from dntm.model.context_encoder import ContextEncoder
from dntm.model.scorer import Scorer
from dntm.model.sentence_completion import GapNaming, SentenceCompletion
from dntm.training.language_modeling import WindowLoss
from dntm.training.processes import device_of
from tests.model.small import build

VOCABULARY = dntm.Vocabulary(("the", "cat", "sat", "on", "a", "mat"), entities=3)
DOCUMENT = dntm.AnonymizedDocument(
    name="d", sentences=[[1, "sat", "on", 2], ["the", 1, "sat"], ["a", "mat"], [2, "sat", 1, 2]]
)
CROWDED = dntm.AnonymizedDocument(
    name="c", sentences=[[1, "sat"], [2, "sat", 3], [4, "sat", 1], [5, "sat"], [2, "sat", 4, 5]]
)
"""More entities than the model has slots."""
ENCODED = [encode(DOCUMENT, VOCABULARY).sentences]
MODELS: list[dict[str, Any]] = [
    {"variant": "baseline"},
    *({"merging": merging} for merging in ("gru-relu", "max", "mean", "attention")),
    {"variant": "input"},
    {"variant": "output", "extensions": ("salience",)},
    {"extensions": ("naming",)},
    {"tied": True, "dropout_embedding": 0.1, "dropout_hidden": 0.1, "dropout_context": 0.1},
]


@pytest.fixture
def _values_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operations whose result on the meta device depends on numbers that are not there."""

    def cpu(values: torch.Tensor) -> torch.Tensor:
        return torch.zeros(values.shape, dtype=values.dtype, device="cpu")

    def nonzero(found: torch.Tensor) -> torch.Tensor:
        return found.new_zeros(len(found), 1, dtype=torch.int64)

    monkeypatch.setattr(torch, "nonzero", nonzero)
    monkeypatch.setattr(torch.Tensor, "nonzero", nonzero)
    monkeypatch.setattr(torch, "unique", lambda found: found[:1])
    monkeypatch.setattr(torch.Tensor, "cpu", cpu)


@pytest.mark.parametrize("sample", [0, 10])
@pytest.mark.parametrize("settings", MODELS, ids=str)
@pytest.mark.usefixtures("_values_do_not_matter")
def test_a_model_elsewhere_is_trained_elsewhere(settings: dict[str, Any], sample: int) -> None:
    model = build(**settings).to("meta").train()

    state = model.initial_state(1)
    for start in (0, 2):
        window = model.plan([ENCODED[0][start : start + 2]], [start == 0], every_context=True)
        step = WindowLoss(model, dntm.Recipe(output_sample=sample))
        loss, state = step(window, state, torch.Generator())
        loss.backward()

    assert loss.is_meta
    learned = [p for name, p in model.named_parameters() if "naming" not in name]
    assert all(p.grad is not None and p.grad.is_meta for p in learned)


def test_an_encoder_elsewhere_is_pretrained_elsewhere() -> None:
    sentences, negatives = [np.array([3, 4, 5]), np.array([4, 3])], np.array([[3, 4]] * 5)
    named, candidates = np.array([True, False, False, True, True]), np.array([3, 4, 6])
    completion = SentenceCompletion(9, ContextEncoder(8, 8, 8))
    naming = GapNaming(9, ContextEncoder(8, 8, 4))

    completion.to("meta")(sentences, negatives).backward()
    none = np.zeros(3, dtype=np.float32)
    naming.to("meta")(sentences, named, candidates, none, ~named).backward()

    for parameter in (*completion.parameters(), *naming.parameters()):
        assert parameter.grad is not None
        assert parameter.grad.is_meta


@pytest.mark.parametrize("settings", MODELS, ids=str)
@pytest.mark.usefixtures("_values_do_not_matter")
def test_a_model_elsewhere_scores_and_completes_elsewhere(settings: dict[str, Any]) -> None:
    model = Scorer(build(**settings).to("meta"), VOCABULARY)

    assert [len(scores) for scores in model.score([DOCUMENT, CROWDED])] == [17, 19]
    assert len(next(model.complete([(DOCUMENT, ClozeText.of(DOCUMENT).gaps)])).gap)
    if model.model.config.variant != "baseline":
        assert next(model.mention_embeddings(ENCODED)).x.is_meta


def test_the_device_is_chosen_by_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_of("auto") == device_of("cuda") == torch.device("cuda")
    assert device_of("cpu") == torch.device("cpu")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device_of("auto") == torch.device("cpu")
    with pytest.raises(ValueError, match="device is 'mps', but PyTorch finds none here, only cpu"):
        device_of("mps")
