"""Exchanged memories against the reference with its entities exchanged."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from dntm.model.reference import Entity, Reference
from tests.model.small import LONG, build, score


class Exchanged(Reference):
    """In the output layer each entity has the state of the next one that was mentioned."""

    def y(self, entities: Mapping[int, Entity]) -> Tensor:
        rows = sorted(entities)
        return super().y({row: entities[rows[i - len(rows) + 1]] for i, row in enumerate(rows)})


@pytest.mark.parametrize("size", [1, 3, 9])
def test_each_entity_has_the_state_of_the_next_one(size: int) -> None:
    model = build("output")
    with torch.no_grad():
        expected, _ = Exchanged.of(model).read(LONG, Exchanged.of(model).begin())
    right = score(model, [LONG], size)[0]

    model.exchange_memories = True
    found = score(model, [LONG], size)[0]

    assert found == pytest.approx([float(value) for value in expected], abs=1e-10)
    assert found != pytest.approx(right, abs=1e-3)
