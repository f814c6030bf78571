from pathlib import Path

import pytest

from dntm.corpus import conll
from dntm.corpus.document import Document, InputError


def read(path: Path) -> list[Document]:
    if path.suffix == ".conllu":
        return [conll.parse_u(block) for block in conll.blocks_u(path)]
    return [conll.parse_2012(block) for block in conll.blocks_2012(path)]


def chains(document: Document) -> list[list[str]]:
    return [
        [" ".join(document.sentences[m.sentence][m.start : m.end]) for m in chain]
        for chain in document.chains
    ]


def test_ontonotes_has_parts_nested_brackets_named_entities_and_escaped_full_stops(
    fixtures: Path,
) -> None:
    first, second = read(fixtures / "story.v4_gold_conll")

    assert (first.name, first.part) == ("nw/tale/00/tale_0001", "0")
    assert (second.name, second.part) == ("nw/tale/00/tale_0001", "1")
    assert chains(first) == [["Old Marta", "her", "She"], ["her mule", "it"]]
    assert chains(second) == [["the ford keeper", "himself"], ["the ford", "it"]]
    named = [first.sentences[m.sentence][m.start : m.end] for m in first.named_entities]
    assert named == [["Marta"], ["North", "Ford"]]
    assert first.sentences[0][-1] == "."


def test_litbank_has_tabs_an_empty_last_column_and_mentions_that_cross(fixtures: Path) -> None:
    (document,) = read(fixtures / "salt_road.conll")

    assert chains(document) == [
        ["Captain Orla", "her", "She"],
        ["her mate"],
        ["mate and cook"],
        ["cook"],
    ]


def test_conllu_has_multiword_tokens_empty_nodes_and_mentions_in_pieces(fixtures: Path) -> None:
    tale, end = read(fixtures / "ferry.conllu")

    assert (tale.name, end.name) == ("FERRY_tale", "FERRY_end")
    assert tale.sentences[0] == ["Ivo", "does", "n't", "trust", "the", "old", "ferry"]
    assert chains(tale) == [["Ivo"], ["the old ferry", "it"], ["Take it"]]
    assert chains(end) == [["They"], ["left him"], ["him"]]


def test_the_header_says_which_field_is_the_chain(tmp_path: Path) -> None:
    line = "\t".join(["1", "Ivo", *["_"] * 7, "Entity=(person-4-giv)"])
    path = tmp_path / "a.conllu"
    path.write_text(f"# newdoc id = a\n# global.Entity = entity-GRP-infstat\n{line}\n\n{line}\n")

    assert chains(read(path)[0]) == [["Ivo", "Ivo"]]


def with_entities(*cells: str) -> str:
    """One sentence with a word for each `Entity=`."""
    rows = [[str(n), f"w{n}", *["_"] * 7, f"Entity={c}"] for n, c in enumerate(cells, start=1)]
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    "cells",
    [
        ("(person-3", "person-3)", "(person-7)", "(person-3)", "(place-7)"),
        ("(3-person", "3)", "(7-person)", "(3-person)", "(7-place)"),
        ("(e3-person-1-", "e3)", "(e7-person-1-)", "(e3-person-1-)", "(e7)"),
        ("(3", "3)", "(7)", "(3)", "(7)"),
    ],
)
def test_without_a_header_the_chain_is_the_field_with_a_number(
    tmp_path: Path, cells: tuple[str, ...]
) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(with_entities(*cells))

    assert chains(read(path)[0]) == [["w1 w2", "w4"], ["w3", "w5"]]


HEAD, END = "#begin document (x); part 000\n", "\n#end document\n"


def row(word: str, coreference: str, named: str = "*") -> str:
    return f"x 0 0 {word} NN * - - - - {named} {coreference}\n"


def row_u(number: str, misc: str, columns: int = 10) -> str:
    return "\t".join([number, "word", *["_"] * (columns - 3), misc]) + "\n"


BAD_2012 = [
    (HEAD + row("a", "(1") + END, 3, "'(1' is still open"),
    (HEAD + row("a", "1)") + END, 2, "'1)' closes a mention that is not open"),
    (HEAD + row("a", "(1") + row("b", "(2") + row("c", "1)") + END, 4, "'1)' crosses '(2'"),
    (HEAD + "x 0 0 word NN * -\n" + END, 2, "7 columns, expected at least 12"),
    (HEAD + row("a", "-") + row("b", "- -") + END, 3, "expected 12"),
    (HEAD + row("a", "(x)") + END, 2, "brackets '(x)'"),
    (HEAD + row("a", "-", "(ORG*") + END, 3, "named entity is still open"),
    (HEAD + row("a", "-", "*)") + END, 2, "named entity '*)', expected"),
    (HEAD + row("a", "-"), 2, "expected '#end document'"),
    (HEAD + END, 3, "an empty document"),
    (row("a", "-"), 1, "expected '#begin document'"),
]
BAD_U = [
    (row_u("1", "Entity=(e1") + "\n" + row_u("1", "Entity=e1)"), 2, "'(e1' is still open"),
    (row_u("1", "_", columns=8), 1, "8 columns between tabs, expected 10"),
    (row_u("x", "_"), 1, "word number 'x'"),
    (row_u("2", "_"), 1, "word number 2, expected 1"),
    (row_u("1", "Entity=(e1)e"), 1, "brackets '(e1)e'"),
    ("# global.Entity = etype-head\n" + row_u("1", "_"), 1, "expected a field eid or GRP"),
    (with_entities("(person2-3)"), 1, "entity 'person2-3' without '# global.Entity'"),
    (with_entities("(person-giv)"), 1, "such as 3-person or person-3"),
    ("# newdoc id = nothing\n\n", 2, "an empty document"),
]


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [("bad_conll", *case) for case in BAD_2012] + [("bad.conllu", *case) for case in BAD_U],
)
def test_malformed_documents_are_named_with_file_and_line(
    tmp_path: Path, name: str, text: str, line: int, problem: str
) -> None:
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        read(path)

    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert problem in str(caught.value)
