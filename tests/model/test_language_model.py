"""The model against the word-by-word oracle, in every variant."""

from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from dntm.model.config import Merging, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.model.reference import Reference, State
from tests.model.small import BOS, EOS, A, B, C, build, oracle_of

Document = list[list[int]]

# Several mentions of an entity in one sentence, an entity back after many sentences, sentences
# without any, documents of one and of no sentence, long silence: rows 3 to 5 are entities.
LONG: Document = [
    [BOS, 7, A, 8, 9, A, B, EOS],
    [BOS, 9, 10, EOS],
    [BOS, B, 7, EOS],
    [BOS, A, 8, B, 8, A, A, 9, EOS],
    [BOS, 11, C, EOS],
    [BOS, C, EOS],
    [BOS, 6, 6, 7, A, 9, 10, C, EOS],
]
DOCUMENTS: list[Document] = [
    [[BOS, A, 7, EOS], [BOS, 8, A, 9, EOS], [BOS, A, A, EOS]],
    LONG,
    [[BOS, 11, A, 10, EOS]],
    [],
    [[BOS, 7, 8, EOS], [BOS, 9, B, A, EOS], [BOS, B, EOS], [BOS, 6, A, B, 10, 11, EOS]],
    [[BOS, A, 7, EOS], *[[BOS, 8, EOS]] * 10, [BOS, B, *[A] * 9, 7, B, EOS]],
]
EVERY = [("baseline", "gru-relu")] + [
    (variant, merging) for variant in ("input", "output", "both") for merging in get_args(Merging)
]


def in_windows(size: int) -> list[tuple[list[Document], list[bool]]]:
    """The documents `size` sentences at a time, and which of them go on afterwards."""
    longest = max(len(document) for document in DOCUMENTS)
    return [
        ([d[start : start + size] for d in DOCUMENTS], [len(d) > start + size for d in DOCUMENTS])
        for start in range(0, longest, size)
    ]


def oracle_log_p(oracle: Reference, size: int) -> list[list[Tensor]]:
    """Log-probabilities of each document, truncated after `size` sentences."""
    found: list[list[Tensor]] = []
    for document in DOCUMENTS:
        reading: State = oracle.begin()
        found.append([])
        for start in range(0, len(document), size):
            log_p, reading = oracle.read(document[start : start + size], reading.detach())
            found[-1] += log_p
    return found


@pytest.mark.parametrize(("tied", "beyond"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(("variant", "merging"), EVERY)
def test_log_probabilities_are_the_oracles(
    variant: Variant, merging: Merging, tied: bool, beyond: bool
) -> None:
    model = build(variant, merging, tied=tied, beyond=beyond)
    expected = oracle_log_p(oracle_of(model), size=3)

    state = model.initial_state(len(DOCUMENTS))
    found: list[list[float]] = [[] for _ in DOCUMENTS]
    for documents, continues in in_windows(3):
        scores, state = model.score(model.plan(documents, continues), state)
        for document, values in zip(found, scores, strict=True):
            document.extend(values)

    for document, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(document, [v.item() for v in wanted], atol=1e-9, rtol=0)


def backward(value: Tensor) -> None:
    value.backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("size", "tied", "beyond"), [(2, False, False), (7, True, False), (3, True, True)]
)
@pytest.mark.parametrize(("variant", "merging"), EVERY)
def test_gradients_of_all_parameters_are_the_oracles(
    variant: Variant, merging: Merging, tied: bool, size: int, beyond: bool
) -> None:
    model = build(variant, merging, tied=tied, beyond=beyond)
    oracle = oracle_of(model)
    log_p = torch.stack([v for document in oracle_log_p(oracle, size) for v in document])
    backward(-log_p.sum())

    state = model.initial_state(len(DOCUMENTS))
    nats, tokens = 0.0, 0
    for documents, continues in in_windows(size):
        loss, count, state = model.loss(model.plan(documents, continues), state.detach())
        backward(loss)
        nats, tokens = nats + loss.item(), tokens + count

    assert tokens == len(log_p)
    assert nats == pytest.approx(-log_p.sum().item(), abs=1e-9)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, oracle.p[name].grad, atol=1e-7, rtol=0)


def test_gradients_pass_through_a_state_that_was_not_detached() -> None:
    model = build("both", "gru-relu")
    oracle = oracle_of(model)
    backward(-torch.stack(oracle.read(LONG, oracle.begin())[0]).sum())

    first, _, state = model.loss(model.plan([LONG[:3]]), model.initial_state(1))
    second, _, _ = model.loss(model.plan([LONG[3:]], [False]), state)
    backward(first + second)

    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, oracle.p[name].grad, atol=1e-9, rtol=0)


def test_a_frozen_encoder_gets_no_gradient_and_changes_no_other() -> None:
    free, frozen = build("both", "gru"), build("both", "gru")
    frozen.freeze_encoder()

    for model in (free, frozen):
        backward(model.loss(model.plan(DOCUMENTS), model.initial_state(len(DOCUMENTS)))[0])

    of_free = dict(free.named_parameters())
    for name, parameter in frozen.named_parameters():
        if name.startswith("encoder."):
            assert parameter.grad is None
        else:
            torch.testing.assert_close(parameter.grad, of_free[name].grad, atol=1e-12, rtol=0)


