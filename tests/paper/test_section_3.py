"""Claims of Section 3 that can be checked on any model."""

from typing import get_args

import pytest
import torch
from torch import Tensor

from dntm.model.config import Merging
from tests.model.small import build, score
from tests.model.texts import BOS, EOS, A, B, C

MERGINGS = get_args(Merging)


@pytest.mark.parametrize("merging", MERGINGS)
def test_before_its_first_context_an_entity_has_its_static_embeddings(merging: Merging) -> None:
    model = build("both", merging)
    nothing = model.initial_state(1).memory.d[0, :1, : model.config.context_dim]

    assert not nothing.any()
    row = torch.tensor([A])
    assert torch.equal(model.x.entity(row, nothing)[0], model.x.weight[A])
    assert torch.equal(model.y_entity(row, nothing)[0], model.output.weight[A])


@pytest.mark.parametrize("merging", MERGINGS)
def test_without_the_dynamic_terms_the_model_is_the_baseline(merging: Merging) -> None:
    model, baseline = build("both", merging), build("baseline", merging)
    with torch.no_grad():
        for matrix in (model.x.W_dx, model.W_dy):
            assert matrix is not None
            matrix.zero_()
    baseline.load_state_dict(model.state_dict(), strict=False)
    document = [[BOS, A, 7, EOS], [BOS, 8, A, B, EOS], [BOS, B, A, 9, EOS]]

    [found], [expected] = (score(m, [document], 3) for m in (model, baseline))

    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("position", [1, 2, 3, 4])
def test_the_mention_itself_is_never_read(position: int) -> None:
    sentence = [BOS, 6, 7, 8, 9, EOS]
    sentence[position] = A

    def context(changed: int) -> Tensor:
        model = build("input", "latest")
        with torch.no_grad():
            model.x.weight[changed] += 7
        return model.score(model.plan([[sentence]]), model.initial_state(1))[1].memory.d[0, 0]

    unchanged = context(C)
    assert torch.equal(context(A), unchanged)
    for neighbor in {*sentence} - {A}:
        assert not torch.equal(context(neighbor), unchanged)


@pytest.mark.parametrize("merging", MERGINGS)
def test_an_entity_that_does_not_appear_keeps_its_state(merging: Merging) -> None:
    model = build("both", merging)
    _, first = model.score(model.plan([[[BOS, A, 7, B, EOS]]]), model.initial_state(1))

    _, then = model.score(model.plan([[[BOS, 8, B, EOS], [BOS, 9, EOS]]]), first)

    assert torch.equal(then.memory.d[0, A - 3], first.memory.d[0, A - 3])
    assert not torch.equal(then.memory.d[0, B - 3], first.memory.d[0, B - 3])
    assert torch.equal(then.memory.d[0, C - 3], model.initial_state(1).memory.d[0, C - 3])


def test_the_latest_context_alone_makes_the_latest_representation() -> None:
    model = build("output", "latest")
    sentence = [BOS, 7, A, 9, EOS]

    _, once = model.score(model.plan([[sentence]]), model.initial_state(1))
    _, twice = model.score(model.plan([[[BOS, 8, 8, A, EOS], sentence]]), model.initial_state(1))

    torch.testing.assert_close(twice.memory.d[0, 0], once.memory.d[0, 0])


def test_max_pooling_never_loses_what_it_has_seen() -> None:
    model = build("both", "max")
    _, once = model.score(model.plan([[[BOS, 7, A, EOS]]]), model.initial_state(1))

    _, twice = model.score(model.plan([[[BOS, A, 9, 10, EOS]]]), once)

    assert (twice.memory.d[0, 0] >= once.memory.d[0, 0]).all()


def test_dynamic_input_reaches_only_what_follows_the_entity() -> None:
    """The embeddings of a sentence come from the sentences before it, and only entities' change."""
    static, dynamic = build("baseline", "gru"), build("input", "gru")
    static.load_state_dict(dynamic.state_dict(), strict=False)
    document = [[BOS, 7, A, 8, EOS], [BOS, 9, A, 10, EOS]]

    [ours], [baseline] = (score(m, [document], 2) for m in (dynamic, static))

    assert ours[:6] == pytest.approx(baseline[:6], abs=1e-12)
    assert all(abs(a - b) > 1e-6 for a, b in zip(ours[6:], baseline[6:], strict=True))
