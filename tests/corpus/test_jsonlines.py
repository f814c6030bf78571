import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dntm.corpus import formats
from dntm.corpus.document import Document, InputError, Mention

SENTENCES = [["Ada", "met", "Bo", "."], ["She", "waved", "at", "him", "."]]


def read(path: Path) -> list[Document]:
    return list(formats.read_documents(path, [path], "json"))


def write(path: Path, **fields: Any) -> Path:
    path.write_text(json.dumps({"doc_key": "d", "sentences": SENTENCES, **fields}) + "\n\n")
    return path


def test_clusters_are_offsets_over_the_document_with_ends_included(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", clusters=[[[0, 0], [4, 4]], [[2, 2], [7, 7]]])

    (document,) = read(path)

    assert document.name == "d"
    assert document.chains == [
        [Mention(0, 0, 1), Mention(1, 0, 1)],
        [Mention(0, 2, 3), Mention(1, 3, 4)],
    ]


def test_gzip_and_empty_sentences_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    fields = {"id": 3, "sentences": [["a"], [], ["b"]], "clusters": [[[0, 0], [1, 1]]]}
    path.write_bytes(gzip.compress(json.dumps(fields).encode()))

    (document,) = read(path)

    assert document.name == "3"
    assert document.sentences == [["a"], ["b"]]
    assert document.chains == [[Mention(0, 0, 1), Mention(1, 0, 1)]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{nonsense\n", "not JSON"),
        ("[1]\n", 'expected an object with "sentences"'),
        ('{"sentences": ["a"], "clusters": []}\n', "a list of lists of words"),
        ('{"sentences": [["a"]]}\n', "no chains"),
        ('{"sentences": [["a"]], "clusters": [[[0, 1]]]}\n', "expected offsets from 0 to 0"),
        ('{"sentences": [["a"],["b"]], "clusters": [[[0, 1]]]}\n', "inside its 1 words"),
        ('{"sentences": [["a"]], "clusters": [[[0]]]}\n', "expected 2 whole numbers"),
        ('{"sentences": [["a"]], "mention_clusters": [[[1, 0, 1]]]}\n', "expected 0 to 0"),
        ('{"sentences": [[]], "clusters": []}\n', "is empty"),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        read(path)

    assert str(caught.value).startswith(f"{path}, line 1: ")
    assert problem in str(caught.value)
