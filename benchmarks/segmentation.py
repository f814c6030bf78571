"""Sentence boundaries and tokens of plain text compared with OntoGUM's, by genre.

The raw text of a document is its `# text` lines: sentences of a paragraph are joined by a space,
paragraphs by an empty line. Boundaries between sentences of the same paragraph are scored; a
system is given the paragraphs. Tokens are syntactic words (do|n't); a token is correct if both its
ends are. nupunkt and syntok are scored too if they are installed.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import tyro

from benchmarks.timing import Options
from dntm.corpus.text import sentences_in

Spans = set[tuple[int, int]]
Sentences = Iterable[Sequence[tuple[int, int]]]
"""The characters of each token of each sentence."""
ALL = "all genres"


@dataclass(frozen=True, kw_only=True)
class SegmentationOptions(Options):
    """Options of this benchmark."""

    corpus: Annotated[Path, tyro.conf.Positional]
    """A folder with OntoGUM's `conllu` and `splits.md`."""
    split: Literal["train", "dev", "test"] = "dev"
    """The documents to score."""


class Gold(NamedTuple):
    """A document as raw text, and its annotation."""

    genre: str
    text: str
    sentences: list[list[tuple[int, int]]]
    tags: list[list[str]]
    """The part of speech (UPOS) of each token."""


def documents_of(options: SegmentationOptions) -> Iterator[Gold]:
    """The documents of a split."""
    listed = (options.corpus / "splits.md").read_text(encoding="utf-8")
    [section] = re.findall(rf"^## {options.split}\n(.*?)(?=^## |\Z)", listed, re.M | re.S)
    for name in re.findall(r"\* (GUM_\w+)", section):
        path = options.corpus / "conllu" / f"{name}.conllu"
        if path.is_file():
            yield gold_document(name.split("_")[1], path.read_text(encoding="utf-8"))


def gold_document(genre: str, conllu: str) -> Gold:
    """Read one CoNLL-U document."""
    gold, text = Gold(genre, "", [], []), ""
    for block in filter(None, conllu.split("\n\n")):
        lines = block.splitlines()
        [raw] = (line.removeprefix("# text = ") for line in lines if line.startswith("# text ="))
        rows = [line.split("\t") for line in lines if line.split("\t")[0].isdecimal()]
        if text:
            text += "\n\n" if "# newpar" in lines else " "
        spans, place = list[tuple[int, int]](), 0
        for row in rows:
            start = raw.index(row[1], place)
            place = start + len(row[1])
            spans.append((len(text) + start, len(text) + place))
        gold.sentences.append(spans)
        gold.tags.append([row[3] for row in rows])
        text += raw
    return gold._replace(text=text)


def ours(text: str) -> Sentences:
    """The sentences of `corpus.text`."""
    return ([(start, end) for start, end, _ in s.spans] for s in sentences_in(text))


def nupunkt(text: str) -> Sentences:
    """The sentences of nupunkt with its default model."""
    import nupunkt

    for start, end in nupunkt.sentence_spans(text):
        yield [(start + a, start + b) for a, b in nupunkt.word_spans(text[start:end])]


def syntok(text: str) -> Sentences:
    """The sentences of syntok."""
    from syntok import segmenter

    for paragraph in segmenter.analyze(text):
        for sentence in paragraph:
            yield [(token.offset, token.offset + len(token.value)) for token in sentence]


SYSTEMS: dict[str, Callable[[str], Sentences]] = {
    "dntm": ours,
    "nupunkt": nupunkt,
    "syntok": syntok,
}


class Counts(NamedTuple):
    """Correct, found and expected spans."""

    correct: int = 0
    found: int = 0
    expected: int = 0

    def plus(self, found: Spans, expected: Spans) -> "Counts":
        """The counts with those of another document."""
        correct = self.correct + len(found & expected)
        return Counts(correct, self.found + len(found), self.expected + len(expected))

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.correct / max(1, self.found + self.expected)


def boundaries(text: str, sentences: Sentences) -> Spans:
    """The gaps between sentences of the same paragraph."""
    found = [(tokens[0][0], tokens[-1][1]) for tokens in sentences if tokens]
    gaps = zip((end for _, end in found), (start for start, _ in found[1:]), strict=False)
    return {(end, start) for end, start in gaps if "\n\n" not in text[end:start]}


class Scores(NamedTuple):
    """F1 by genre, and speed."""

    boundaries: dict[str, float]
    tokens: dict[str, float]
    characters_per_second: int


def measure(documents: Sequence[Gold], system: Callable[[str], Sentences]) -> Scores:
    """Compare a system with the annotation."""
    ends: dict[str, Counts] = {}
    tokens: dict[str, Counts] = {}
    took = 0.0
    for gold in documents:
        began = time.process_time()
        found = [list(sentence) for sentence in system(gold.text)]
        took += time.process_time() - began
        cuts = boundaries(gold.text, found), boundaries(gold.text, gold.sentences)
        words = set(chain(*found)), set(chain(*gold.sentences))
        for genre in (gold.genre, ALL):
            ends[genre] = ends.get(genre, Counts()).plus(*cuts)
            tokens[genre] = tokens.get(genre, Counts()).plus(*words)
    characters = sum(len(gold.text) for gold in documents)
    return Scores(_f1(ends), _f1(tokens), round(characters / max(took, 1e-9)))


def _f1(counts: dict[str, Counts]) -> dict[str, float]:
    return {genre: round(count.f1, 4) for genre, count in sorted(counts.items())}


def main(options: SegmentationOptions) -> None:
    """Print F1 by genre."""
    documents = list(documents_of(options))
    found = {
        name: measure(documents, system)
        for name, system in SYSTEMS.items()
        if name == "dntm" or find_spec(name)
    }
    for kind in ("boundaries", "tokens"):
        print(f"{kind:14}" + "".join(f"{name:>9}" for name in found))
        for genre in getattr(found["dntm"], kind):
            f1 = (getattr(scores, kind)[genre] for scores in found.values())
            print(f"{genre:14}" + "".join(f"{100 * value:9.1f}" for value in f1))
    for name, scores in found.items():
        print(f"{name:14}{scores.characters_per_second:12,} characters/s")
    numbers = {name: scores._asdict() for name, scores in found.items()}
    options.save({"split": options.split, "documents": len(documents)} | numbers)


if __name__ == "__main__":
    main(tyro.cli(SegmentationOptions, description=__doc__))