def test_single_precision_agrees_with_double_precision() -> None:
    double, single = build("both", "gru-relu"), build("both", "gru-relu").float()

    losses = [
        m.loss(m.plan(DOCUMENTS), m.initial_state(len(DOCUMENTS)))[0] for m in (single, double)
    ]
    for loss in losses:
        backward(loss)

    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-4)
    for (name, low), high in zip(single.named_parameters(), double.parameters(), strict=True):
        assert low.grad is not None, name
        assert high.grad is not None, name
        assert (low.grad - high.grad).norm() <= 1e-4 * high.grad.norm(), name


def test_the_order_of_documents_changes_no_score() -> None:
    model = build("both", "mean")

    ahead, _ = model.score(model.plan(DOCUMENTS), model.initial_state(len(DOCUMENTS)))
    back, _ = model.score(model.plan(DOCUMENTS[::-1]), model.initial_state(len(DOCUMENTS)))

    for one, other in zip(ahead, back[::-1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_selected_documents_read_on_alone() -> None:
    model = build("both", "attention")
    first = [[LONG[0]], [[BOS, 7, EOS]], [LONG[3]]]
    then: list[Document] = [[LONG[2]], [[BOS, 8, EOS]], [LONG[6]]]
    _, state = model.score(model.plan(first), model.initial_state(3))

    together, _ = model.score(model.plan(then), state)
    alone, _ = model.score(model.plan([then[2], then[0]]), state.select([2, 0]))

    np.testing.assert_allclose(alone[0], together[2], atol=1e-12)
    np.testing.assert_allclose(alone[1], together[0], atol=1e-12)


@pytest.mark.parametrize("variant", ["baseline", "input", "output", "both"])
def test_distributions_sum_to_one_and_hold_the_scores(variant: Variant) -> None:
    model = build(variant, "gru-relu")
    window = model.plan(DOCUMENTS)
    scores, _ = model.score(window, model.initial_state(len(DOCUMENTS)))
    positions = window.layout.predicting.tolist()

    h, log_p, _ = model.log_distribution(window, model.initial_state(len(DOCUMENTS)), positions)

    assert h.shape == (len(positions), model.config.hidden_dim)
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(len(positions)).double())
    picked = log_p[torch.arange(len(positions)), torch.from_numpy(window.layout.targets)]
    np.testing.assert_allclose(picked.numpy(), np.concatenate(scores), atol=1e-12)


def test_an_unfinished_sentence_has_a_next_token() -> None:
    model = build("both", "gru")
    whole = model.plan([[[BOS, A, 7, EOS], [BOS, 8, A, EOS]]], [False])
    begun = model.plan([[[BOS, A, 7, EOS], [BOS, 8, A]]], [False])

    _, expected, _ = model.log_distribution(whole, model.initial_state(1), [6])
    _, found, _ = model.log_distribution(begun, model.initial_state(1), [6])

    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("positions", [[3, 2], [-1], [99]])
def test_positions_must_rise_within_the_window(positions: list[int]) -> None:
    model = build("both", "gru")

    with pytest.raises(ValueError, match="positions"):
        model.log_distribution(model.plan([LONG]), model.initial_state(1), positions)


@pytest.mark.parametrize("beyond", [False, True])
def test_no_document_at_all_has_no_tokens(*, beyond: bool) -> None:
    model = build("both", "gru", beyond=beyond)

    loss, tokens, state = model.loss(model.plan([[], []]), model.initial_state(2))
    scores, _ = model.score(model.plan([[], []]), model.initial_state(2))

    assert (loss.item(), tokens) == (0, 0)
    assert not state.h.any()
    assert [len(values) for values in scores] == [0, 0]


def test_without_dropout_no_random_number_is_drawn() -> None:
    model, generator = build("both", "gru"), torch.Generator().manual_seed(1)
    before = generator.get_state()

    model.train().loss(model.plan([LONG]), model.initial_state(1), generator)

    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize("place", ["dropout_embedding", "dropout_hidden", "dropout_context"])
def test_dropout_changes_training_only_and_repeats_with_its_seed(place: str) -> None:
    model = build("both", "gru", dropouts={place: 0.5})
    window, state = model.plan([LONG]), model.initial_state(1)

    def nats(seed: int) -> float:
        return model.loss(window, state, torch.Generator().manual_seed(seed))[0].item()

    assert nats(1) == nats(1) != nats(2)
    model.eval()
    assert nats(1) == nats(2)


def test_the_same_seed_gives_the_same_model() -> None:
    config = build("both", "gru").config
    one, same, other = (
        DynamicTextModel(config, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )

    assert torch.equal(one.x.weight, same.x.weight)
    assert not torch.equal(one.x.weight, other.x.weight)
