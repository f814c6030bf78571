from pathlib import Path

import pytest

from dntm.corpus import conll
from dntm.corpus.document import Document, InputError, Mention


def read(path: Path) -> list[Document]:
    return [conll.parse_2012(block) for block in conll.blocks_2012(path)]


def words(document: Document, mention: Mention) -> str:
    return " ".join(document.sentences[mention.sentence][mention.start : mention.end])


def test_parts_of_a_document_share_its_name(fixtures: Path) -> None:
    documents = read(fixtures / "story.v4_gold_conll")

    assert [(d.name, d.part) for d in documents] == [
        ("nw/tale/00/tale_0001", "0"),
        ("nw/tale/00/tale_0001", "1"),
    ]


def test_nested_and_repeated_brackets_give_chains(fixtures: Path) -> None:
    first, second = read(fixtures / "story.v4_gold_conll")

    assert [[words(first, m) for m in chain] for chain in first.chains] == [
        ["Old Marta", "her", "She"],
        ["her mule", "it"],
    ]
    assert [[words(second, m) for m in chain] for chain in second.chains] == [
        ["the ford keeper", "himself"],
        ["the ford", "it"],
    ]


def test_escaped_full_stops_are_read_as_full_stops(fixtures: Path) -> None:
    assert read(fixtures / "story.v4_gold_conll")[0].sentences[0][-1] == "."


def test_litbank_has_tabs_an_empty_last_column_and_mentions_that_cross(fixtures: Path) -> None:
    (document,) = read(fixtures / "salt_road.conll")

    assert [[words(document, m) for m in chain] for chain in document.chains] == [
        ["Captain Orla", "her", "She"],
        ["her mate"],
        ["mate and cook"],
        ["cook"],
    ]


HEAD = "#begin document (x); part 000\n"


def row(word: str, coreference: str) -> str:
    return f"x 0 0 {word} NN * - - - - * {coreference}\n"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (HEAD + row("a", "(1") + "\n#end document\n", 3, "'(1' is still open"),
        (HEAD + row("a", "1)") + "\n#end document\n", 2, "'1)' closes a mention that is not open"),
        (
            HEAD + row("a", "(1") + row("b", "(2") + row("c", "1)") + "\n#end document\n",
            4,
            "'1)' crosses '(2'",
        ),
        (HEAD + "x 0 0 word NN * -\n\n#end document\n", 2, "7 columns, expected at least 12"),
        (HEAD + row("a", "-") + row("b", "- -") + "\n#end document\n", 3, "expected 12"),
        (HEAD + row("a", "(x)") + "\n#end document\n", 2, "brackets '(x)'"),
        (HEAD + row("a", "-"), 2, "expected '#end document'"),
        (HEAD + "\n#end document\n", 3, "an empty document"),
        (row("a", "-"), 1, "expected '#begin document'"),
    ],
)
def test_malformed_documents_are_named_with_file_and_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    path = tmp_path / "bad_conll"
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        read(path)

    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert problem in str(caught.value)
