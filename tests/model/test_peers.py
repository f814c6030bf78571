"""The Transformer, the model after EntityNLM, and dynamic evaluation, each by its definition."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.config import Kind, ModelConfig
from dntm.model.dynamic_evaluation import DynamicEvaluation, tune
from dntm.model.fast.window import windows
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.text_model import TextModel
from tests.model.small import BOS, EOS, A, B, C, build

VOCABULARY = Vocabulary(("a", "b", "c", "d", "e", "f"), entities=3)
LONG = [
    [BOS, 7, A, 8, 9, A, B, EOS],
    [BOS, 9, 10, EOS],
    [BOS, B, 7, EOS],
    [BOS, A, 8, B, 8, A, A, 9, EOS],
    [BOS, 11, C, EOS],
]
DOCUMENTS = [[[BOS, A, 7, EOS], [BOS, 8, A, 9, EOS]], LONG, [[BOS, 11, A, 10, EOS]]]
TEXT = AnonymizedDocument(
    name="t", sentences=[[1, "a", "b"], ["c", 2, "a"], [1, "a", 2], ["b", 1, "a", "b"]]
)


def peer(
    kind: Kind, *, layers: int = 2, salience: bool = False, pointer: bool = False
) -> DynamicTextModel:
    """A peer whose parameters are all large enough to matter."""
    config = ModelConfig(
        kind=kind,
        vocabulary=12,
        entities=3,
        embedding_dim=16,
        hidden_dim=16,
        layers=layers,
        heads=2,
        salience=salience,
        newcomer=salience,
        pointer=pointer,
    )
    generator = torch.Generator().manual_seed(5)
    model = DynamicTextModel(config, generator).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return model.eval()


def scored(
    model: DynamicTextModel, documents: list[list[list[int]]], size: int
) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in documents]
    state = model.initial_state(len(documents))
    for text in windows(documents, size):
        scores, state = model.score(model.plan(text.sentences), state.select(text.kept))
        for document, values in zip(text.documents, scores, strict=True):
            found[document] += values.tolist()
    return found


@pytest.mark.parametrize("pointer", [False, True])
@pytest.mark.parametrize("kind", ["transformer", "entity-nlm"])
def test_a_document_reads_the_same_in_any_window_and_company(kind: Kind, *, pointer: bool) -> None:
    model = peer(kind, pointer=pointer)
    alone = [scored(model, [document], 1)[0] for document in DOCUMENTS]

    for size in (2, 20):
        for ours, theirs in zip(scored(model, DOCUMENTS, size), alone, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("pointer", [False, True])
@pytest.mark.parametrize("kind", ["transformer", "entity-nlm"])
def test_what_comes_later_changes_nothing_before_it(kind: Kind, *, pointer: bool) -> None:
    model = peer(kind, pointer=pointer)
    changed = [list(sentence) for sentence in LONG]
    changed[3][3] = C  # position 3 of sentence 3; 14 tokens are predicted before it
    before = sum(len(sentence) - 1 for sentence in LONG[:3]) + 2

    [one], [two] = scored(model, [LONG], 20), scored(model, [changed], 20)

    assert one[:before] == two[:before]
    assert all(a != b for a, b in zip(one[before:], two[before:], strict=True))


@pytest.mark.parametrize("kind", ["transformer", "entity-nlm"])
@pytest.mark.parametrize("salience", [False, True])
def test_distributions_sum_to_one(kind: Kind, *, salience: bool) -> None:
    model = peer(kind, salience=salience)
    window = model.plan([LONG])
    positions = range(sum(map(len, LONG)))

    _, log_p, _ = model.log_distribution(window, model.initial_state(1), positions)

    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(len(positions)).double())


@pytest.mark.parametrize("kind", ["transformer", "entity-nlm"])
def test_every_parameter_is_learned(kind: Kind) -> None:
    model = peer(kind)
    first, _, state = model.loss(model.plan([LONG[:3]]), model.initial_state(1))
    second, _, _ = model.loss(model.plan([LONG[3:]]), state)

    (first + second).backward()  # type: ignore[no-untyped-call]

    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_the_transformer_is_what_a_plain_loop_over_its_tokens_says() -> None:
    model = peer("transformer")
    core = model.transformer
    assert core is not None
    rows = [row for sentence in LONG for row in sentence]
    x = [model.x.weight[row] for row in rows]
    heads, width = 2, 8
    for layer in range(2):
        qkv = [
            core.W_qkv[layer] @ norm(core.norms[2 * layer].get_parameter("weight"), v) for v in x
        ]
        keys = [turned(v[width : 2 * width].view(heads, -1), t) for t, v in enumerate(qkv)]
        for t, v in enumerate(qkv):
            q = turned(v[:width].view(heads, -1), t)
            found = []
            for head in range(heads):
                scores = torch.stack([q[head] @ keys[i][head] for i in range(t + 1)])
                share = (scores / (width / heads) ** 0.5).softmax(0)
                values = [w[2 * width :].view(heads, -1)[head] for w in qkv[: t + 1]]
                found.append(share @ torch.stack(values))
            x[t] = x[t] + core.W_o[layer] @ torch.cat(found)
        for t, v in enumerate(x):
            inner = core.W_1[layer] @ norm(core.norms[2 * layer + 1].get_parameter("weight"), v)
            x[t] = v + core.W_2[layer] @ torch.nn.functional.gelu(inner, approximate="tanh")
    h = [norm(core.norms[-1].get_parameter("weight"), v) for v in x]

    logits = torch.stack(h) @ model.output.y.weight.t() + model.output.b
    steps = [t for t, (_, row) in enumerate(pairwise(rows)) if row != BOS]
    expected = [float(logits[t].log_softmax(0)[rows[t + 1]].detach()) for t in steps]
    np.testing.assert_allclose(scored(model, [LONG], 2)[0], expected, atol=1e-12)


def norm(weight: Tensor, v: Tensor) -> Tensor:
    return weight * v / ((v**2).mean() + torch.finfo(v.dtype).eps) ** 0.5


def turned(heads: Tensor, t: int) -> Tensor:
    """Each pair of numbers, a half of the head apart, turned as complex numbers are."""
    half = heads.shape[1] // 2
    angle = torch.tensor([t * 10_000.0 ** (-i / half) for i in range(half)]).double()
    both = torch.complex(heads[:, :half], heads[:, half:]) * torch.polar(
        torch.ones(half).double(), angle
    )
    return torch.cat((both.real, both.imag), 1)


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_the_transformer_has_the_parameters_of_the_baseline(layers: int) -> None:
    baseline = ModelConfig(variant="baseline", embedding_dim=256, hidden_dim=256, tied=True)

    ours = parameter_count(replace(baseline, kind="transformer", layers=layers))

    assert abs(ours / parameter_count(baseline) - 1) < 0.001


def test_the_entity_model_is_what_a_plain_loop_says() -> None:
    model = peer("entity-nlm")
    own, expected = model.entity_states, []
    assert own is not None
    h = c = torch.zeros(16).double()
    v: dict[int, Tensor] = {}
    current = torch.zeros(16).double()
    ago: dict[int, int] = {}
    for number, sentence in enumerate(LONG):
        for position, row in enumerate(sentence):
            if position:
                words = h + own.W_c @ current
                logits = model.output.y.weight @ words + model.output.b
                for e, state in v.items():
                    near = own.w * torch.exp(-own.log_r.exp() * (number - ago[e]))
                    logits[e] = logits[e] + h @ own.W_e @ state + near
                expected.append(float(logits.log_softmax(0)[row].detach()))
            gates = model.lstm.W_ih @ model.x.weight[row] + model.lstm.W_hh @ h + model.lstm.b
            i, f, g, o = gates.chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            if row in (A, B, C):
                before = v.get(row, own.v_0)
                delta = torch.sigmoid(h @ own.W_delta @ before)
                moved = delta * before + (1 - delta) * h
                v[row] = current = moved / moved.norm()
                ago[row] = number

    np.testing.assert_allclose(scored(model, [LONG], 2)[0], expected, atol=1e-12)


def test_peers_are_baselines_and_say_what_does_not_fit() -> None:
    assert ModelConfig(kind="transformer").variant == "baseline"
    with pytest.raises(ValueError, match="a Transformer with embedding_dim 8 and hidden_dim 16"):
        ModelConfig(kind="transformer", embedding_dim=8, hidden_dim=16)
    with pytest.raises(ValueError, match="embedding_dim 512 over layers 3"):
        ModelConfig(kind="transformer", layers=3)
    with pytest.raises(ValueError, match="of kind entity-nlm: the cloze test is for kind dntm"):
        next(TextModel(peer("entity-nlm"), VOCABULARY).fill_all([]))


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_dynamic_evaluation_with_rate_zero_is_none(decay: float) -> None:
    model = TextModel(build("both", "gru"), VOCABULARY)

    found = next(DynamicEvaluation(rate=0.0, decay=decay).score_all(model, [TEXT]))

    np.testing.assert_allclose(found, model.score(TEXT), atol=1e-12)


def test_each_document_begins_with_the_trained_weights_and_ends_with_them() -> None:
    model = TextModel(build("both", "gru"), VOCABULARY)
    before = {name: p.detach().clone() for name, p in model.model.named_parameters()}
    setting = DynamicEvaluation(rate=0.5, decay=0.01)

    one, two = setting.score_all(model, [TEXT, TEXT])

    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, model.score(TEXT))
    assert one[:4] == pytest.approx(model.score(TEXT)[:4], abs=1e-12), "nothing was learned yet"
    for name, parameter in model.model.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name], rtol=0, atol=0)


def test_a_step_is_down_the_gradient_and_back_to_the_trained_weights() -> None:
    model = build("baseline", "gru")
    vocabulary = [[VOCABULARY.encode(sentence)] for sentence in TEXT.sentences]
    rate, decay = 0.3, 0.2
    found = next(
        DynamicEvaluation(rate=rate, decay=decay).score_all(TextModel(model, VOCABULARY), [TEXT])
    )

    trained = {name: p.detach().clone() for name, p in model.named_parameters()}
    state, expected = model.initial_state(1), []
    for [sentence] in vocabulary:
        window = model.plan([[sentence]])
        [scores], after = model.score(window, state)
        expected += scores.tolist()
        nats, tokens, _ = model.loss(window, state)
        grads = torch.autograd.grad(nats / tokens, list(model.parameters()))
        norm = torch.stack([g.norm() for g in grads]).norm()
        with torch.no_grad():
            for (name, p), g in zip(model.named_parameters(), grads, strict=True):
                cut = g / max(1.0, float(norm) + 1e-6)
                p.copy_(p - rate * cut + decay * (trained[name] - p))
        state = after

    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_tuning_never_ends_worse_than_it_began() -> None:
    model = TextModel(build("both", "gru"), VOCABULARY)
    texts = [TEXT] * 2

    setting = tune(model, texts)

    ours = sum(scores.sum() for scores in setting.score_all(model, texts))
    assert setting.rate > 0
    assert ours > sum(scores.sum() for scores in model.score_all(texts))
