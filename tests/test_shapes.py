"""Shapes in signatures are checked by the tests, wherever they are written."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

import dntm
from dntm.corpus.vectors import resized
from dntm.evaluation.meaning import spearman
from dntm.evaluation.ranks import cosine_ranks
from dntm.model.dynamic_embedding import DynamicEmbedding
from dntm.model.fast.layout import lay_out_ragged

SOURCE = Path(dntm.__file__).parent
ANNOTATED = [
    ".".join(("dntm", *path.relative_to(SOURCE).with_suffix("").parts))
    for path in sorted(SOURCE.rglob("*.py"))
    if "jaxtyping" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", ANNOTATED)
def test_a_module_with_shapes_is_loaded_with_their_check(name: str) -> None:
    loader = type(importlib.import_module(name).__loader__)

    assert loader.__module__.startswith("jaxtyping")


def test_another_shape_is_an_error_in_every_package() -> None:
    x = DynamicEmbedding(5, 3, 2)

    for wrong in (
        lambda: resized(np.zeros(3), 2),
        lambda: spearman(np.zeros((2, 2)), np.zeros(2)),
        lambda: cosine_ranks(torch.zeros(2, 3), torch.zeros(4, 5), np.zeros(2, dtype=np.int64)),
        lambda: x.entity(torch.tensor([1, 2]), torch.zeros(3, 2)),
        lambda: lay_out_ragged(np.zeros((2, 2), dtype=np.int64)),
    ):
        with pytest.raises(TypeCheckError):
            wrong()
