"""Every character of a text is accounted for."""

import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus import conll, document, text
from dntm.corpus.anonymize import AnonymizeConfig, find_entities
from dntm.corpus.document import InputError
from dntm.corpus.entities import Lexicon
from dntm.corpus.formats import Format, read_documents
from dntm.corpus.text import sentences_in
from dntm.corpus.vocabulary import Vocabulary

LETTERS = st.characters(exclude_categories=["Cs"])
ODD = st.sampled_from([*"\u0301\u00ad\u200b\ufeff\ufe0f\u200d«»\u00a0😀👩🏽"])
PLAIN = st.sampled_from("Ann| Bo| zork|. |\n\n| the|!|? |'s|n't| No. 5| U.S.|\"|—".split("|"))
TEXTS = st.lists(st.one_of(LETTERS, ODD, PLAIN), max_size=40).map("".join)
UNSEEN = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]+"
)


@given(TEXTS)
def test_tokens_are_the_text_from_left_to_right_and_cover_every_word(raw: str) -> None:
    tokens = [span for sentence in sentences_in(raw) for span in sentence.spans]

    assert all(start < end for start, end, _ in tokens)
    assert all(a.end <= b.start for a, b in pairwise(tokens))
    for word in re.finditer(r"\S+", raw):
        inside = [raw[a:b] for a, b, _ in tokens if word.start() <= a and b <= word.end()]
        if UNSEEN.fullmatch(word[0]):
            assert inside == []
        else:
            assert "".join(inside) == word[0]
    assert sum(end - start for start, end, _ in tokens) == sum(
        len(word) for word in raw.split() if not UNSEEN.fullmatch(word)
    )


@given(TEXTS)
def test_without_spans_the_words_are_the_same(raw: str) -> None:
    with_spans, without = ([s.words for s in sentences_in(raw, spans=p)] for p in (True, False))

    assert with_spans == without


def test_characters_nobody_sees_belong_to_the_words_they_stand_at() -> None:
    raw = "\ufeffso\u00adft \u200b ice\u200b. cafe\u0301 x\u0304y ☺\ufe0f"

    [sentence] = sentences_in(raw)

    assert sentence.words == ["soft", "ice", ".", "café", "x\u0304y", "☺"]
    written = [raw[a:b] for a, b, _ in sentence.spans]
    assert written[:3] == ["\ufeffso\u00adft", "ice\u200b", "."]


LEXICON = Lexicon(Vocabulary(tuple("the . sat saw a man and left , of".split()), entities=9))
STORY = (
    'The man saw Karol Vask. "Vask sat," the man said. THE BLICKET LEFT. Blickets sat and saw Mr. '
    "Vask of No. 5. The President and Ann left, and the zorking man saw a zork. Ann Brandt sat. "
    "Mary saw Peter Fenwick-Smythe in June. 'Zounds!' Mary said, demonstrably. Peter left 4/B. He"
)
SPLITS = [match.end() for match in re.finditer(r"\s", STORY)]


@pytest.mark.parametrize("cut", SPLITS)
@pytest.mark.parametrize(
    "future", ["", "the man sat .", "Vask Ann Zork vask zorks. X", "BIG NEWS!"]
)
def test_what_is_said_of_a_word_does_not_change_when_the_text_after_it_changes(
    cut: int, future: str
) -> None:
    """A token and its entity are known once the word after it is."""

    def tokens(raw: str) -> list[tuple[int, int, int | None]]:
        document = text.document_of(raw)
        marked = find_entities(document, ("names", "unknown"), LEXICON, AnonymizeConfig())
        return [
            (spans[start].start, spans[end - 1].end, entity)
            for spans, found in zip(document.spans, marked.tokens(), strict=True)
            for start, end, entity in found
        ]

    edited = STORY[:cut] + future
    before = STORY[:cut].rstrip()
    known = before.rfind(" ") + 1

    kept = [token for token in tokens(STORY) if token[1] < known]

    if edited.strip():
        assert [token for token in tokens(edited) if token[1] < known] == kept


def conll_line(cell: str) -> bytes:
    return f"d 0 0 word X * - - - - * {cell}\n".encode()


def nested(count: int) -> bytes:
    opened = "".join(conll_line(f"({k}").decode() for k in range(count))
    closed = "".join(conll_line(f"{k})").decode() for k in reversed(range(count)))
    return f"#begin document (d); part 0\n{opened}{closed}\n#end document\n".encode()


def crossing(count: int) -> bytes:
    words = [f"Entity=(e{k}" for k in range(count)] + [f"Entity=e{k})" for k in range(count)]
    rows = "".join(f"{n}\tw" + "\t_" * 7 + f"\t{cell}\n" for n, cell in enumerate(words, start=1))
    return f"# newdoc id = d\n{rows}\n".encode()


BOMBS: dict[str, Callable[[int], tuple[Format, bytes]]] = {
    "newdoc": lambda n: ("conllu", b"# newdoc id =" + b" " * n + b"\n1\ta\n"),
    "newdoc name": lambda n: ("conllu", b"# newdoc id = a" + b" " * n + b"b" + b" " * n + b"\n"),
    "digits": lambda n: ("conll2012", b"#begin document (d)\n" + conll_line("1" * n)),
    "entity": lambda n: ("conllu", b"1\ta" + b"\t_" * 7 + b"\tEntity=" + b"a" * n + b"\n"),
    "begin": lambda n: ("conll2012", b"#begin document (x" + b" " * n + b"y\n" + conll_line("-")),
    "begin parts": lambda n: ("conll2012", b"#begin document (x" + b"; part 0" * n + b"y\n"),
    "accents": lambda n: ("text", b"a" + "\u0301\u0323".encode() * n),
    "marks": lambda n: ("text", b'."' * n),
    "quotes": lambda n: ("text", ". « ".encode() * n),
    "blanks": lambda n: ("text", b"\n \n" * n + b"a"),
    "one word": lambda n: ("text", b"a" * n),
    "capitals": lambda n: ("text", b"Ab " * n),
    "nested": lambda n: ("conll2012", nested(n)),
    "crossing": lambda n: ("conllu", crossing(n)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_text_of_250_kb_of_any_shape_is_read_at_once(tmp_path: Path, name: str) -> None:
    form, content = BOMBS[name](1)
    form, content = BOMBS[name](250_000 // max(1, len(BOMBS[name](2)[1]) - len(content)))
    path = tmp_path / "bomb"
    path.write_bytes(content)
    began, problems = time.process_time(), list[str]()

    for found in read_documents(path, [path], form, skipped=problems):
        find_entities(found, ("chains",), LEXICON, AnonymizeConfig(keep_single=True))

    assert all(len(problem) < 1000 for problem in problems)
    assert time.process_time() - began < 3.0


def test_a_very_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "LONGEST_LINE", 100)
    path = tmp_path / "zeros"
    path.write_bytes(b"short\n" + b"0" * 1000)

    with pytest.raises(InputError, match=r"line 2: a line of more than 100 bytes"):
        list(document.numbered_lines(path))


@given(st.text(alphabet="# newdoc=id\tx", max_size=30))
def test_the_fast_rule_for_newdoc_finds_what_the_plain_one_finds(line: str) -> None:
    plain = re.match(r"#\s*newdoc(?:\s+id\s*=\s*(?P<name>.*\S))?\s*$", line)

    assert conll._newdoc(line) == (None if plain is None else plain["name"] or "")
