"""Reading with a pretrained core."""

from pathlib import Path

import pytest

from dntm.corpus.document import AnonymizedDocument
from dntm.model.base_model import load_base
from dntm.model.checkpoint import from_pretrained, save_pretrained
from dntm.model.scorer import Scorer
from dntm.reader.reader import Reader
from tests.model.tiny_base import TEXT, build, write_base

pytest.importorskip("transformers")


@pytest.fixture(scope="module", name="adapter")
def _adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = load_base(str(write_base(tmp_path_factory.mktemp("base"))))
    folder = tmp_path_factory.mktemp("run") / "adapter"
    save_pretrained(build(base).float(), base.vocabulary(3), folder)
    return folder


def test_each_word_has_the_surprisal_of_its_pieces(adapter: Path) -> None:
    reader = Reader.from_pretrained(adapter)

    reading = reader.read("The old heron saw Orla. Then Orla ate the fish.", unit="nats")

    tokens = reading.tokens
    assert [t.word for t in tokens] == "The old heron saw Orla . Then Orla ate the fish .".split()
    assert [tokens[4].entity, tokens[7].entity] == [1, 1]
    document = AnonymizedDocument(
        name="orla",
        sentences=[["The", "old", "heron", "saw", 1, "."], ["Then", 1, "ate", "the", "fish", "."]],
    )
    [scores] = Scorer(*from_pretrained(adapter)).score([document])
    assert [-t.surprisal for t in tokens] == pytest.approx(scores.tolist(), abs=1e-4)


def test_predicted_words_are_beginnings_of_words(adapter: Path) -> None:
    reading = Reader.from_pretrained(adapter).read("The heron saw Orla. Then Orla swam away.")

    words = {w.word for s in reading.sentences for e in s.entities for w in e.predicted_words}

    assert words
    assert all(any(known.startswith(word) for known in TEXT.split()) for word in words)


def test_gaps_are_refused(adapter: Path) -> None:
    reader = Reader.from_pretrained(adapter)

    with pytest.raises(ValueError, match="one row per word"):
        reader.fill("It ate the [] .", "The heron saw Orla.")
