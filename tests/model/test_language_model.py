"""What holds of every model, whatever its core and its extensions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.config import Extension, ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.scorer import Scorer
from dntm.model.state import State
from tests.model.small import (
    ALL_EXTENSIONS,
    BOS,
    CORES,
    EOS,
    A,
    B,
    C,
    Document,
    assert_distributions,
    assert_prefixes_predict_like_the_sentence,
    backward,
    build,
    score,
)

LONG: Document = [
    [BOS, 7, A, 8, 9, A, B, EOS],
    [BOS, 9, 10, EOS],
    [BOS, B, 7, EOS],
    [BOS, A, 8, B, 8, A, A, 9, EOS],
    [BOS, 11, C, EOS],
]
DOCUMENTS: list[Document] = [
    [[BOS, A, 7, EOS], [BOS, 8, A, 9, EOS]],
    LONG,
    [],
    [[BOS, 11, A, 10, EOS]],
]
MODELS: list[tuple[str, Variant, tuple[Extension, ...]]] = [
    (core, variant, extensions)
    for core in CORES
    for variant in ("baseline", "both")
    for extensions in ((), ALL_EXTENSIONS[variant])
]
every_model = pytest.mark.parametrize(("core", "variant", "extensions"), MODELS)


@every_model
def test_a_document_reads_the_same_in_any_windows_and_any_batch(
    core: str, variant: Variant, extensions: Sequence[Extension]
) -> None:
    model = build(variant, "mean", extensions, core=core)
    alone = [score(model, [document], 1)[0] for document in DOCUMENTS]

    for size in (2, 20):
        for found, expected in zip(score(model, DOCUMENTS[::-1], size), alone[::-1], strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12)


@every_model
def test_distributions_sum_to_one_and_hold_the_scores(
    core: str, variant: Variant, extensions: Sequence[Extension]
) -> None:
    assert_distributions(build(variant, "gru", extensions, core=core), LONG)


@every_model
def test_nothing_depends_on_later_tokens(
    core: str, variant: Variant, extensions: Sequence[Extension]
) -> None:
    model = build(variant, "max", extensions, core=core)
    positions = range(sum(map(len, LONG)))
    changed = [*LONG[:3], [BOS, A, 8, C, 8, A, A, 9, EOS], LONG[4]]

    before, after = (
        model.log_distribution(model.plan([text]), model.initial_state(1), positions)[1]
        for text in (LONG, changed)
    )

    place = sum(map(len, LONG[:3])) + 3
    torch.testing.assert_close(after[:place], before[:place])
    assert not any(torch.allclose(*rows) for rows in zip(after[place:], before[place:], strict=True))
    _, state = model.score(model.plan([LONG[:3]]), model.initial_state(1))
    assert_prefixes_predict_like_the_sentence(model, LONG[3], state)


@every_model
def test_selected_documents_continue_alone_and_more_than_once(
    core: str, variant: Variant, extensions: Sequence[Extension]
) -> None:
    model = build(variant, "attention", extensions, core=core)
    first, then = [[LONG[0]], [[BOS, 7, EOS]], [LONG[3]]], [[LONG[2]], [[BOS, 8, EOS]], [LONG[4]]]
    _, state = model.score(model.plan(first), model.initial_state(3))

    together, _ = model.score(model.plan(then), state)
    alone, _ = model.score(model.plan([then[2], then[0], then[2]]), state.select([2, 0, 2]))

    for found, document in zip(alone, (2, 0, 2), strict=True):
        np.testing.assert_allclose(found, together[document], atol=1e-12)


@every_model
def test_every_parameter_gets_a_gradient(
    core: str, variant: Variant, extensions: Sequence[Extension]
) -> None:
    model = build(variant, "gru", extensions, core=core)
    backward(model.loss(model.plan([LONG]), model.initial_state(1))[0])

    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}

    assert without == ({"terms.naming.s"} if "naming" in extensions else set())


@every_model
def test_documents_without_sentences_have_no_tokens(
    core: str, variant: Variant, extensions: Sequence[Extension]
) -> None:
    model = build(variant, "gru", extensions, core=core)

    loss, _ = model.loss(model.plan([[], []]), model.initial_state(2))
    scores, _ = model.score(model.plan([[], []]), model.initial_state(2))

    assert loss.item() == 0
    assert [len(values) for values in scores] == [0, 0]


@pytest.mark.parametrize("core", CORES)
def test_the_memory_learns_which_word_belongs_to_an_entity(core: str) -> None:
    """The core forgets the first sentence, so without d_e four words would be equally likely."""
    sizes = {"embedding_dim": 16, "hidden_dim": 16, "encoder_dim": 8, "context_dim": 16}
    model = build("both", "gru", core=core, **sizes)
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
    free, frozen = build("both", "gru"), build("both", "gru")
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
    double, single = (build("both", "gru-relu", core=core) for _ in range(2))
    single.float()

    losses = [m.loss(m.plan(DOCUMENTS), m.initial_state(4))[0] for m in (single, double)]
    for loss in losses:
        backward(loss)

    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-4)
    for (name, low), high in zip(single.named_parameters(), double.parameters(), strict=True):
        assert low.grad is not None, name
        assert high.grad is not None, name
        assert (low.grad - high.grad).norm() <= 1e-4 * high.grad.norm(), name


@pytest.mark.parametrize("positions", [[3, 2], [-1], [99]])
def test_positions_must_rise_within_the_window(positions: list[int]) -> None:
    model = build("both", "gru")

    with pytest.raises(ValueError, match="positions"):
        model.log_distribution(model.plan([LONG]), model.initial_state(1), positions)


@pytest.mark.parametrize("core", CORES)
def test_dropout_acts_in_training_only_and_repeats_with_its_seed(core: str) -> None:
    for place in ("dropout_embedding", "dropout_hidden", "dropout_context"):
        model = build("both", "gru", core=core, **{place: 0.5})
        window, state = model.plan([LONG]), model.initial_state(1)

        def nats(seed: int) -> float:
            return model.loss(window, state, torch.Generator().manual_seed(seed))[0].item()  # noqa: B023

        assert nats(1) == nats(1) != nats(2)
        model.eval()
        assert nats(1) == nats(2)
    model, generator = build("both", "gru", core=core), torch.Generator().manual_seed(1)
    before = generator.get_state()
    model.train().loss(model.plan([LONG]), model.initial_state(1), generator)
    assert torch.equal(generator.get_state(), before)


def test_the_same_seed_gives_the_same_model() -> None:
    config = build("both", "gru").config
    one, same, other = (
        DynamicTextModel(config, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )

    assert torch.equal(one.x.weight, same.x.weight)
    assert not torch.equal(one.x.weight, other.x.weight)


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_a_transformer_has_as_many_parameters_as_the_lstm(layers: int) -> None:
    lstm = ModelConfig(embedding_dim=256, hidden_dim=256, tied=True)

    ours = parameter_count(replace(lstm, core="transformer", layers=layers))

    assert abs(ours / parameter_count(lstm) - 1) < 0.001


@pytest.mark.parametrize("core", CORES)
def test_embeddings_after_each_mention_are_the_equations(core: str) -> None:
    model = build("both", "gru", core=core)
    scorer = Scorer(model, Vocabulary(tuple("abcdef"), entities=3))

    [found] = scorer.mention_embeddings([LONG])

    expected, state = [], model.initial_state(1)
    for sentence in LONG:
        merges = [row for row in sentence if row in (A, B, C)]
        _, state = model.score(model.plan([[sentence]]), state)
        expected += [(row, state.memory.d[0, row - A]) for row in dict.fromkeys(merges)]
    last = [len(found.row) - 1 - found.row[::-1].tolist().index(row) for row in (A, B, C)]
    known = dict(expected)
    for index, row in zip(last, (A, B, C), strict=True):
        x = model.x.weight[row] + model.x.W_dx @ known[row]  # type: ignore[operator]
        y = model.output.weight[row] + model.W_dy @ known[row]  # type: ignore[operator]
        torch.testing.assert_close(found.x[index], x)
        torch.testing.assert_close(found.y[index], y)
    assert found.row.tolist() == [row for s in LONG for row in s if row in (A, B, C)]


def test_a_scorer_leaves_the_model_in_its_mode() -> None:
    model = build("both", "gru", dropout_hidden=0.5).train()
    scorer = Scorer(model, Vocabulary(tuple("abcdef"), entities=3))
    texts = [AnonymizedDocument(name="t", sentences=[["a", 1], [1, "b"]])]

    one, other = (next(scorer.score(texts)) for _ in range(2))

    assert model.training
    np.testing.assert_array_equal(one, other)
