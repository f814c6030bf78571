from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from dntm.model.config import Extension, Variant
from dntm.reader.reader import Reader
from dntm.web.readings import WORDS, map_events, meaning_map
from tests.reader.small import STORY, checkpoint

GENERATOR = np.random.default_rng(3)


def unit(vectors: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def test_three_points_keep_their_distances() -> None:
    path = unit(GENERATOR.normal(size=(3, 7)))

    found = meaning_map([0, 2, 5], path, [["a"], ["a"], ["b"]])

    shown = np.array([row[1:] for row in found["path"]])
    for one, other in ((0, 1), (0, 2), (1, 2)):
        distance = np.linalg.norm(path[one] - path[other])
        assert np.linalg.norm(shown[one] - shown[other]) == pytest.approx(distance, abs=1e-3)
    assert found["variance"] == pytest.approx(1.0)
    assert [s for s, _, _ in found["path"]] == [0, 2, 5]


def test_a_word_is_at_the_mean_of_its_mentions() -> None:
    found = meaning_map(
        [0, 1, 2], GENERATOR.normal(size=(3, 7)), [["a", "c"], ["a", "c"], ["b", "c"]]
    )

    places = np.array([row[1:] for row in found["path"]])
    words = {word: np.array(place) for word, *place in found["words"]}
    assert words["a"] == pytest.approx(places[:2].mean(axis=0), abs=1e-3)
    assert words["b"] == pytest.approx(places[2], abs=1e-3)
    assert words["c"] == pytest.approx(places.mean(axis=0), abs=1e-3)


def test_the_share_of_variance_follows_from_the_singular_values() -> None:
    path = GENERATOR.normal(size=(6, 5))

    found = meaning_map(list(range(6)), path, [[]] * 6)

    singular = np.linalg.svd(unit(path) - unit(path).mean(axis=0), compute_uv=False)
    assert found["variance"] == pytest.approx((singular[:2] ** 2).sum() / (singular**2).sum())


def test_the_nearest_words_of_the_latest_mention_come_first_and_none_twice() -> None:
    nearest = [[f"{i}{rank}" for rank in range(5)] for i in range(20)]
    nearest[3][0] = "190"

    found = meaning_map(list(range(20)), GENERATOR.normal(size=(20, 4)), nearest)

    words = [word for word, _, _ in found["words"]]
    assert words[:2] == ["190", "180"]
    assert len(words) == len(set(words)) == WORDS


def test_a_single_point_is_the_origin() -> None:
    found = meaning_map([4], np.ones((1, 3)), [["a"]])

    assert found["path"] == [(4, 0.0, 0.0)]
    assert found["words"] == [("a", 0.0, 0.0)]


PLAIN = [(variant, ()) for variant in get_args(Variant)]


@pytest.mark.parametrize(("variant", "extensions"), [*PLAIN, ("output", ("naming",))])
def test_a_map_shows_the_predicted_words_of_each_mention_along_a_path(
    tmp_path: Path, variant: Variant, extensions: tuple[Extension, ...]
) -> None:
    folder = checkpoint(tmp_path / "model", variant, extensions=extensions)
    reader = Reader.from_pretrained(folder, precision="single")
    sentences = list(reader.stream(STORY))
    states = [state for sentence in sentences for state in sentence.entities]
    listed = {near.word for state in states for near in state.predicted_words[:4]}

    maps = map_events(sentences, reader.meanings)

    assert all(bool(state.predicted_words) == (variant != "baseline") for state in states)
    assert {word for event in maps for word, _, _ in event["words"]} == listed
    for event in maps if variant != "baseline" else []:
        places = {tuple(place) for _, *place in event["path"]}
        assert len(places) == len(event["path"])
