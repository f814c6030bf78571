import numpy as np
import pytest

from dntm.web.meaning_map import WORDS, meaning_map

GENERATOR = np.random.default_rng(3)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def places(found: object, path: int) -> np.ndarray:
    rows = [*found.path, *found.words]  # type: ignore[attr-defined]
    return np.array([row[1:] for row in rows])


def test_the_plane_is_that_of_the_singular_value_decomposition() -> None:
    path = GENERATOR.normal(size=(3, 7))
    words = dict(zip("abcd", GENERATOR.normal(size=(4, 7)), strict=True))

    found = meaning_map(
        [0, 2, 5], path, [["a", "b"], ["b", "c"], ["d", "a"]], lambda w: np.stack([words[i] for i in w])
    )

    order = [word for word, _, _ in found.words]
    points = unit(np.concatenate([path, [words[word] for word in order]]))
    centred = points - points.mean(axis=0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(
        np.abs(places(found, 3)), np.abs(centred @ axes[:2].T), atol=1e-4
    )
    assert found.kept == pytest.approx((singular[:2] ** 2).sum() / (singular**2).sum())
    assert [s for s, _, _ in found.path] == [0, 2, 5]


def test_the_nearest_words_of_the_latest_mention_come_first_and_none_twice() -> None:
    nearest = [[f"{i}{rank}" for rank in range(5)] for i in range(20)]
    nearest[3][0] = "190"

    found = meaning_map(
        list(range(20)),
        GENERATOR.normal(size=(20, 4)),
        nearest,
        lambda words: GENERATOR.normal(size=(len(words), 4)),
    )

    words = [word for word, _, _ in found.words]
    assert words[:2] == ["190", "180"]
    assert len(words) == len(set(words)) == WORDS


def test_a_single_point_lies_in_the_middle() -> None:
    found = meaning_map([4], np.ones((1, 3)), [[]], lambda _: np.zeros((0, 3)))

    assert found.path == [(4, 0.0, 0.0)]
    assert found.words == []
