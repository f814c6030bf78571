"""How fast the cloze test runs, beside the naive way: every candidate's sentence read in full.

The naive way is timed on the first gaps, one candidate after the other, and scaled to all
candidates. Weights are random: they change nothing about the time.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from dntm.benchmark.machine import clock_name, peak_memory_gb, seconds
from dntm.benchmark.train import make_model
from dntm.corpus.dataset import Dataset
from dntm.evaluation.cloze import ClozeText
from dntm.model.config import ModelConfig
from dntm.model.text_model import TextModel

NAIVE = 200
"""Candidates filled in the naive way."""


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

    def as_plain(self) -> dict[str, Any]:
        """Everything measured, for JSON."""
        return asdict(self)


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
