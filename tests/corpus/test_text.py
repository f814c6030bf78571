import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus import text
from dntm.corpus.document import Document, Mention


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("She didn't go.", "She did n't go ."),
        ("Mary's cat, they'll say", "Mary 's cat , they 'll say"),
        ("It cost 10,000.50 (or 3%)!", "It cost 10,000.50 ( or 3 % ) !"),
        ("Mr. Orr of the U.S. left...", "Mr. Orr of the U.S. left ..."),
        ("a well-known fact -- indeed", "a well - known fact -- indeed"),
        ("naïve Zoë’s café", "naïve Zoë ’s café"),
        ("snake_case & co", "snake _ case & co"),
        ("J. R. Hart met Plan B.", "J. R. Hart met Plan B ."),
        ("the 1990s and 19th, 4x4", "the 1990s and 19th , 4 x 4"),
        ("3.5kg, 10,000km, $1.5m at 5.30pm", "3.5 kg , 10,000 km , $ 1.5 m at 5.30 pm"),
        ("Mr. O'Neill's aunt, d’Arcy", "Mr. O'Neill 's aunt , d’Arcy"),
        ("a Ph.D. at five o'clock", "a Ph.D. at five o ' clock"),
        ("DON'T see p. 5, fig. 2, H5N1", "DO N'T see p. 5 , fig. 2 , H5N1"),
        ("a fig. Orr et al. came in Jan.", "a fig . Orr et al. came in Jan."),
    ],
)
def test_words_follow_the_annotated_corpora(raw: str, words: str) -> None:
    assert text.WORD.findall(raw) == words.split()


@pytest.mark.parametrize(
    ("paragraph", "count"),
    [
        ("He left. She stayed.", 2),
        ("Mr. Orr met J. Smith. They spoke.", 2),
        ('"Go!" he said. "No."  She went.', 3),
        ("It was 3.5 m long. 20 men came.", 2),
        ("He saw e.g. cats and dogs", 1),
        ("What?! Never (or so I think.) Then he slept.", 3),
        ("No. Not now.", 2),
        ("He came in Jan. 1990 and on Mon. 5 May, see p. 7 or vol. 2.", 1),
        ("Orr et al. (1990) saw birds, incl. Owls. He left.", 2),
        ("1. Introduction. 2.1. The method", 2),
        ("'That looks fun!' Abby exclaimed. 'So it does!' Abby left.", 3),
        ('"Go!" I said. "Go!" He said no more.', 3),
        ("He lives in 44/B. He turned to the U.S. The U.S. Army left with J. A. Orr.", 3),
        ("He said that it was Bo's. Ann knew Dr. May.", 2),
        ("He died in 2014. [4] [12] She lives.", 2),
        ("Il part. « Oui », dit-il. »  Elle rit.", 3),
        ("Great! 😀 Then we left.", 2),
        ("See No. 5 now. No. Not now.", 3),
        ("He left. őrült is a word.", 1),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(paragraph: str, count: int) -> None:
    assert len(list(text.sentence_bounds(paragraph))) == count


PLAIN_END = re.compile(
    r"""[.!?…]+(?:["'”’»)\]]|\s»)*(?:\s?\[\d{1,3}\])*(\s+)(?=(?:["'“‘(\[]|«\s?)*(?:[^\W_a-zß-öø-ÿ]|☀))"""
)
"""The rule in its plain form; it takes quadratic time on a long run of marks."""


@given(st.text(alphabet=".!?…\"'”’»)]“‘«([ \n\taéßÉA1_☀", max_size=40))
def test_the_fast_rule_for_the_end_of_a_sentence_finds_what_the_plain_one_finds(raw: str) -> None:
    found = [match.span(1) for match in text._SENTENCE_END.finditer(raw)]

    assert found == [match.span(1) for match in PLAIN_END.finditer(raw)]


def read(path: Path, documents: text.Documents, *, inline: bool = False) -> list[Document]:
    blocks = text.blocks(path, documents)
    return [text.parse(block, documents, inline=inline) for block in blocks]


def test_a_file_is_a_document_of_wrapped_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "tale.txt"
    path.write_text("The old\nman slept\n\nThe end\n")

    (document,) = read(path, "file")

    assert document.name == "tale.txt"
    assert document.sentences == [["The", "old", "man", "slept"], ["The", "end"]]


def test_between_empty_lines_every_line_is_a_paragraph(tmp_path: Path) -> None:
    path = tmp_path / "news.txt.gz"
    path.write_bytes(gzip.compress(b"One two\nThree\n\n\nFour\n"))

    documents = read(path, "blank-line")

    assert [d.name for d in documents] == ["news.txt.gz:1", "news.txt.gz:5"]
    assert documents[0].sentences == [["One", "two"], ["Three"]]


def test_inline_markup_names_the_entities(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text("[7] saw [2]. [7] left.\n")

    (document,) = read(path, "file", inline=True)

    assert document.chains == [[Mention(0, 0, 1), Mention(1, 0, 1)], [Mention(0, 2, 3)]]


def test_a_very_large_file_becomes_several_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "LARGEST_PART", 20)
    path = tmp_path / "large.txt"
    path.write_text("A line of words here.\n\n" * 3)

    documents = read(path, "file")

    assert [(d.name, d.part) for d in documents] == [("large.txt", part) for part in "123"]
