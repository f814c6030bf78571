from pathlib import Path

import pytest

from dntm.corpus import conll
from dntm.corpus.document import Document, InputError


def read(path: Path) -> list[Document]:
    return [conll.parse_u(block) for block in conll.blocks_u(path)]


def chains(document: Document) -> list[list[str]]:
    return [
        [" ".join(document.sentences[m.sentence][m.start : m.end]) for m in chain]
        for chain in document.chains
    ]


def test_documents_begin_at_newdoc(fixtures: Path) -> None:
    assert [d.name for d in read(fixtures / "ferry.conllu")] == ["FERRY_tale", "FERRY_end"]


def test_words_are_the_parts_of_multiword_tokens_and_never_empty_nodes(fixtures: Path) -> None:
    tale = read(fixtures / "ferry.conllu")[0]

    assert tale.sentences[0] == ["Ivo", "does", "n't", "trust", "the", "old", "ferry"]


def test_attributes_empty_nodes_and_pieces_are_understood(fixtures: Path) -> None:
    tale, end = read(fixtures / "ferry.conllu")

    assert chains(tale) == [["Ivo"], ["the old ferry", "it"], ["right over now"]]
    assert chains(end) == [["They"], ["left him"], ["him"]]


def test_the_header_says_which_field_is_the_chain(tmp_path: Path) -> None:
    line = "\t".join(["1", "Ivo", *["_"] * 7, "Entity=(person-4-giv)"])
    path = tmp_path / "a.conllu"
    path.write_text(f"# newdoc id = a\n# global.Entity = entity-GRP-infstat\n{line}\n\n{line}\n")

    assert chains(read(path)[0]) == [["Ivo", "Ivo"]]


def row(number: str, misc: str, columns: int = 10) -> str:
    return "\t".join([number, "word", *["_"] * (columns - 3), misc]) + "\n"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (row("1", "Entity=(e1"), 1, "'(e1' is still open"),
        (row("1", "Entity=(e1") + "\n" + row("1", "Entity=e1)"), 2, "'(e1' is still open"),
        (row("1", "Entity=e1)"), 1, "'e1)' closes a mention that is not open"),
        (row("1", "_", columns=8), 1, "8 columns between tabs, expected 10"),
        (row("x", "_"), 1, "word number 'x'"),
        (row("2", "_"), 1, "word number 2, expected 1"),
        (row("1", "Entity=(e1)e"), 1, "brackets '(e1)e'"),
        (row("1", "Entity=(e1[1/2])"), 1, "in 2 pieces"),
        ("# global.Entity = etype-head\n" + row("1", "_"), 1, "expected a field eid or GRP"),
        ("# newdoc id = nothing\n\n", 2, "an empty document"),
    ],
)
def test_malformed_documents_are_named_with_file_and_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        read(path)

    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert problem in str(caught.value)
