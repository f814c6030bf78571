from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entities import find_names, with_unknown_words
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


def test_where_ordinary_words_are_known_others_may_be_names_at_the_start_alone() -> None:
    document = document_of("Ann slept. The day began. Ann woke. The end came. Ann left.")
    ordinary = Vocabulary(("the", "slept", "Ann"), entities=5)

    found = [[(m.sentence, m.start) for m in chain] for chain in find_names(document, ordinary)]

    assert found == [[(0, 0), (2, 0), (4, 0)]]
    assert find_names(document) == []


def test_headlines_are_passed_over() -> None:
    assert names("THE WAR IS OVER NOW\n\nIt was over.") == {}


VOCABULARY = Vocabulary(("the", "sang", "."), entities=5)


def test_unknown_words_that_return_become_entities_numbered_by_first_appearance() -> None:
    document = AnonymizedDocument(
        name="d",
        sentences=[["the", "grell", "sang", 1], [1, "zub", "grell", "."]],
        surfaces=[["Ann"], ["She"]],
    )

    found = with_unknown_words(document, VOCABULARY)

    assert found.sentences == [["the", 1, "sang", 2], [2, "zub", 1, "."]]
    assert found.surfaces == [["grell"], ["Ann"], ["She"], ["grell"]]


def test_numbers_and_signs_never_become_entities() -> None:
    document = AnonymizedDocument(name="d", sentences=[["1871", "%", "1871", "%"]])

    assert with_unknown_words(document, VOCABULARY).sentences == [["1871", "%", "1871", "%"]]
