"""The output layer against a plain softmax, block by block and with sampled rows."""

import pytest
import torch
from torch import Tensor

from dntm.corpus.vocabulary import entity_rows
from dntm.model import output_layer
from dntm.model.fast.recurrence import linear
from dntm.model.output_layer import MASKED, CopyLogits, OutputLayer, Query
from tests.model.small import backward

ROWS, ENTITIES = 400, 5
TARGETS = torch.tensor([3, 9, 390, 150, 7, 390])


def draw(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.double).requires_grad_()


def layer() -> OutputLayer:
    made = OutputLayer(ROWS, 12).double()
    torch.nn.init.normal_(made.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    torch.nn.init.normal_(made.b, generator=torch.Generator().manual_seed(2))
    return made


def inputs(*, copies: bool) -> tuple[Query, list[Tensor]]:
    """A query and what it depends on; the copies are of two documents, one of them without any."""
    h, extra, logits = draw(6, 12, seed=3), draw(6, ENTITIES, seed=4), draw(4, 5, seed=5)
    if not copies:
        return Query(h, extra), [h, extra]
    rows = torch.tensor([9, 390, 9, -1, 3])
    masked = logits.masked_fill(rows < 0, MASKED)
    none = (torch.zeros(2, 0).double(), torch.tensor([], dtype=torch.long))
    return Query(h, extra, CopyLogits(((masked, rows), none))), [h, extra, logits]


def plain_softmax(made: OutputLayer, query: Query) -> Tensor:
    """Every distribution by its definition, one token and one copy at a time."""
    assert query.entity_logits is not None
    found = []
    for t, h in enumerate(query.h):
        shares = list((made.weight @ h + made.b).exp())
        for row, logit in enumerate(query.entity_logits[t], start=entity_rows(ENTITIES).start):
            shares[row] = shares[row] * logit.exp()
        if query.copies is not None and t < 4:
            logits, rows = query.copies.parts[0]
            for logit, row in zip(logits[t], rows.tolist(), strict=True):
                shares[row] = shares[row] + (logit.exp() if row >= 0 else 0)
        found.append(torch.stack(shares) / torch.stack(shares).sum())
    return torch.stack(found)


@pytest.mark.parametrize("blocks", [(384, 1024), (4, 7)])
@pytest.mark.parametrize("copies", [False, True])
def test_loss_scores_and_distributions_are_those_of_a_plain_softmax(
    blocks: tuple[int, int], monkeypatch: pytest.MonkeyPatch, *, copies: bool
) -> None:
    for name, value in zip(("LOSS_TOKENS", "SCORE_ROWS"), blocks, strict=True):
        monkeypatch.setattr(output_layer, name, value)
    made, (query, learned) = layer(), inputs(copies=copies)
    learned += made.parameters()
    p = plain_softmax(made, query)
    own = p[range(6), TARGETS].log()

    loss, scores = made.loss(query, TARGETS), made.score(query, TARGETS)

    torch.testing.assert_close(loss, -own.sum())
    torch.testing.assert_close(scores.log_p, own.detach())
    torch.testing.assert_close(scores.entropy, -(p * p.log()).sum(1).detach())
    torch.testing.assert_close(made.log_distribution(query).exp(), p.detach())
    grads = torch.autograd.grad(loss, learned, retain_graph=True)
    for found, expected in zip(grads, torch.autograd.grad(-own.sum(), learned), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)


def test_a_sample_holds_the_frequent_rows_the_targets_and_as_many_others() -> None:
    made = layer()

    rows = made.sample(TARGETS, 100, ENTITIES, torch.Generator().manual_seed(2))

    assert rows is not None
    assert rows.rows.tolist() == sorted(set(rows.rows.tolist()))
    assert set(range(50)) | set(TARGETS.tolist()) <= set(rows.rows.tolist())
    assert len(rows.rows) == 50 + 2 + 50
    torch.testing.assert_close(rows.log_weight.exp().sum(), torch.tensor(float(ROWS)).double())
    assert made.sample(TARGETS, 0, ENTITIES) is None
    assert made.sample(TARGETS, ROWS, ENTITIES) is None


def test_samples_average_to_the_loss_and_gradient_of_all_rows() -> None:
    made, (query, [h, _]) = layer(), inputs(copies=False)
    whole = made.loss(query, TARGETS)
    backward(whole)
    expected, h.grad = h.grad, None
    generator = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(300):
        sampled = made.loss(query, TARGETS, made.sample(TARGETS, 200, ENTITIES, generator))
        backward(sampled / 300)
        losses.append(sampled.item())

    assert abs(sum(losses) / 300 - whole.item()) < 0.02 * whole.item()
    assert h.grad is not None
    assert expected is not None
    assert (h.grad - expected).norm() < 0.05 * expected.norm()


def test_linear_is_exact_in_single_precision_and_has_gradients() -> None:
    x, W, b = draw(50, 320, seed=1), draw(600, 320, seed=2), draw(600, seed=3)
    exact = x @ W.t() + b

    with torch.no_grad():
        found = linear(x.float(), W.float(), b.float())
    assert (found - exact).abs().max() < 1e-4, "bfloat16 is off by more than .1"

    single = W.float().detach().requires_grad_()
    backward(linear(x.float(), single, b.float()).sum())
    assert single.grad is not None
    torch.testing.assert_close(single.grad[0], x.sum(0).float())
