"""Word vectors are read from the usual formats, and errors name the line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from dntm.corpus.vectors import WordVectors, resized
from dntm.corpus.vocabulary import Vocabulary

LINES = "dog 1 0 0\ncat 0.5 0.5 0\nthe 0 0 1\n"
WORDS = Vocabulary(("the", "Dog", "yak"), entities=2)


@pytest.mark.parametrize("header", ["", "3 3\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_glove_and_word2vec_files_are_read_packed_or_not(
    tmp_path: Path, header: str, *, packed: bool
) -> None:
    path = tmp_path / "vectors.txt"
    content = (header + LINES).encode()
    path.write_bytes(gzip.compress(content) if packed else content)

    vectors = WordVectors.read(path)

    assert dict(vectors.rows) == {"dog": 0, "cat": 1, "the": 2}
    np.testing.assert_array_equal(vectors.vectors, [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]])


def test_a_vocabulary_gets_its_rows_in_lower_case_where_need_be(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(LINES)

    rows, found = WordVectors.read(path, WORDS).of(WORDS)

    assert rows.tolist() == [WORDS.row("the"), WORDS.row("Dog")]
    np.testing.assert_array_equal(found, [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("dog 1 0\ncat 1\n", "line 2: 1 numbers after the word, expected 2"),
        ("dog 1 0\ncat 1 x\n", "line 2: could not convert"),
        ("dog 1 nan\n", "line 1: a number that is not finite"),
        ("dog 1 1e99\n", "line 1: a number that is not finite"),
        ("dog 1 " + "x" * 5_000, r"could not convert.{150,200} \.\.\. x{150,200}', expected"),
        ("dog\n", "line 1: found 'dog"),
        ("", "no line with a word"),
        ("2 3\n", "no line with a word"),
    ],
)
def test_a_malformed_file_is_refused_by_line(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content)

    with pytest.raises(ValueError, match=problem):
        WordVectors.read(path)


def cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found: np.ndarray = unit @ unit.T
    return found


def test_another_width_keeps_the_cosines() -> None:
    vectors = np.random.default_rng(1).standard_normal((20, 6)).astype(np.float32)

    wide = resized(vectors, 16)

    assert wide.shape == (20, 16)
    np.testing.assert_allclose(cosines(wide), cosines(vectors), atol=1e-5)
    np.testing.assert_allclose(cosines(resized(wide, 6)), cosines(vectors), atol=1e-4)
