"""The package in an interactive session."""

import pydoc
from pathlib import Path

import pytest

import dntm
from tests.reader.small import STORY, checkpoint


def test_only_public_names_are_listed() -> None:
    assert dir(dntm) == sorted(dntm.__all__)
    assert all(hasattr(dntm, name) for name in dir(dntm))


def test_help_describes_the_public_classes() -> None:
    text = pydoc.plain(pydoc.render_doc(dntm))

    assert "class Reader" in text
    assert "import_module" not in text
    assert "read(self, text: Text, *, entities: Kinds = None" in text


def test_the_representation_of_a_reading_fits_a_line(tmp_path: Path) -> None:
    reader = dntm.Reader.from_pretrained(checkpoint(tmp_path / "d"))
    reading = reader.read(STORY)

    sentence = reading.sentences[1]
    assert repr(reading).startswith("Reading('text', sentences=4, tokens=26, entities=2, bits=")
    assert repr(sentence) == "SentenceReading(1, 'Ann kept a zork . <eos>', entities=2)"
    answers = (reader.predictions(STORY), reader.position(STORY))
    parts = (*sentence.entities, *sentence.tokens, *sentence.entities[0].predicted_words)
    for value in (reader, reader.prepare(STORY), reading, sentence, *parts, *answers):
        assert len(repr(value)) < 120


def test_an_error_says_which_of_several_texts_is_empty(tmp_path: Path) -> None:
    reader = dntm.Reader.from_pretrained(checkpoint(tmp_path / "d"))

    with pytest.raises(ValueError, match=r"texts\[1\] \(''\): an empty document"):
        list(reader.read_all(["She left.", "", "He left."]))
    with pytest.raises(ValueError, match=r"^an empty document"):
        reader.read("")
