"""Table 3's parameter counts, in millions: all, and those to be finetuned."""

import pytest
import torch

from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.study.config import PAPER_MODELS, PAPER_TABLE_3, StudyModel


@pytest.mark.parametrize("study_model", PAPER_MODELS, ids=lambda found: found.name)
def test_the_counts_are_those_of_table_3(study_model: StudyModel) -> None:
    config, paper = study_model.config(ModelConfig()), PAPER_TABLE_3[study_model.name]

    assert f"{parameter_count(config) / 1e6:.1f}" == str(paper["parameters"])
    with torch.device("meta"):
        model = DynamicTextModel(config)
    model.freeze_encoder()
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert f"{trained / 1e6:.1f}" == str(paper["finetuned"])
