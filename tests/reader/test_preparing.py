import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dntm.corpus.document import Document, Mention, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.text import as_prose
from dntm.corpus.vocabulary import TextSettings, Vocabulary
from dntm.reader.reader import Reader
from dntm.reader.text import PreparedText, prepare, tokens_of
from tests.reader.small import LEXICON, LOWER, VOCABULARY, checkpoint


def tokens(text: PreparedText) -> list[list[str | int]]:
    return [[word.token for word in sentence] for sentence in text.sentences]


class Pairs:
    """Finds that the first words of all sentences are one."""

    def chains(self, sentences: object) -> list[list[Mention]]:
        return [[Mention(s, 0, 1) for s in range(len(sentences))]]  # type: ignore[arg-type]


def test_names_and_unknown_words_are_entities_from_the_first_mention_on() -> None:
    text = prepare("the man met Ann . He met Ann at a zork . She left the zork at Bo .", LEXICON)

    assert tokens(text)[2] == ["She", "left", "the", 2, "at", 3, "."]
    assert text.names() == {1: "Ann", 2: "zork", 3: "Bo"}


def test_entities_can_be_restricted_to_repeated_words() -> None:
    text = prepare(
        "the man met Ann . He met Ann at a zork . She left the zork at Bo .",
        Lexicon(replace(VOCABULARY, settings=TextSettings(entities_from="repeated"))),
    )

    assert tokens(text) == [
        ["the", "man", "met", 1, "."],
        ["He", "met", 1, "at", "a", 2, "."],
        ["She", "left", "the", 2, "at", "Bo", "."],
    ]
    assert text.names() == {1: "Ann", 2: "zork"}


@pytest.mark.parametrize("odd", [None, ["a", "b"], b"a text", Path("a.txt")])
def test_other_types_than_texts_are_refused(reader: Reader, odd: object) -> None:
    with pytest.raises(TypeError, match=f"not {type(odd).__name__}"):
        reader.read(odd)  # type: ignore[arg-type]


def test_one_text_where_several_are_expected_is_refused(reader: Reader) -> None:
    with pytest.raises(TypeError, match="expected several texts"):
        reader.read_all("Ann met Bo.")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("names", ["met", 1, "at", "zork", 1, "zork"]),
        ("unknown", ["met", 1, "at", 2, 1, 2]),
        ("inline", ["met", "Ann", "at", "zork", "Ann", "zork"]),
    ],
)
def test_what_counts_as_an_entity_can_be_chosen(kind: str, expected: list[str | int]) -> None:
    found = tokens(prepare("met Ann at zork Ann zork", LEXICON, kind))  # type: ignore[arg-type]

    assert found == [expected]


def test_inline_mentions_are_entities_even_if_they_come_once() -> None:
    text = prepare("[3] met [7]. [3] left.", LEXICON, "inline")

    assert tokens(text) == [[1, "met", 2, "."], [1, "left", "."]]
    assert text.names() == {1: "[3]", 2: "[7]"}


def test_a_resolver_finds_entities() -> None:
    text = prepare("Ann met Bo. She left.", LEXICON, "resolver", Pairs())

    assert tokens(text) == [[1, "met", "Bo", "."], [1, "left", "."]]


def test_annotated_documents_keep_their_chains_and_others_get_names() -> None:
    sentences = [["Bo", "met", "Bo", "and", "Bo"]]
    chained = Document(name="d", sentences=sentences, chains=[[Mention(0, 0, 1), Mention(0, 2, 3)]])

    assert tokens(prepare(chained, LEXICON)) == [[1, "met", 1, "and", "Bo"]]
    assert tokens(prepare(Document(name="d", sentences=sentences), LEXICON)) == [
        [1, "met", 1, "and", 1]
    ]


def test_a_lower_case_model_shows_words_as_written() -> None:
    lexicon = Lexicon(Vocabulary(("she", "met", "left", "."), entities=2))
    text = prepare("SHE met Ann. Ann left.", lexicon)

    assert tokens(text) == [["she", "met", 1, "."], [1, "left", "."]]
    assert [word.shown for word in text.sentences[0]] == ["SHE", "met", "Ann", "."]


def test_a_lower_case_model_accepts_any_case(tmp_path: Path) -> None:
    reader = Reader.from_pretrained(checkpoint(tmp_path / "lower", vocabulary=LOWER))
    story = "Ann kept a zork . The zork met Ann . "
    *_, last = reader.read(story + "Zork met the old man .").sentences
    position = reader.position(story)

    asked: tuple[str | list[Token], ...] = ("Zork MET The", [2, "MET", "The"])
    for prefix in asked:
        found = reader.predictions(position, prefix, k=len(LOWER))
        [old] = [c for c in found.dynamic if c.word == "old"]
        assert -math.log2(old.probability) == pytest.approx(last.tokens[3].surprisal, abs=1e-9)
    [filled] = [f for f in reader.fill("Zork met The [] MAN .", position) if f.word == "old"]
    assert filled.surprisal == pytest.approx(sum(t.surprisal for t in last.tokens), abs=1e-9)


def test_words_that_mention_one_entity_are_found_in_a_later_sentence() -> None:
    text = prepare("Big Bo met Ann. Ann met Big Bo at the zork zork.", LEXICON)
    about = (text.names(), text.surfaces(LEXICON), LEXICON)

    assert tokens_of("Big Bo met the zork, [2] and [] .", *about) == [
        *(1, "met", "the", 3, ",", 2, "and", "[]", ".")
    ]
    inline = prepare("[3] met [7].", LEXICON, "inline")
    assert tokens_of("[7] left [3]", inline.names(), {}, LEXICON) == [2, "left", 1]


@pytest.mark.parametrize(
    ("text", "kind", "problem"),
    [
        *((text, None, "empty") for text in ("", "  \n \t\n", "\u2028")),
        ("She left \ud800.", None, r"'\\ud800' cannot be written as UTF-8"),
        ("She left.", "chains", "plain text has no chains"),
        ("She left.", "nouns", "entities 'nouns', expected one of chains, names"),
        ("She left.", "resolver", "needs a coreference model"),
    ],
)
def test_what_cannot_be_read_is_named(reader: Reader, text: str, kind: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        reader.read(text, entities=kind)


def test_a_very_long_sentence_is_read(reader: Reader) -> None:
    reading = reader.read("the zork met Ann , " * 800)

    assert len(reading.sentences) == 1
    assert len(reading.tokens) == 4001
    assert reading.entities == {1: "zork", 2: "Ann"}


def test_prose_is_written_without_needless_spaces() -> None:
    words = """She did n't say " no " ( Bo Ann - Orr 's table ) .""".split()

    assert as_prose(words) == "She didn't say \"no\" (Bo Ann-Orr's table)."
