"""Speed and memory of reading a long text, as `dntm score` reads it.

The naive implementation reads sentence by sentence (`Reader.stream`); it is measured on the first
`NAIVE_SENTENCES` sentences.
The limit is the output layer alone: the products of every h with the output embeddings of the whole
vocabulary, for the model and its static baseline. Times are processor seconds. Both models
run in parallel, so the wall-clock speed is higher if two cores are free.
"""

import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from benchmarks.timing import Options, print_machine
from dntm.corpus.formats import files_and_format, read_documents
from dntm.model.fast.recurrence import linear
from dntm.reader.engine import Precision
from dntm.reader.reader import Reader
from dntm.training.processes import peak_memory_gb

ROUNDS, TOKENS, NAIVE_SENTENCES = 3, 512, 100


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Options):
    """Options of this benchmark."""

    text: Annotated[Path, tyro.conf.Positional]
    """A text, for example a novel; of several documents, the first."""
    model: Path | None = None
    """A run folder or checkpoint; if omitted, the bundled model."""
    precision: Precision = "double"
    """The precision of both models."""
    threads: int = 1
    """CPU threads; 0: as many as PyTorch chooses."""


def measure(options: ReadingOptions) -> dict[str, Any]:
    """Read the first document of a file."""
    reader = Reader.from_pretrained(options.model, precision=options.precision)
    files, format_ = files_and_format(options.text, None)
    document = next(iter(read_documents(options.text, files[:1], format_)))
    began, clock = time.process_time(), time.perf_counter()
    prepared = reader.prepare(document)
    [reading] = reader.read_all([prepared], meanings=False)
    took, clock = time.process_time() - began, time.perf_counter() - clock
    began = time.process_time()
    naive = list(islice(reader.stream(prepared), NAIVE_SENTENCES))
    naive_tokens = sum(len(sentence.tokens) for sentence in naive)
    naive_seconds = (time.process_time() - began) / naive_tokens
    words, tokens = len(prepared.text.split()), len(reading.tokens)
    return {
        "words": words,
        "tokens": tokens,
        "entities": len(prepared.names()),
        "vocabulary": len(reader.vocabulary),
        "words_per_second": words / took,
        "wall_clock_words_per_second": words / clock,
        "naive_words_per_second": words / tokens / naive_seconds,
        "output_words_per_second": words / tokens / _output_seconds(reader),
        "memory_gb": peak_memory_gb(),
    }


@torch.no_grad()
def _output_seconds(reader: Reader) -> float:
    """Seconds per token of both models' products with the vocabulary."""
    best = float("inf")
    models = (reader.models.dynamic, reader.models.static)
    hidden = [torch.ones(TOKENS, m.config.hidden_dim, dtype=m.output.b.dtype) for m in models]
    for _ in range(ROUNDS):
        began = time.process_time()
        for model, h in zip(models, hidden, strict=True):
            linear(h, model.output.weight)
        best = min(best, time.process_time() - began)
    return best / TOKENS


def main(options: ReadingOptions) -> None:
    """Print words per second and memory."""
    options.set_threads()
    found = measure(options)
    words, limit = found["words_per_second"], found["output_words_per_second"]
    print(f"{found['words']:,} words of {options.text}, {found['entities']:,} entities")
    print_machine()
    print(f"both models      {words:12,.0f} words/s, {options.precision} precision")
    print(f"  wall clock     {found['wall_clock_words_per_second']:12,.0f} words/s")
    print(f"sentence by sentence {found['naive_words_per_second']:8,.0f} words/s")
    print(f"output layers    {limit:12,.0f} words/s ({words / limit:.0%}): their products alone")
    print(f"peak memory      {found['memory_gb']:12.2f} GB")
    options.save({"text": str(options.text), "precision": options.precision} | found)


if __name__ == "__main__":
    main(tyro.cli(ReadingOptions, description=__doc__))
