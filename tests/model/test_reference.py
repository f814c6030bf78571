"""The fast path against the plain loops of the two references: values and gradients."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dntm.model
from dntm.model import context_encoder
from dntm.model.config import Extension, Merging, Variant
from dntm.model.extensions import reference as extensions_reference
from dntm.model.language_model import DynamicTextModel
from dntm.model.reference import Entity, Reference
from tests.model.small import ALL_EXTENSIONS, backward, build, each_window, reference_of, score
from tests.model.texts import BOS, DOCUMENTS, EOS, LONG, A, B, C, Document

# The reference of the Transformer is slow.
SHORT: list[Document] = [
    [[BOS, A, 7, A, EOS], [BOS, 7, B, EOS], [BOS, B, A, 7, EOS]],
    [],
    [[BOS, 8, EOS], [BOS, A, 9, EOS]],
]
PAPER = [("baseline", "gru-relu")] + [
    (variant, merging) for variant in ("input", "output", "both") for merging in get_args(Merging)
]
EXTENDED: list[tuple[Variant, tuple[Extension, ...]]] = [
    ("both", ("entity-residual",)),
    ("output", ("salience",)),
    ("baseline", ("entity-nlm",)),
    ("both", ("unseen-pooling",)),
    ("both", ("pointer",)),
    ("both", ("word-attention",)),
    *ALL_EXTENSIONS.items(),
]


def assert_equal_gradients(model: DynamicTextModel, reference: Reference) -> None:
    """Compare the gradients of all parameters; no gradient counts as zero."""
    for name, parameter in model.paper_parameters().items():
        grads = [p.grad for p in (parameter, reference.p[name])]
        found, expected = (torch.zeros_like(parameter) if g is None else g for g in grads)
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10, msg=name)


def assert_agrees(model: DynamicTextModel, documents: Sequence[Document], size: int) -> None:
    """Compare scores, the loss and its gradients, which stop after every `size` sentences."""
    reference = reference_of(model)
    expected: list[list[Tensor]] = []
    for document in documents:
        log_p, state = list[Tensor](), reference.begin()
        for start in range(0, len(document), size):
            values, state = reference.read(document[start : start + size], state.detach())
            log_p += values
        expected.append(log_p)
    total = torch.stack([value for log_p in expected for value in log_p]).sum()
    backward(-total)

    for found, log_p in zip(score(model, documents, 2), expected, strict=True):
        np.testing.assert_allclose(found, [v.item() for v in log_p], atol=1e-11, rtol=0)
    nats, after = 0.0, model.initial_state(len(documents))
    for window, kept, _ in each_window(model, documents, size):
        loss, read = model.loss(window, after.detach().select(kept))
        backward(loss)
        nats, after = nats + loss.item(), read.after
    assert nats == pytest.approx(-total.item(), abs=1e-10)
    assert_equal_gradients(model, reference)


@pytest.mark.parametrize(("tied", "size"), [(False, 2), (True, 7)])
@pytest.mark.parametrize(("variant", "merging"), PAPER)
def test_the_papers_models_agree_with_the_reference(
    variant: Variant, merging: Merging, *, tied: bool, size: int
) -> None:
    assert_agrees(build(variant, merging, tied=tied), DOCUMENTS, size)


SENTENCES = st.lists(st.sampled_from([A, B, C, 7, 8]), max_size=6).map(
    lambda words: [BOS, *words, EOS]
)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(SENTENCES, max_size=5), min_size=1, max_size=3).filter(any),
    st.sampled_from(["input", "output", "both"]),
    st.integers(1, 5),
)
def test_any_batch_agrees_with_the_reference(
    documents: list[Document], variant: Variant, size: int
) -> None:
    assert_agrees(build(variant, "gru", ("salience",)), documents, size)


@pytest.mark.parametrize(("variant", "extensions"), EXTENDED)
def test_extensions_agree_with_their_reference(
    variant: Variant, extensions: tuple[Extension, ...]
) -> None:
    # The reference recomputes the states of EntityNLM, so it cannot truncate their gradients.
    size = 20 if "entity-nlm" in extensions else 3
    assert_agrees(build(variant, "attention", extensions), DOCUMENTS, size)


def test_word_attention_has_a_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (context_encoder, extensions_reference):
        monkeypatch.setattr(module, "REACH", 2)
    assert_agrees(build("both", "attention", ("word-attention",)), DOCUMENTS, 3)


@pytest.mark.parametrize("variant", get_args(Variant))
def test_a_projected_lstm_agrees_with_its_reference(variant: Variant) -> None:
    assert_agrees(build(variant, "mean", ("salience", "pointer"), core_dim=7), DOCUMENTS, 3)


@pytest.mark.parametrize(
    ("variant", "extensions"), [*((variant, ()) for variant in get_args(Variant)), *EXTENDED]
)
def test_a_transformer_agrees_with_its_reference(
    variant: Variant, extensions: tuple[Extension, ...]
) -> None:
    tied = variant == "output"
    assert_agrees(build(variant, "gru", extensions, core="transformer", tied=tied), SHORT, 20)


@pytest.mark.parametrize(
    ("core", "variant", "extensions"),
    [
        ("lstm", "baseline", ("salience", "entity-nlm")),
        ("transformer", "both", ("entity-residual", "salience", "unseen-pooling")),
    ],
)
def test_gradients_of_a_later_window_stop_at_its_beginning(
    core: str, variant: Variant, extensions: tuple[Extension, ...]
) -> None:
    """Central differences of the loss, with the state as a constant."""
    model = build(variant, "gru", extensions, core=core)
    state = model.loss(model.plan([LONG[:4]]), model.initial_state(1))[1].after.detach()
    window = model.plan([LONG[4:]])
    backward(model.loss(window, state)[0])

    generator = torch.Generator().manual_seed(1)
    for _ in range(5):
        steps = [
            1e-5 * torch.randn(p.shape, generator=generator, dtype=torch.double)
            for p in model.parameters()
        ]
        pairs = list(zip(model.parameters(), steps, strict=True))
        slope = sum((p.grad * step).sum().item() for p, step in pairs if p.grad is not None)
        losses = []
        with torch.no_grad():
            for sign in (1, -2):
                for p, step in pairs:
                    p.add_(step, alpha=sign)
                losses.append(model.loss(window, state)[0].item())
            for p, step in pairs:
                p.add_(step)
        assert slope == pytest.approx((losses[0] - losses[1]) / 2, rel=1e-6)


class Exchanged(Reference):
    """In the output layer each entity has the state of the next one that was mentioned."""

    def y(self, entities: Mapping[int, Entity]) -> Tensor:
        rows = sorted(entities)
        return super().y({row: entities[rows[i - len(rows) + 1]] for i, row in enumerate(rows)})


@pytest.mark.parametrize("size", [1, 3, 9])
def test_with_exchanged_memories_each_entity_has_the_state_of_the_next_one(size: int) -> None:
    model = build("output")
    expected, _ = Exchanged.of(model).read(LONG, Exchanged.of(model).begin())
    right = score(model, [LONG], size)[0]

    model.exchange_memories = True
    found = score(model, [LONG], size)[0]

    assert found == pytest.approx([value.item() for value in expected], abs=1e-10)
    assert found != pytest.approx(right, abs=1e-3)


@pytest.mark.parametrize(("file", "lines"), [("fast/read.py", 150), ("reference.py", 200)])
def test_the_papers_files_are_short_and_name_no_extension(file: str, lines: int) -> None:
    text = (Path(dntm.model.__path__[0]) / file).read_text(encoding="utf-8").lower()

    assert len(text.splitlines()) <= lines
    words = text.replace("_", " ").replace("-", " ")
    assert not [name for name in get_args(Extension) if name.replace("-", " ") in words]


def test_paper_parameters_have_the_papers_names() -> None:
    lstms = ("lstm", "encoder.forward_lstm", "encoder.backward_lstm")
    expected = {f"{lstm}.{name}" for lstm in lstms for name in ("W_ih", "W_hh", "b")}
    expected |= {"x.weight", "x.W_dx", "encoder.W_hd", "encoder.b_d", "merging.W", "merging.U"}
    expected |= {"merging.b", "output.y.weight", "output.y.W_dy", "output.b"}

    assert set(build().paper_parameters()) == expected
