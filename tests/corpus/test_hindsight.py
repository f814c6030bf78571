import pytest

from dntm.corpus.anonymize import find_names, mark_words
from dntm.corpus.document import AnonymizedDocument, Document, Span
from dntm.corpus.entities import Lexicon
from dntm.corpus.text import document_of
from dntm.corpus.vocabulary import Vocabulary


def names(text: str) -> dict[str, int]:
    document = document_of(text)
    return {
        " ".join(document.sentences[chain[0].sentence][chain[0].start : chain[0].end]): len(chain)
        for chain in find_names(document)
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "They met Anna Brandt in New York. Later Anna Brandt left.",
            {"Anna Brandt": 2, "New York": 1},
        ),
        ("People came. Nobody knew why. People left.", {}),
        ("Vortek ran. We saw Vortek again.", {"Vortek": 2}),
        ("The end. In The Hague they saw the sea.", {"The Hague": 1}),
        ("THE WAR IS OVER NOW\n\nIt was over.", {}),
    ],
)
def test_a_name_is_a_run_of_capitals_that_is_seen_inside_a_sentence(
    text: str, found: dict[str, int]
) -> None:
    assert names(text) == found


LEXICON = Lexicon(Vocabulary(("the", "sang", "."), entities=5))


def with_unknown_words(
    sentences: list[list[str]], mentions: list[list[Span]] | None = None
) -> AnonymizedDocument:
    found = mentions or [[] for _ in sentences]
    marked = Document(name="d", sentences=sentences, mentions=found)
    return mark_words(marked, ("unknown",), LEXICON, "repeated").anonymized(lower_case=False)


def test_unknown_words_that_return_become_entities_numbered_by_first_appearance() -> None:
    found = with_unknown_words(
        [["the", "grell", "sang", "Ann"], ["She", "zub", "grell", "."]],
        [[Span(3, 4, 0)], [Span(0, 1, 0)]],
    )

    assert found.sentences == [["the", 1, "sang", 2], [2, "zub", 1, "."]]
    assert found.surfaces == [["grell"], ["Ann"], ["She"], ["grell"]]


def test_numbers_and_signs_never_become_entities() -> None:
    assert with_unknown_words([["1871", "%", "1871", "%"]]).sentences == [
        ["1871", "%", "1871", "%"]
    ]
