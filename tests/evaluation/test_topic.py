"""Topic: written out in numpy; what it changes and what it does not."""

import numpy as np
import torch

from dntm.evaluation.meaning import TOPIC, Topic, topics_of, with_topic
from dntm.evaluation.passages import Passage
from dntm.evaluation.word_baselines import SMOOTHING

ENTITIES, WORDS = 2, 9
X = torch.randn(3 + ENTITIES + WORDS, 4, generator=torch.Generator().manual_seed(4)).double()


def plain_topic(sentences: list[list[int]]) -> np.ndarray:
    """c_e of an entity that these sentences mention."""
    x, first = X.numpy(), 3 + ENTITIES
    zipf = [1 / rank for rank in range(1, WORDS + 1)]
    share = [value / sum(zipf) for value in zipf]
    weight = [SMOOTHING / (SMOOTHING + p) for p in share]
    rows = [
        np.sqrt(p) * a * x[first + i] for i, (p, a) in enumerate(zip(share, weight, strict=True))
    ]
    common = np.linalg.svd(np.array(rows))[2][0]
    total = sum(weight[row - first] * x[row] for s in sentences for row in s if row >= first)
    return np.asarray(total - common * (common @ total))


def test_a_topic_is_that_of_plain_numpy() -> None:
    sentences = [[1, 3, 6, 6, 9, 2], [1, 0, 3, 13, 4, 2]]

    found = sum(Topic(X, ENTITIES).of(sentence) for sentence in sentences)

    np.testing.assert_allclose(found, plain_topic(sentences), atol=1e-12)


def test_a_sentence_counts_once_for_each_entity_it_mentions() -> None:
    sentences = [[1, 3, 6, 4, 3, 2], [1, 4, 8, 2], [1, 3, 9, 2]]
    passage = Passage(sentences, {3: 7, 4: 8})

    found = topics_of(passage, Topic(X, ENTITIES))

    first, second, third = sentences
    expected = [[first], [first], [first], [first, second], [first, third]]
    np.testing.assert_allclose(found, [plain_topic(read) for read in expected], atol=1e-12)


def test_the_topic_turns_a_guess_and_one_without_words_around_stays() -> None:
    x_e, c_e = X[:2], torch.stack((X[5], torch.zeros(4).double()))

    g_e = with_topic(x_e, c_e)

    x, c = x_e[0], c_e[0]
    torch.testing.assert_close(g_e[0], x + TOPIC * x.norm() * c / c.norm())
    assert g_e[1].equal(x_e[1])
