import pytest
from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus.text import document_of
from dntm.web.requests import joined, raw_sentences, spaces

TEXTS = st.text(alphabet="aB1 .!?\"'()[]\n\r\t\x0b\x85\u2028é-…", max_size=60)


@given(TEXTS)
def test_the_sentences_shown_are_those_that_are_read(text: str) -> None:
    sentences = raw_sentences(text)

    if sentences:
        read = document_of(joined(sentences)).sentences
        shown = ["".join(sentence.text.split()) for sentence in sentences]
        assert ["".join(words) for words in read] == shown
    else:
        assert not text.strip()


@given(TEXTS)
def test_a_joined_text_is_cut_into_the_same_sentences(text: str) -> None:
    sentences = raw_sentences(text)

    again = raw_sentences(joined(sentences))

    assert [sentence.text for sentence in again] == [sentence.text for sentence in sentences]


def test_paragraphs_are_counted_and_wrapped_lines_joined() -> None:
    found = raw_sentences("One came.\nTwo  left.\r\n\r\n \nThree stayed.")

    assert [(sentence.text, sentence.paragraph) for sentence in found] == [
        ("One came.", 0),
        ("Two left.", 0),
        ("Three stayed.", 1),
    ]


@pytest.mark.parametrize(
    ("sentence", "words", "expected"),
    [
        ("Ann's cat.", ["Ann", "'s", "cat", "."], [False, False, True, False]),
        ('"No," she said', ['"', "No", ",", '"', "she"], [False, False, False, False, True]),
        ("Ilse Corrand left", ["Ilse Corrand", "left", "<eos>"], [False, True, False]),
    ],
)
def test_spaces_stand_where_the_text_has_them(
    sentence: str, words: list[str], expected: list[bool]
) -> None:
    assert spaces(sentence, words) == expected
