from pathlib import Path

import pytest
import torch

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.config import ModelConfig
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_encoder import PretrainedEncoder

LARGE = Vocabulary(("the", "cat", "sat"), entities=0)
SMALL = Vocabulary(("sat", "wug"), entities=2)
CONFIG = ModelConfig(
    vocabulary=len(SMALL), entities=2, embedding_dim=4, hidden_dim=4, encoder_dim=3, context_dim=4
)


@pytest.fixture
def pretrained() -> PretrainedEncoder:
    source = DynamicTextModel(CONFIG, torch.Generator().manual_seed(5)).memory.encoder
    assert source is not None
    encoder = {name: p.detach().clone() for name, p in source.named_parameters()}
    return PretrainedEncoder(LARGE, torch.arange(24.0).view(6, 4), encoder, torch.full((6,), 1 / 6))


def test_embeddings_go_into_both_layers_and_the_encoder_as_it_is(
    pretrained: PretrainedEncoder, tmp_path: Path
) -> None:
    model = DynamicTextModel(CONFIG, torch.Generator().manual_seed(1))
    pretrained.save(tmp_path / "p")

    PretrainedEncoder.load(tmp_path / "p").load_into(model, SMALL)

    assert model.memory.encoder is not None
    for weight in (model.x.weight, model.output.weight):
        assert weight[5].equal(pretrained.x[5])
    assert all(p.equal(pretrained.encoder[n]) for n, p in model.memory.encoder.named_parameters())


def test_entities_and_words_it_never_saw_begin_as_unk(pretrained: PretrainedEncoder) -> None:
    model = DynamicTextModel(CONFIG, torch.Generator().manual_seed(1))

    pretrained.load_into(model, SMALL)

    assert all(model.x.weight[row].equal(pretrained.x[0]) for row in (0, 3, 4, 6))
    assert model.x.weight[1:3].equal(pretrained.x[1:3])


def test_another_size_is_named(pretrained: PretrainedEncoder) -> None:
    wide = DynamicTextModel(ModelConfig(vocabulary=7, entities=2, embedding_dim=8, hidden_dim=8))

    with pytest.raises(ValueError, match=r"\(7, 4\), but the model's input embeddings \(7, 8\)"):
        pretrained.load_into(wide, SMALL)


def test_a_folder_without_a_pretraining_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a pretraining checkpoint"):
        PretrainedEncoder.load(tmp_path)
