"""A sampled output layer estimates the loss of the whole one."""

import torch

from dntm.model.output_layer import OutputLayer

ROWS, ENTITIES = 400, 5


def layer() -> tuple[OutputLayer, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    made = OutputLayer(ROWS, 12, None).double()
    made.reset_parameters(generator)
    torch.nn.init.normal_(made.y.weight, std=0.5, generator=generator)
    h = torch.randn(6, 12, generator=generator, dtype=torch.double)
    dynamic = torch.randn(6, ENTITIES, generator=generator, dtype=torch.double)
    return made, h, dynamic, torch.tensor([3, 9, 390, 150, 7, 390])


def test_enough_rows_are_all_rows() -> None:
    made, _, _, targets = layer()

    assert made.sample(targets, 0, ENTITIES) is None
    assert made.sample(targets, ROWS, ENTITIES) is None


def test_a_sample_holds_the_frequent_rows_the_targets_and_as_many_others() -> None:
    made, _, _, targets = layer()

    rows = made.sample(targets, 100, ENTITIES, torch.Generator().manual_seed(2))

    assert rows is not None
    assert rows.rows.tolist() == sorted(set(rows.rows.tolist()))
    assert set(range(50)) | set(targets.tolist()) <= set(rows.rows.tolist())
    assert len(rows.rows) == 50 + 2 + 50
    torch.testing.assert_close(rows.log_weight.exp().sum(), torch.tensor(float(ROWS)).double())


def test_samples_average_to_the_loss_and_gradient_of_all_rows() -> None:
    made, h, dynamic, targets = layer()
    h.requires_grad_()
    whole = made.loss(h, dynamic, targets)
    whole.backward()  # type: ignore[no-untyped-call]
    expected, h.grad = h.grad, None
    generator = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(300):
        sampled = made.loss(h, dynamic, targets, made.sample(targets, 200, ENTITIES, generator))
        (sampled / 300).backward()  # type: ignore[no-untyped-call]
        losses.append(sampled.item())

    assert abs(sum(losses) / 300 - whole.item()) < 0.02 * whole.item()
    assert h.grad is not None
    assert expected is not None
    assert (h.grad - expected).norm() < 0.05 * expected.norm()
