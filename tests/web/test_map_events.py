from typing import cast

import pytest
import torch

from dntm.model.config import ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.reader.engine import ModelPair
from dntm.reader.meaning import Meanings
from dntm.reader.reader import Reader
from dntm.web.readings import map_events
from tests.web.tiny import TEXT


@pytest.mark.parametrize("variant", ["both", "input", "output", "baseline"])
def test_a_map_shows_the_predicted_words_of_each_mention(reader: Reader, variant: str) -> None:
    other = with_variant(reader, cast("Variant", variant))
    meanings = Meanings(other.models.dynamic, other.vocabulary)
    listed: set[str] = set()
    sentences = list(other.stream(TEXT))
    for sentence in sentences:
        for state in sentence.entities:
            listed |= {near.word for near in state.predicted_words[:4]}
            assert bool(state.predicted_words) == (variant != "baseline")

    maps = map_events(sentences, meanings)

    assert {word for event in maps for word, _, _ in event["words"]} == listed


def with_variant(reader: Reader, variant: "Variant") -> Reader:
    """A reader of the same size."""
    config = reader.models.dynamic.config
    generator = torch.Generator().manual_seed(6)
    model = DynamicTextModel(
        ModelConfig(
            vocabulary=config.vocabulary,
            entities=config.entities,
            embedding_dim=8,
            hidden_dim=8,
            encoder_dim=8,
            context_dim=8,
            variant=variant,
        ),
        generator,
    )
    model = model.double().eval().requires_grad_(requires_grad=False)
    static = model.without(model.parts)
    return Reader(ModelPair(model, static, reader.vocabulary, "the same weights"))
