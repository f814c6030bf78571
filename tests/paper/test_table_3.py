"""Table 3's parameter counts, in millions: all, and those to be finetuned."""

import pytest
import torch

from dntm.model.config import Merging, ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel, parameter_count

TABLE_3: list[tuple[Variant, Merging, str, str]] = [
    ("baseline", "gru-relu", "12.3", "12.3"),
    ("input", "gru-relu", "18.9", "14.2"),
    ("input", "gru", "18.9", "14.2"),
    ("input", "max", "17.3", "12.6"),
    ("input", "latest", "17.3", "12.6"),
    ("output", "gru-relu", "18.9", "14.2"),
    ("output", "gru", "18.9", "14.2"),
    ("output", "max", "17.3", "12.6"),
    ("output", "latest", "17.3", "12.6"),
    ("both", "gru-relu", "19.2", "14.4"),
    ("both", "gru", "19.2", "14.4"),
    ("both", "max", "17.6", "12.9"),
    ("both", "latest", "17.6", "12.9"),
]


@pytest.mark.parametrize(("variant", "merging", "total", "finetuned"), TABLE_3)
def test_the_counts_are_those_of_table_3(
    variant: Variant, merging: Merging, total: str, finetuned: str
) -> None:
    config = ModelConfig(variant=variant, merging=merging)

    assert f"{parameter_count(config) / 1e6:.1f}" == total
    with torch.device("meta"):
        model = DynamicTextModel(config)
    model.freeze_encoder()
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert f"{trained / 1e6:.1f}" == finetuned
