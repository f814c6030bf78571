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


def test_maximal_runs_of_capitalised_words_are_names() -> None:
    found = names("They met Anna Brandt in New York. Later Anna Brandt left.")

    assert found == {"Anna Brandt": 2, "New York": 1}


def test_a_sentence_start_alone_makes_no_name() -> None:
    assert names("People came. Nobody knew why. People left.") == {}


def test_a_name_at_the_sentence_start_counts_once_it_is_seen_inside() -> None:
    assert names("Vortek ran. We saw Vortek again.") == {"Vortek": 2}


def test_a_word_that_is_also_written_small_is_no_name_at_the_start() -> None:
    assert names("The end. In The Hague they saw the sea.") == {"The Hague": 1}


def test_headlines_are_passed_over() -> None:
    assert names("THE WAR IS OVER NOW\n\nIt was over.") == {}


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
