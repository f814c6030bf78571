"""What each peer costs beside ours, in one run: training, scoring, parameters, memory.

All read the same batches, sampled from a dataset or made up, and the best time of some rounds
counts. Memory is that of a fresh process which trains on one batch. An n-gram model learns by
counting; caches and dynamic evaluation are ways to score a model, and train with it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from dntm.benchmark.machine import seconds
from dntm.benchmark.train import (
    Document,
    make_batches,
    make_model,
    trainer,
    training_memory_gb,
)
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary, entity_of_row, entity_rows
from dntm.model.cache import Cache
from dntm.model.config import ModelConfig
from dntm.model.dynamic_evaluation import DynamicEvaluation
from dntm.model.kneser_ney import KneserNey
from dntm.model.text_model import TextModel

TRAINED = {
    "A": {"variant": "baseline"},
    "D": {"variant": "both"},
    "D, salience": {"variant": "both", "salience": True},
    "D, salience, pointer": {"variant": "both", "salience": True, "pointer": True},
    "Transformer": {"kind": "transformer"},
    "after EntityNLM": {"kind": "entity-nlm"},
}
"""Settings of the models that are trained."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one model, or one way to score it, takes; None where there is nothing of the kind."""

    name: str
    parameters: int
    trained: float | None
    """Tokens a second."""
    scored: float
    peak_memory_gb: float | None


def benchmark_peers(
    config: ModelConfig,
    *,
    dataset: Path | None = None,
    batch: int = 8,
    rounds: int = 2,
    seed: int = 0,
) -> list[Cost]:
    """Time every peer at these sizes; a dataset decides the size of the vocabulary."""
    for name, value in (("batch", batch), ("rounds", rounds)):
        if value < 1:
            raise ValueError(f"{name} is {value}, expected at least 1")
    config, batches = make_batches(config, dataset, batch, seed)
    documents = list(chain.from_iterable(batches))
    words = config.vocabulary - entity_rows(config.entities).stop
    vocabulary = Vocabulary(tuple(f"w{i}" for i in range(words)), config.entities)
    texts = [_text(rows, vocabulary) for rows in documents]
    tokens = sum(len(sentence) - 1 for rows in documents for sentence in rows)

    def rate(work: Callable[[], object]) -> float:
        return tokens / min(seconds(work) for _ in range(rounds))

    found: list[Cost] = []
    for name, settings in TRAINED.items():
        sizes = replace(config, **settings)  # type: ignore[arg-type]
        found += _costs(name, sizes, batches, TextModel(make_model(sizes, seed), vocabulary), rate)
    rows = np.array([row for text in documents for sentence in text for row in sentence])
    counted = rate(lambda: KneserNey(rows, vocabulary))
    ngrams = KneserNey(rows, vocabulary)
    scored = rate(lambda: list(ngrams.score_all(texts)))
    found.append(Cost("5-gram, Kneser-Ney", ngrams.parameters, counted, scored, None))
    return found


def _costs(
    name: str,
    sizes: ModelConfig,
    batches: Sequence[Sequence[Document]],
    reader: TextModel,
    rate: Callable[[Callable[[], object]], float],
) -> Iterator[Cost]:
    """A model, and the ways to score it."""
    model, train = reader.model, trainer(reader.model)
    texts = [_text(rows, reader.vocabulary) for documents in batches for rows in documents]
    count = sum(p.numel() for p in model.parameters())
    trained = rate(lambda: [train(documents) for documents in batches])
    memory = training_memory_gb(sizes, batches[0], 0)
    yield Cost(name, count, trained, rate(lambda: list(reader.score_all(texts))), memory)
    model.cache = Cache(theta=0.3, weight=0.1)
    yield Cost(f"{name}, cache", count, None, rate(lambda: list(reader.score_all(texts))), None)
    model.cache, follow = None, DynamicEvaluation(rate=0.1, decay=0.01)
    if name in ("A", "D"):
        scored = rate(lambda: list(follow.score_all(reader, texts)))
        yield Cost(f"{name}, dynamic evaluation", count, None, scored, None)


def _text(document: Document, vocabulary: Vocabulary) -> AnonymizedDocument:
    """A document of rows as one of words."""
    rows = entity_rows(vocabulary.entities)
    first, words = int(rows.start), int(rows.stop)

    def token(row: int) -> str | int:
        if row >= words:
            return vocabulary.words[row - words]
        return int(entity_of_row(row)) if row >= first else "<unk>"

    sentences: Sequence[Sequence[str | int]] = [
        [token(row) for row in sentence[1:-1]] for sentence in document
    ]
    return AnonymizedDocument(name="benchmark", sentences=sentences)
