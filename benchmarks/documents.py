"""Documents to train on: a sample of a dataset, or random documents like OntoGUM's.

Speed depends on the number and length of sentences, entities and mentions. OntoGUM has 22.7
sentences per document, 18 tokens per sentence, 14 entities per document, 3.3 mentions per entity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from dntm.corpus.dataset import Dataset
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import BOS, EOS, Vocabulary, entity_rows, row_of_entity
from dntm.model.config import ModelConfig

SENTENCES, TOKENS, ENTITIES, MENTIONS = 22.7, 18.0, 14.0, 3.3
BATCHES = 3
"""Batches per round."""

Document = Sequence[Sequence[int]]


def make_batches(
    config: ModelConfig, dataset: Path | None, batch: int, seed: int
) -> tuple[ModelConfig, list[list[Document]]]:
    """The batches of a round, and the configuration with the vocabulary they need."""
    if dataset is None:
        documents = random_documents(config, batch * BATCHES, seed)
    else:
        opened = Dataset.open(dataset)
        documents = sample_documents(opened, batch * BATCHES, seed)
        vocabulary = opened.vocabulary
        config = replace(config, vocabulary=len(vocabulary), entities=vocabulary.entities)
    return config, [documents[start : start + batch] for start in range(0, len(documents), batch)]


def sample_documents(
    dataset: Dataset, count: int, seed: int, vocabulary: Vocabulary | None = None
) -> list[Document]:
    """Draw documents of the train split, as rows of a vocabulary, by default its own."""
    documents = list(dataset.documents("train"))
    if len(documents) < count:
        raise ValueError(
            f"{dataset.folder} has {len(documents)} documents in its train split, "
            f"expected at least {count}"
        )
    chosen = np.random.default_rng(seed).permutation(len(documents))[:count]
    return [encode(documents[d], vocabulary or dataset.vocabulary).sentences for d in chosen]


def random_documents(
    config: ModelConfig, count: int, seed: int, sentences: int | None = None
) -> list[Document]:
    """Random documents; of random length if `sentences` is omitted."""
    return list(islice(_random_documents(config, seed, sentences), count))


def _random_documents(config: ModelConfig, seed: int, sentences: int | None) -> Iterator[Document]:
    random = np.random.default_rng(seed)
    words = entity_rows(config.entities).stop
    while True:
        count = sentences or max(2, round(random.gamma(4, SENTENCES / 4)))
        lengths = np.clip(random.gamma(2.2, TOKENS / 2.2, size=count).round().astype(int), 2, 60)
        text = [random.integers(words, config.vocabulary, size=length) for length in lengths]
        present = int(np.clip(round(ENTITIES * count / SENTENCES), 1, config.entities))
        often = np.arange(1, present + 1) ** -0.7
        mentions = round(MENTIONS * ENTITIES * count / SENTENCES)
        chosen = random.choice(present, size=max(0, mentions - present), p=often / often.sum())
        for entity in (*range(present), *chosen):
            sentence = text[random.integers(count)]
            sentence[random.integers(len(sentence))] = -1 - entity
        yield _number_entities(text)


def _number_entities(text: list[np.ndarray]) -> Document:
    """Replace entities, which are negative numbers, by rows in order of first appearance."""
    rows: dict[int, int] = {}

    def row(token: int) -> int:
        return rows.setdefault(token, row_of_entity(1 + len(rows))) if token < 0 else token

    return [[BOS, *map(row, sentence.tolist()), EOS] for sentence in text]
