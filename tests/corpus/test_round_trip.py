"""Any document, written in a format and read back, is the same document."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dntm.corpus.document import Document, Mention
from dntm.corpus.formats import Format, read_documents

WORDS = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=3).filter(
    lambda word: not word.startswith(("#", "/", "-", "_"))
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Words and chains of mentions that nest but never cross, as the annotation schemes want."""
    sentences = draw(st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=4))
    chains: dict[int, list[Mention]] = {}
    for s, words in enumerate(sentences):
        spans: set[tuple[int, int]] = set()
        for _ in range(draw(st.integers(0, 4))):
            start = draw(st.integers(0, len(words) - 1))
            end = draw(st.integers(start + 1, len(words)))
            if all(not (a < start < b < end or start < a < end < b) for a, b in spans):
                spans.add((start, end))
        for start, end in sorted(spans):
            chains.setdefault(draw(st.integers(0, 2)), []).append(Mention(s, start, end))
    return Document(name="d", sentences=sentences, chains=list(chains.values()))


def brackets(document: Document, prefix: str, bar: str) -> dict[tuple[int, int], str]:
    """The coreference cell of every word: closings, singles, openings by falling length."""
    cells: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for number, chain in enumerate(document.chains):
        for s, start, end in chain:
            name = f"{prefix}{number}"
            if end == start + 1:
                cells.setdefault((s, start), []).append((0, f"({name})"))
            else:
                cells.setdefault((s, start), []).append((-(end - start), f"({name}"))
                cells.setdefault((s, end - 1), []).append((end - start, f"{name})"))
    return {place: bar.join(text for _, text in sorted(c)) for place, c in cells.items()}


def as_conll2012(document: Document) -> str:
    cells = brackets(document, "", "|")
    sentences = [
        "".join(
            f"d 0 {w} {word} X * - - - - * {cells.get((s, w), '-')}\n"
            for w, word in enumerate(words)
        )
        for s, words in enumerate(document.sentences)
    ]
    return "#begin document (d); part 000\n" + "\n".join(sentences) + "\n#end document\n"


def as_conllu(document: Document) -> str:
    cells = brackets(document, "e", "")
    lines = ["# newdoc id = d"]
    for s, words in enumerate(document.sentences):
        for w, word in enumerate(words):
            misc = f"Entity={cells[s, w]}" if (s, w) in cells else "_"
            lines.append("\t".join([str(w + 1), word, *["_"] * 7, misc]))
        lines.append("")
    return "\n".join(lines) + "\n"


def as_json(document: Document) -> str:
    fields = {
        "id": "d",
        "sentences": document.sentences,
        "mention_clusters": [[list(m) for m in chain] for chain in document.chains],
    }
    return json.dumps(fields) + "\n"


@pytest.mark.parametrize(
    ("format_", "write"),
    [("conll2012", as_conll2012), ("conllu", as_conllu), ("json", as_json)],
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(document=documents())
def test_what_is_written_is_read_back(
    tmp_path: Path, format_: Format, write: object, document: Document
) -> None:
    path = tmp_path / "file"
    assert callable(write)
    path.write_text(write(document), encoding="utf-8")

    (read,) = read_documents(path, [path], format_)

    assert read.sentences == document.sentences
    assert Counter(tuple(c) for c in read.chains) == Counter(tuple(c) for c in document.chains)
