"""How fast a model reads: a long text as `dntm score` reads it, and the cloze test.

Beside the text stands the part that no reading can go below: the products of every h with the
output embeddings of the whole vocabulary, for each of the two models, at the machine's best.
Seconds are those of the processor, since all of it runs on one core.

Beside the cloze test stands the naive way, every candidate's sentence read in full. It is timed on
the first gaps, one candidate after the other, and scaled to all candidates. Weights are random
there: they change nothing about the time.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from dntm.benchmark.machine import clock_name, peak_memory_gb, peak_memory_mib, seconds
from dntm.benchmark.train import make_model
from dntm.corpus.dataset import Dataset
from dntm.corpus.reading import files_and_format, read_documents
from dntm.evaluation.cloze import ClozeText
from dntm.model.config import ModelConfig
from dntm.model.text_model import TextModel
from dntm.reader.engine import Precision
from dntm.reader.reader import Reader

ROUNDS = 3
COLUMNS = 512
NAIVE = 200
"""Candidates filled in the naive way."""


@dataclass(frozen=True)
class ReadingBenchmark:
    """Words a second, both models together, and peak memory."""

    words: int
    """Between white space."""
    tokens: int
    """Predicted, the ends of sentences included."""
    entities: int
    vocabulary: int
    words_per_second: float
    output_words_per_second: float
    """What the products of the output layer alone would allow."""
    memory_early: float
    """Peak memory in MiB after the first tenth of the tokens."""
    memory_end: float
    """Peak memory in MiB at the end."""


def benchmark_reading(text: Path, model: Path | None, precision: Precision) -> ReadingBenchmark:
    """Read the first document of a file."""
    reader = Reader.from_pretrained(model, precision=precision)
    files, format_ = files_and_format(text, None)
    document = next(iter(read_documents(text, files[:1], format_)))
    began = time.process_time()
    prepared = reader.prepare(document)
    expected = sum(len(sentence) + 1 for sentence in prepared.sentences)
    tokens, early = 0, 0.0
    for _, sentences in reader.read_on([prepared]):
        tokens += sum(len(sentence.tokens) for sentence in sentences)
        if not early and tokens > expected / 10:
            early = peak_memory_mib()
    took = time.process_time() - began
    late = peak_memory_mib()
    words = len(prepared.text.split())
    return ReadingBenchmark(
        words=words,
        tokens=tokens,
        entities=prepared.entities(),
        vocabulary=len(reader.vocabulary),
        words_per_second=words / took,
        output_words_per_second=words / tokens / _output_seconds(reader),
        memory_early=early,
        memory_end=late,
    )


def _output_seconds(reader: Reader) -> float:
    """Seconds a token of both models' products with the vocabulary, the best of some rounds."""
    best = float("inf")
    models = (reader.models.dynamic, reader.models.static)
    hidden = [torch.ones(m.config.hidden_dim, COLUMNS, dtype=m.output.b.dtype) for m in models]
    for _ in range(ROUNDS):
        began = time.process_time()
        for model, h in zip(models, hidden, strict=True):
            _ = model.output.y.weight @ h
        best = min(best, time.process_time() - began)
    return best / COLUMNS


@dataclass(frozen=True, kw_only=True, slots=True)
class ClozeBenchmark:
    """What was measured."""

    threads: int
    clock: str
    """Which seconds: see `dntm.benchmark.machine`."""
    gaps: int
    candidates: int
    seconds: float
    """For the whole split."""
    naive_seconds: float
    """The same, scaled from the first candidates."""
    peak_memory_gb: float


def benchmark_cloze(
    config: ModelConfig, dataset: Path, *, split: str = "test", seed: int = 0
) -> ClozeBenchmark:
    """Time the cloze test on a split; the dataset decides the size of the vocabulary."""
    opened = Dataset.open(dataset)
    vocabulary = opened.vocabulary
    config = replace(config, vocabulary=len(vocabulary), entities=vocabulary.entities)
    model = TextModel(make_model(config, seed), vocabulary)
    texts = [ClozeText.of(document) for document in opened.documents(split)]
    candidates = sum(len(gap.candidates) for text in texts for gap in text.gaps)
    if not candidates:
        raise ValueError(f"{dataset} has no gap in its {split} split, expected at least one")
    naive = list(islice((fill for text in texts for fill in _naive(model, text)), NAIVE))
    scale = candidates / len(naive)
    return ClozeBenchmark(
        threads=torch.get_num_threads(),
        clock=clock_name(),
        gaps=sum(len(text.gaps) for text in texts),
        candidates=candidates,
        seconds=seconds(lambda: list(model.fill_all(texts))),
        naive_seconds=scale * seconds(lambda: [fill() for fill in naive]),
        peak_memory_gb=peak_memory_gb(),
    )


def _naive(text_model: TextModel, text: ClozeText) -> Iterator[Callable[[], object]]:
    """Each candidate's sentence to be read from its beginning, alone."""
    model = text_model.model
    sentences = [text_model.vocabulary.encode(s) for s in text.document.sentences]
    state = model.initial_state(1)
    for number, sentence in enumerate(sentences):
        for gap in text.gaps:
            for entity in gap.candidates if gap.sentence == number else ():
                row = text_model.vocabulary.entity_row(entity)
                filled = [*sentence[: gap.position + 1], row, *sentence[gap.position + 2 :]]

                def fill(filled: list[int] = filled, state: Any = state) -> object:
                    return model.score(model.plan([[filled]], [False]), state)

                yield fill
        _, state = model.score(model.plan([[sentence]]), state)
