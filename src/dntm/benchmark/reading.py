"""How fast a long text is read by both models, as `dntm score` reads it, and how memory grows.

Beside it stands the part that no reading can go below: the products of every h with the output
embeddings of the whole vocabulary, for each of the two models, at the machine's best.
Seconds are those of the processor, since all of it runs on one core.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from dntm.benchmark.machine import peak_memory_gb
from dntm.corpus.reading import files_and_format, read_documents
from dntm.reader.engine import Precision
from dntm.reader.reader import Reader

ROUNDS = 3
COLUMNS = 512


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

    def as_plain(self) -> dict[str, Any]:
        """The numbers as JSON holds them."""
        return asdict(self)


def measure(text: Path, model: Path | None, precision: Precision) -> ReadingBenchmark:
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
            early = _peak_memory()
    seconds = time.process_time() - began
    late = _peak_memory()
    words = len(prepared.text.split())
    return ReadingBenchmark(
        words=words,
        tokens=tokens,
        entities=prepared.entities(),
        vocabulary=len(reader.vocabulary),
        words_per_second=words / seconds,
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


def _peak_memory() -> float:
    return peak_memory_gb() * 1e9 / 2**20
