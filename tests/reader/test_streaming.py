from pathlib import Path
from typing import Any

import pytest

from dntm.corpus.document import Document, Mention
from dntm.reader.engine import Engine
from dntm.reader.reader import Reader
from dntm.reader.reading import EntityReading, SentenceReading
from tests.reader.small import STORY, TALES, checkpoint, crowd, surprisals

LISTS = ("predicted_words", "input_words", "output_words")


def count_sentences(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list that grows with every sentence that the models read."""
    calls: list[object] = []
    advance = Engine.advance

    def counted(self: Engine, texts: Any, states: Any, pool: Any = None) -> Any:
        calls.extend(sentence for text in texts for sentence in text.sentences)
        return advance(self, texts, states, pool)

    monkeypatch.setattr(Engine, "advance", counted)
    return calls


def assert_same(one: SentenceReading, other: SentenceReading) -> None:
    """Readings are equal, numbers to 1e-9."""
    for a, b in zip(one.tokens, other.tokens, strict=True):
        assert a.surprisal == pytest.approx(b.surprisal, abs=1e-9)
        assert a.static_surprisal == pytest.approx(b.static_surprisal, abs=1e-9)
        assert (a.word, a.group, a.entity) == (b.word, b.group, b.entity)
    for c, d in zip(one.entities, other.entities, strict=True):
        assert c.representation == pytest.approx(d.representation, abs=1e-9)
        assert (c.occurrence, c.name) == (d.occurrence, d.name)
        assert c.change == pytest.approx(d.change, abs=1e-9)
        for name in LISTS:
            assert words(c, name) == words(d, name)


def words(entity: EntityReading, name: str) -> list[tuple[str, float]]:
    return [(n.word, round(n.similarity, 8)) for n in getattr(entity, name)]


@pytest.mark.usefixtures("short_windows")
def test_a_stream_equals_a_reading(any_reader: Reader) -> None:
    for text in [*TALES, crowd("Lou sat.", "Ox and Bo met Ann, and Ix left.", "Zap met Lou.")]:
        streamed, read = list(any_reader.stream(text)), any_reader.read(text).sentences

        for one, other in zip(streamed, read, strict=True):
            assert_same(one, other)


def test_after_an_edit_only_later_sentences_are_read(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = list(reader.stream(STORY))
    edited = STORY.replace("He left", "She left")
    fresh = reader.read(edited)
    calls = count_sentences(monkeypatch)

    again = list(reader.stream(edited, known=known))

    assert len(calls) == 2
    reused = [one.tokens is other.tokens for one, other in zip(again, known, strict=True)]
    assert reused == [True, True, False, False]
    for one, other in zip(again, fresh.sentences, strict=True):
        assert_same(one, other)


def test_an_edit_can_rename_an_entity_in_earlier_sentences(reader: Reader) -> None:
    def text(name: str) -> Document:
        return Document(
            name="d",
            sentences=[["She", "left", "."], [name, "sat", "."]],
            chains=[[Mention(0, 0, 1), Mention(1, 0, 1)]],
        )

    known = list(reader.stream(text("Ann")))
    first, _ = reader.stream(text("Bo"), known=known)

    assert known[0].entities[0].name == "Ann"
    assert first.tokens is known[0].tokens
    assert first.entities[0].name == "Bo"


def test_a_stream_is_lazy(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_sentences(monkeypatch)

    first = next(reader.stream(STORY))

    assert first.index == 0
    assert len(calls) == 1


def test_readings_of_another_reader_are_not_reused(reader: Reader, tmp_path: Path) -> None:
    other = Reader.from_pretrained(checkpoint(tmp_path / "other", seed=3))
    theirs = list(other.stream(STORY))

    again = [t.surprisal for s in reader.stream(STORY, known=theirs) for t in s.tokens]

    assert again == pytest.approx(surprisals(reader.read(STORY)), abs=1e-9)
    assert theirs[-1].position is not None
    with pytest.raises(ValueError, match="the position belongs to another reader"):
        reader.predictions(theirs[-1].position)
