"""Documents to time a model on: a sample of a dataset, or random ones like it.

What decides how fast a model reads are sentence counts and lengths, entities and mentions. Those of
random documents follow OntoGUM: 22.7 sentences a document, 18 tokens a sentence, 14 entities a
document, 3.3 mentions an entity. Their words mean nothing.
"""

from collections.abc import Iterator

import numpy as np

from dntm.corpus.dataset import Dataset
from dntm.corpus.vocabulary import BOS, EOS
from dntm.schedule import FIRST

SENTENCES, TOKENS, ENTITIES, MENTIONS = 22.7, 18.0, 14.0, 3.3

Document = list[list[int]]


def sample_documents(dataset: Dataset, count: int, seed: int) -> list[Document]:
    """So many documents of the train split, drawn with the seed, as rows of its vocabulary."""
    documents = list(dataset.documents("train"))
    if len(documents) < count:
        raise ValueError(
            f"{dataset.folder} has {len(documents)} documents in its train split, "
            f"expected at least {count}"
        )
    chosen = np.random.default_rng(seed).permutation(len(documents))[:count]
    encode = dataset.vocabulary.encode
    return [[encode(sentence) for sentence in documents[d].sentences] for d in chosen]


def random_documents(
    seed: int, *, vocabulary: int, entities: int, sentences: int | None = None
) -> Iterator[Document]:
    """Any number of random documents, always the same for a seed."""
    random = np.random.default_rng(seed)
    while True:
        yield random_document(random, vocabulary=vocabulary, entities=entities, sentences=sentences)


def random_document(
    random: np.random.Generator,
    *,
    vocabulary: int,
    entities: int,
    sentences: int | None = None,
) -> Document:
    """One document as rows of a vocabulary; of random length if no number of sentences is given."""
    count = sentences or max(2, round(random.gamma(4, SENTENCES / 4)))
    lengths = np.clip(random.gamma(2.2, TOKENS / 2.2, size=count).round().astype(int), 2, 60)
    text = [random.integers(FIRST + entities, vocabulary, size=length) for length in lengths]
    present = int(np.clip(round(ENTITIES * count / SENTENCES), 1, entities))
    often = np.arange(1, present + 1) ** -0.7
    mentions = round(MENTIONS * ENTITIES * count / SENTENCES)
    chosen = random.choice(present, size=max(0, mentions - present), p=often / often.sum())
    for entity in (*range(present), *chosen):
        sentence = text[random.integers(count)]
        sentence[random.integers(len(sentence))] = -1 - entity
    return _number_entities(text)


def _number_entities(text: list[np.ndarray]) -> Document:
    """Rows for the entities, marked by numbers below zero, in order of first appearance."""
    rows: dict[int, int] = {}
    return [
        [BOS, *(rows.setdefault(t, FIRST + len(rows)) if t < 0 else t for t in s.tolist()), EOS]
        for s in text
    ]
