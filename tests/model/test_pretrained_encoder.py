from pathlib import Path

import pytest
import torch

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.config import ModelConfig
from dntm.model.context_encoder import ContextEncoder
from dntm.model.language_model import DynamicTextModel
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.model.sentence_completion import SentenceCompletion

LARGE = Vocabulary(("the", "cat", "sat"), entities=0)
SMALL = Vocabulary(("sat", "wug"), entities=2)
CONFIG = ModelConfig(
    vocabulary=len(SMALL), entities=2, embedding_dim=4, hidden_dim=4, encoder_dim=3, context_dim=4
)
PRETRAINED = PretrainedEncoder(
    LARGE, SentenceCompletion(6, ContextEncoder(4, 3, 4), torch.Generator().manual_seed(5))
)


def test_both_layers_start_with_the_embeddings_and_unseen_words_and_entities_as_unk(
    tmp_path: Path,
) -> None:
    model, given = DynamicTextModel(CONFIG), PRETRAINED.model
    PRETRAINED.save(tmp_path / "p")

    PretrainedEncoder.load(tmp_path / "p").load_into(model, SMALL)

    assert model.memory.encoder is not None
    for weight in (model.x.weight, model.output.weight):
        assert weight.equal(given.x[[0, 1, 2, 0, 0, 5, 0]])
    for name, value in model.memory.encoder.named_parameters():
        assert value.equal(given.encoder.get_parameter(name))


def test_another_size_and_a_folder_without_a_pretraining_checkpoint_are_named(
    tmp_path: Path,
) -> None:
    wide = DynamicTextModel(ModelConfig(vocabulary=7, entities=2, embedding_dim=8, hidden_dim=8))

    with pytest.raises(ValueError, match=r"input embeddings is \(7, 4\), but the model's \(7, 8\)"):
        PRETRAINED.load_into(wide, SMALL)
    with pytest.raises(ValueError, match="is not a pretraining checkpoint"):
        PretrainedEncoder.load(tmp_path)
