from typing import cast

import pytest
import torch

from dntm.model.config import ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.reader.meaning import Meanings
from dntm.reader.pair import ModelPair, without_memory
from dntm.reader.reader import Reader
from dntm.web.trails import Trails
from tests.web.tiny import TEXT


def test_a_map_is_of_the_space_in_which_the_nearest_words_are_found(reader: Reader) -> None:
    meanings = Meanings(reader.models.dynamic, reader.vocabulary)

    for sentence in reader.stream(TEXT):
        for state in sentence.entities:
            d = torch.tensor([list(state.representation)], dtype=torch.float64)
            lists = {"input": state.input_words, "output": state.output_words}
            for name, space in meanings.spaces.items():
                [entity] = space.entities([state.entity], d)
                near = space.words([one.word for one in lists[name]]) @ entity
                assert near.tolist() == pytest.approx([one.similarity for one in lists[name]])


@pytest.mark.parametrize("variant", ["both", "input", "output", "baseline"])
def test_words_that_came_nearer_are_on_the_map_of_the_space_in_which_they_did(
    reader: Reader, variant: str
) -> None:
    other = with_variant(reader, cast("Variant", variant))
    meanings = Meanings(other.models.dynamic, other.vocabulary)
    trails = Trails(meanings)
    gained: set[str] = set()
    listed: dict[str, set[str]] = {"input": set(), "output": set()}
    for sentence in other.stream(TEXT):
        trails.add(sentence)
        for state in sentence.entities:
            gained |= {near.word for near in state.gained[:3]}
            for name, words in (("input", state.input_words), ("output", state.output_words)):
                shown = 3 if name == meanings.changing else 6
                listed[name] |= {near.word for near in words[:shown]}

    maps = trails.maps().values()
    assert bool(gained) == (variant != "baseline")
    for name in meanings.spaces:
        on_maps = {word for spaces in maps for word, _, _ in spaces[name].words}
        assert on_maps == listed[name] | (gained if name == meanings.changing else set())


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
    return Reader(ModelPair(model, without_memory(model), reader.vocabulary, "the same weights"))
