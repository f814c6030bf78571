from pathlib import Path
from typing import get_args

import pytest

from dntm.model.config import Variant
from dntm.reader.reader import Reader
from dntm.web.readings import map_events
from tests.reader.small import STORY, checkpoint


@pytest.mark.parametrize("variant", get_args(Variant))
def test_a_map_shows_the_predicted_words_of_each_mention(tmp_path: Path, variant: Variant) -> None:
    reader = Reader.from_pretrained(checkpoint(tmp_path / "model", variant))
    sentences = list(reader.stream(STORY))
    states = [state for sentence in sentences for state in sentence.entities]
    listed = {near.word for state in states for near in state.predicted_words[:4]}

    maps = map_events(sentences, reader.meanings)

    assert all(bool(state.predicted_words) == (variant != "baseline") for state in states)
    assert {word for event in maps for word, _, _ in event["words"]} == listed
