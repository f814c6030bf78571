"""Salience: mentions followed through sentences that are cut anywhere."""

import numpy as np
import pytest
import torch

from dntm.model.salience import Mentions, Salience, follow
from tests.model.small import BOS, EOS, A, B, build

TEXT = [[BOS, 7, A, 8, A, B, EOS], [BOS, 9, EOS], [BOS, B, EOS]]


def mentions_of(sentences: list[list[int]], before: Mentions) -> tuple[Mentions, Mentions]:
    return follow(build("baseline", "gru").plan([sentences]).layout, before)


def test_sentences_and_times_are_counted() -> None:
    found, after = mentions_of(TEXT, Mentions.none(1, 3))

    times = found.times[:, :2].T.tolist()
    assert times == [
        [0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2],
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2],
    ]
    assert found.ago[2:, 0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found.ago[5:, 1].tolist() == [0, 0, 1, 1, 1, 2, 0, 0]
    assert after.times.tolist() == [[2, 2, 0]]
    assert after.ago[0, :2].tolist() == [2, 0]


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_sentence_read_in_two_pieces_is_one_sentence(cut: int) -> None:
    whole, after = mentions_of(TEXT[:1], Mentions.none(1, 3))

    first, then = mentions_of([TEXT[0][:cut]], Mentions.none(1, 3))
    second, last = mentions_of([TEXT[0][cut:]], then)

    known = whole.times > 0
    ago, times = (np.concatenate(parts) for parts in zip(first, second, strict=True))
    assert np.array_equal(times, whole.times)
    assert np.array_equal(ago[known], whole.ago[known])
    assert np.array_equal(last.times, after.times)


def test_classes_begin_where_they_are_said_to() -> None:
    salience = Salience(entities=1, dim=1)
    with torch.no_grad():
        salience.r_b.copy_(torch.arange(6) * 10.0)
        salience.f_b.copy_(torch.arange(5.0))
    h = torch.zeros(10, 1)

    ago = np.arange(10).reshape(-1, 1)
    by_age = salience.logits(h, Mentions(ago, np.ones_like(ago)))
    by_times = salience.logits(h, Mentions(np.zeros_like(ago), ago))

    assert by_age[:, 0].tolist() == [0, 10, 20, 30, 30, 40, 40, 40, 40, 50]
    assert by_times[:, 0].tolist() == [0, 0, 1, 2, 2, 3, 3, 3, 3, 4]


def test_who_has_not_been_mentioned_gets_no_term() -> None:
    salience = Salience(entities=2, dim=3)
    torch.nn.init.normal_(salience.k)
    torch.nn.init.normal_(salience.f_b)

    found = salience.logits(torch.randn(4, 3), Mentions.none(4, 2))

    assert not found.any()
