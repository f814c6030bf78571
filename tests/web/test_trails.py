from typing import cast

import pytest
import torch

from dntm.corpus.vocabulary import SPECIALS
from dntm.model.config import ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.reader.engine import ModelPair, without_memory
from dntm.reader.meaning import Meanings
from dntm.reader.reader import Reader
from dntm.web.events import Trails
from tests.web.tiny import TEXT


def test_a_map_is_of_the_space_in_which_the_nearest_words_are_found(reader: Reader) -> None:
    meanings = Meanings(reader.models.dynamic, reader.vocabulary)

    for sentence in reader.stream(TEXT):
        for state in sentence.entities:
            d = torch.tensor([list(state.representation)], dtype=torch.float64)
            lists = {"input": state.input_words, "output": state.output_words}
            for name, space in meanings.spaces.items():
                [entity] = space.entities([state.entity], d)
                words = [one.word for one in lists[name]]
                rows = [len(SPECIALS) - 1 + e for e in range(1, 10)]
                layer = {"input": meanings._model.x, "output": meanings._model.output.y}[name]
                unread = torch.nn.functional.normalize(layer.weight[rows] - space.mean, dim=1)
                near = space.words(words) @ (entity - unread.mean(0))
                assert near.tolist() == pytest.approx([one.similarity for one in lists[name]])


@pytest.mark.parametrize("variant", ["both", "input", "output", "baseline"])
def test_a_map_shows_what_the_entity_was_taken_for_after_each_mention(
    reader: Reader, variant: str
) -> None:
    other = with_variant(reader, cast("Variant", variant))
    meanings = Meanings(other.models.dynamic, other.vocabulary)
    trails = Trails(meanings)
    listed: dict[str, set[str]] = {"input": set(), "output": set()}
    for sentence in other.stream(TEXT):
        trails.add(sentence)
        for state in sentence.entities:
            for name, words in (("input", state.input_words), ("output", state.output_words)):
                taken = state.taken_for if name == meanings.changing else []
                listed[name] |= {near.word for near in (taken or words)[:4]}
            assert bool(state.taken_for) == (variant != "baseline")

    maps = trails.maps().values()
    for name in meanings.spaces:
        assert {word for spaces in maps for word, _, _ in spaces[name].words} == listed[name]


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
