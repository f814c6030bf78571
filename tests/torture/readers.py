"""Damaged corpora, vectors and lists for every reader."""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from dntm.corpus.anonymize import AnonymizeConfig, find_entities
from dntm.corpus.catalog import splits_by_ids
from dntm.corpus.document import Document, check
from dntm.corpus.entities import Lexicon
from dntm.corpus.formats import Format, files_and_format, read_documents
from dntm.corpus.token_store import read_sentences
from dntm.corpus.vectors import WordVectors
from dntm.corpus.vocabulary import Vocabulary
from tests.torture.trying import Tally, damaged

FIXTURES = Path(__file__).parents[1] / "fixtures"
STORY = (
    "Old Marta kept the ferry at North Ford. \u201cEvery day,\u201d said Marta, \u201cgo.\u201d\n\n"
    "The zorrel slept; a zorrel doesn't see Mr. Vask of the U.S. in No. 5.\nIt cost 3,000.5 ...\n"
)
INLINE = "[1] met [2] at the gate .\n[2] said that [1] 's dog was old .\n\n[1] left .\n"
WORDS = [["Ann", "met", "Bo"], [" "], ["she", "left"]]
JSON = [
    {"doc_key": "a", "sentences": WORDS, "clusters": [[[0, 0], [4, 4]]]},
    {"id": "b", "sentences": WORDS, "mention_clusters": [[[0, 0, 1], [2, 0, 1]]]},
]
LEXICON = Lexicon(Vocabulary(("the", "at", "met", "gate", "ferry", "day", "left", "slept"), 5))
FORMATS: dict[Format, list[bytes]] = {
    "conll2012": [(FIXTURES / n).read_bytes() for n in ("story.v4_gold_conll", "salt_road.conll")],
    "conllu": [(FIXTURES / "ferry.conllu").read_bytes()],
    "json": ["\n".join(map(json.dumps, JSON)).encode()],
    "text": [STORY.encode()],
    "inline": [INLINE.encode()],
}
VECTORS = b"3 2\nthe 0.5 -1.25\ngate 1e-3 2\nFerry 0 0.1\n"
IDS = (b"a train\nb dev\nc test\n", b"## train\n* a\n* b\n## dev\n- c\n")


def damaged_inputs(folder: Path, count: int, seed: int) -> Iterator[Tally]:
    """Every reader gets its share of damaged inputs."""
    rng = random.Random(seed)
    works: dict[str, tuple[list[bytes], Callable[[Path, int], None]]] = {
        name: (seeds, _reads(name)) for name, seeds in FORMATS.items()
    }
    works["word vectors"] = ([VECTORS], _read_vectors)
    works["lists of ids"] = (list(IDS), _read_ids)
    works["text of pretraining"] = ([STORY.encode()], _read_text)
    shares = {name: 1 if name in FORMATS else 0.5 for name in works}
    for name, (seeds, work) in works.items():
        tally = Tally(f"damaged input: {name}")
        for number in range(max(1, round(count * shares[name] / sum(shares.values())))):
            content = damaged(rng.choice(seeds), rng)
            if number % 50 == 0:
                content = gzip.compress(content)
                content = damaged(content, rng) if number % 100 else content
            path = folder / "input"
            path.write_bytes(content)
            tally.attempt(f"{name} {number} of seed {seed}", lambda: work(path, number))  # noqa: B023
        yield tally


def _reads(form: Format) -> Callable[[Path, int], None]:
    def work(path: Path, number: int) -> None:
        skipped: list[str] | None = [] if number % 4 == 0 else None
        if number % 16 == 0:
            files_and_format(path, None)
        for document in read_documents(path, [path], form, skipped=skipped):
            _check(document)
            if number % 8 == 0:
                kinds = ("chains", "names", "unknown")
                find_entities(document, kinds, LEXICON, AnonymizeConfig())

    return work


def _check(document: Document) -> None:
    """What every reader promises of a document; AssertionError is a problem."""
    try:
        check(document)
        document.name.encode()
    except ValueError as error:
        raise AssertionError(f"read, but not sound: {error}") from None
    for sentence, spans in zip(document.sentences, document.spans, strict=False):
        assert len(sentence) == len(spans)
        assert all(0 <= s.start < s.end <= len(document.text) for s in spans)


def _read_vectors(path: Path, _number: int) -> None:
    found = WordVectors.read(path)
    assert np.isfinite(found.vectors).all()


def _read_ids(path: Path, _number: int) -> None:
    assert "nobody" not in splits_by_ids(path)


def _read_text(path: Path, number: int) -> None:
    for words in read_sentences(path, "file" if number % 2 else "blank-line"):
        assert all(words)
