"""Properties of every model, whatever its core and its extensions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.config import Extension, ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.parameters import State
from dntm.model.scorer import Scorer
from tests.model.small import ALL_EXTENSIONS, CORES, backward, build, reference_of, score
from tests.model.texts import BOS, DOCUMENTS, EOS, LONG, A, B, C

VOCABULARY = Vocabulary(tuple("abcdef"), entities=3)
every_model = pytest.mark.parametrize(
    "settings",
    [
        {"core": core, "variant": variant, "extensions": extensions}
        for core in CORES
        for variant in ("baseline", "both")
        for extensions in ((), ALL_EXTENSIONS[variant])
    ],
)


@every_model
def test_distributions_sum_to_one_and_hold_the_scores(settings: dict[str, Any]) -> None:
    model = build(**settings)
    window, state = model.plan(DOCUMENTS), model.initial_state(len(DOCUMENTS))
    scores, _ = model.score(window, state)

    _, log_p, _ = model.log_distribution(window, state, window.layout.predicting.tolist())

    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(len(log_p)).double())
    own = log_p[range(len(log_p)), window.layout.targets]
    np.testing.assert_allclose(own.numpy(), np.concatenate(scores), atol=1e-12)


@every_model
def test_nothing_depends_on_later_tokens(settings: dict[str, Any]) -> None:
    model = build(merging="max", **settings)
    _, state = model.score(model.plan([LONG[:3]]), model.initial_state(1))
    sentence, changed = LONG[3], [BOS, A, 8, C, 8, A, A, 9, EOS]

    whole, other = (
        model.log_distribution(model.plan([[own]]), state, range(8))[1]
        for own in (sentence, changed)
    )

    torch.testing.assert_close(other[:3], whole[:3])
    assert not any(torch.allclose(*pair) for pair in zip(other[3:], whole[3:], strict=True))
    for length in range(1, 9):
        prefix = model.plan([[sentence[:length]]], [False])
        _, log_p, _ = model.log_distribution(prefix, state, [length - 1])
        torch.testing.assert_close(log_p[0], whole[length - 1])


@pytest.mark.parametrize("core", CORES)
def test_the_memory_learns_which_word_belongs_to_an_entity(core: str) -> None:
    """The core forgets the first sentence, so without d_e four words would be equally likely."""
    sizes = {"embedding_dim": 16, "hidden_dim": 16, "encoder_dim": 8, "context_dim": 16}
    model = build(merging="gru", core=core, **sizes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    window = model.plan([[[BOS, A, word, EOS]] for word in (8, 9, 10, 11)])

    for _ in range(40):
        _, read = model.loss(window, model.initial_state(4))
        state = State(model.core.initial(4), read.after.memory, read.after.terms)
        nats, _ = model.loss(window, state)
        optimizer.zero_grad()
        backward(nats)
        optimizer.step()

    assert nats.item() / 4 < 0.1 * np.log(4)


def test_a_frozen_encoder_gets_no_gradient_and_changes_no_other() -> None:
    free, frozen = build(), build()
    frozen.freeze_encoder()

    for model in (free, frozen):
        backward(model.loss(model.plan(DOCUMENTS), model.initial_state(len(DOCUMENTS)))[0])

    of_free = free.paper_parameters()
    for name, parameter in frozen.paper_parameters().items():
        if name.startswith("encoder."):
            assert parameter.grad is None
        else:
            torch.testing.assert_close(parameter.grad, of_free[name].grad, atol=1e-12, rtol=0)


@pytest.mark.parametrize("core", CORES)
def test_single_precision_agrees_with_double_precision(core: str) -> None:
    single, double = build(core=core).float(), build(core=core)

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


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("place", ["dropout_embedding", "dropout_hidden", "dropout_context"])
def test_dropout_acts_in_training_only_and_repeats_with_its_seed(core: str, place: str) -> None:
    model = build(core=core, **{place: 0.5})
    window, state = model.plan([LONG]), model.initial_state(1)

    def nats(seed: int) -> float:
        return model.loss(window, state, torch.Generator().manual_seed(seed))[0].item()

    assert nats(1) == nats(1) != nats(2)
    model.eval()
    assert nats(1) == nats(2)


def test_a_scorer_has_no_dropout_and_leaves_the_model_in_its_mode() -> None:
    model = build(dropout_hidden=0.5).train()
    texts = [AnonymizedDocument(name="t", sentences=[["a", 1], [1, "b"]])]

    one, other = (next(Scorer(model, VOCABULARY).score(texts)) for _ in range(2))

    assert model.training
    np.testing.assert_array_equal(one, other)


def test_embeddings_after_each_mention_are_those_of_the_reference() -> None:
    model = build()
    reference = reference_of(model)
    text = [[BOS, 7, A, EOS], [BOS, B, 8, A, EOS], *[[BOS, 9, EOS]] * 40, [BOS, A, 7, EOS]]

    found, short = Scorer(model, VOCABULARY).mention_embeddings([text, text[:2]])

    assert found.row.tolist() == [A, B, A, A]
    state, x = reference.begin(), iter(found.x)
    for sentence in text:
        _, state = reference.read([sentence], state)
        for row in filter(reference.is_entity, sentence):
            torch.testing.assert_close(next(x), reference.x(row, state.entities))
    torch.testing.assert_close(short.x, found.x[:3])


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_a_transformer_has_as_many_parameters_as_the_lstm(layers: int) -> None:
    lstm = ModelConfig(embedding_dim=256, hidden_dim=256, tied=True)

    ours = parameter_count(replace(lstm, core="transformer", layers=layers))

    assert abs(ours / parameter_count(lstm) - 1) < 0.001


@pytest.mark.parametrize("variant", ["baseline", "both"])
@pytest.mark.parametrize("part", ["pointer", "salience", "unseen-pooling"])
def test_a_model_without_an_extension_equals_one_built_without_it(
    variant: Variant, part: Extension
) -> None:
    model = build(variant, "gru-relu", ALL_EXTENSIONS[variant])
    kept = tuple(name for name in model.config.extensions if name != part)
    built = DynamicTextModel(replace(model.config, extensions=kept)).double()
    built.load_state_dict(model.state_dict(), strict=False)

    found = score(model.without([part]), DOCUMENTS, 2)

    assert found == score(built, DOCUMENTS, 2)
    assert found != score(model, DOCUMENTS, 2)


@pytest.mark.parametrize("core", CORES)
def test_a_model_without_memory_has_no_states(core: str) -> None:
    model = build("both", "gru-relu", ALL_EXTENSIONS["both"], core=core)
    found = score(model.without(["memory"]), [LONG], 2)
    before = score(model, [LONG], 2)
    with torch.no_grad():  # every d is zero
        for name in ("x.W_dx", "terms.dynamic-output.W_dy", "terms.entity-residual.W_dh"):
            model.get_parameter(name).zero_()

    assert found[0] == pytest.approx(score(model, [LONG], 2)[0], abs=1e-12)
    assert found != before


def test_weights_are_shared_and_other_parts_are_named_in_the_error() -> None:
    model = build("input", "max", ("pointer", "salience"))
    other = model.without(["pointer"])

    assert other.x.weight is model.x.weight
    assert other.terms["salience"] is model.terms["salience"]
    assert model.without([]) is model
    with pytest.raises(ValueError, match=r"'naming'.*memory, salience, pointer"):
        model.without(["naming"])
