"""Cost of our models and every baseline: training, scoring, cloze test, parameters, memory.

All read the same batches, and the best time of some rounds counts. Memory is that of a fresh
process which trains on one batch. An n-gram model learns by counting.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import tyro

from benchmarks.documents import Document, make_batches
from benchmarks.timing import print_machine, seconds
from benchmarks.train import TrainingOptions, make_model, trainer, training_memory_gb
from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.vocabulary import Vocabulary, entity_rows
from dntm.evaluation.cloze import ClozeText
from dntm.model.baselines.ngram import NGram
from dntm.model.scorer import Scorer

MODELS: dict[str, dict[str, Any]] = {
    "A": {"variant": "baseline"},
    "D": {"variant": "both"},
    "D, salience": {"variant": "both", "extensions": ("salience",)},
    "D, salience, pointer": {"variant": "both", "extensions": ("salience", "pointer")},
    "Transformer": {"variant": "baseline", "core": "transformer"},
    "after EntityNLM": {"variant": "baseline", "extensions": ("entity-nlm",)},
}
"""Settings of the models that are trained."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one model; rates are tokens per second."""

    name: str
    parameters: int
    trained: float
    scored: float
    candidates: float | None
    """Candidates of the cloze test per second, for models that can fill gaps."""
    peak_memory_gb: float | None


def measure(options: TrainingOptions) -> list[Cost]:
    """Time every model; a dataset determines the size of the vocabulary."""
    config, batches = make_batches(options.model, options.dataset, options.batch, options.seed)
    documents = list(chain.from_iterable(batches))
    words = config.vocabulary - entity_rows(config.entities).stop
    vocabulary = Vocabulary(tuple(f"w{i}" for i in range(words)), config.entities)
    texts = [_text(rows, vocabulary) for rows in documents]
    tokens = sum(len(sentence) - 1 for rows in documents for sentence in rows)

    gaps = [ClozeText.of(text) for text in texts]
    candidates = sum(len(gap.candidates) for text in gaps for gap in text.gaps)

    def rate(work: Callable[[], object], amount: int = tokens) -> float:
        return amount / min(seconds(work) for _ in range(options.rounds))

    def cost(name: str, settings: dict[str, Any]) -> Cost:
        sizes = replace(config, **settings)
        model = make_model(sizes, options.seed)
        train, scorer = trainer(model), Scorer(model, vocabulary)
        return Cost(
            name,
            sum(p.numel() for p in model.parameters()),
            rate(lambda: list(map(train, batches))),
            rate(lambda: list(scorer.score(texts))),
            rate(lambda: list(scorer.complete((t.document, t.gaps) for t in gaps)), candidates),
            training_memory_gb(sizes, batches[0], options.seed),
        )

    rows = np.array([row for text in documents for sentence in text for row in sentence])
    ngrams = NGram(rows, vocabulary)
    counted = rate(lambda: NGram(rows, vocabulary))
    scored = rate(lambda: list(ngrams.score(texts)))
    return [
        *(cost(name, settings) for name, settings in MODELS.items()),
        Cost("5-gram, Kneser-Ney", ngrams.parameters, counted, scored, None, None),
    ]


def _text(document: Document, vocabulary: Vocabulary) -> AnonymizedDocument:
    """Turn a document of rows into one of tokens."""
    rows = entity_rows(vocabulary.entities)

    def token(row: int) -> Token:
        if row >= rows.stop:
            return str(vocabulary.words[row - rows.stop])
        return vocabulary.entity_at(row) or "<unk>"

    sentences = [[token(row) for row in sentence[1:-1]] for sentence in document]
    return AnonymizedDocument(name="benchmark", sentences=sentences)


def main(options: TrainingOptions) -> None:
    """Print one row per model."""
    options.set_threads()
    found = measure(options)
    print_machine()
    titles = ("parameters", "trained/s", "scored/s", "candidates/s", "memory GB")
    print(f"{'':22}" + "".join(f"{title:>14}" for title in titles))
    for cost in found:
        filled = "" if cost.candidates is None else f"{cost.candidates:,.0f}"
        memory = "" if cost.peak_memory_gb is None else f"{cost.peak_memory_gb:.2f}"
        rates = f"{cost.trained:14,.0f}{cost.scored:14,.0f}{filled:>14}"
        print(f"{cost.name:22}{cost.parameters:14,}{rates}{memory:>14}")
    options.save({"text": options.text, "baselines": [asdict(cost) for cost in found]})


if __name__ == "__main__":
    main(tyro.cli(TrainingOptions, description=__doc__))
