"""The example texts of the page and their edits, read by the bundled model.

`python -m tests.web.test_examples` prints the guesses, to choose other texts or edits.
"""

from functools import cache

import pytest

import dntm
from dntm.corpus.text import document_of
from dntm.reader.reader import Reader
from dntm.reader.reading import EntityReading
from dntm.web.app import Example, examples


@cache
def bundled() -> Reader:
    return dntm.Reader.from_pretrained()


def edited(example: Example) -> str:
    """The text after the edit."""
    sentence, instead = example.edit
    sentences = [example.text[s[0].start : s[-1].end] for s in document_of(example.text).spans]
    return " ".join([*sentences[: sentence - 1], instead, *sentences[sentence:]])


def states(text: str, word: str) -> list[tuple[int, EntityReading]]:
    """The word after each sentence that mentions it."""
    reading = bundled().read(text, entities=("names", "unknown"))
    [number] = [number for number, name in reading.entities.items() if name == word]
    return reading.trail(number)


def guesses(state: EntityReading) -> list[str]:
    """The words that the page shows."""
    return [near.word for near in state.predicted_words[:3]]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.word)
def test_the_suggested_edit_replaces_the_best_guess(example: Example) -> None:
    [*_, (_, before)] = states(example.text, example.word)
    [*_, (_, after)] = states(edited(example), example.word)

    assert guesses(after)[0] not in guesses(before)
    assert guesses(before)[0] not in guesses(after)


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.word)
def test_the_word_of_an_example_is_unknown(example: Example) -> None:
    assert example.word.lower() not in bundled().vocabulary
    assert len(states(example.text, example.word)) >= 4
    assert example.word in example.edit[1]


if __name__ == "__main__":
    for example in examples():
        for title, text in (("text", example.text), (f"edit: {example.edit[1]}", edited(example))):
            print(f"{example.word}, {title}")
            for index, state in states(text, example.word):
                shown = ", ".join(guesses(state))
                print(f"  after sentence {index + 1}: {shown} ({state.confidence or 0:.0%})")
