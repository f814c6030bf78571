"""Extensions, where the comparison with their reference does not look."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.extensions import pointer
from dntm.model.extensions.naming import Naming, nameable
from dntm.model.extensions.pointer import Pointer
from dntm.model.extensions.salience import MentionState, follow
from dntm.model.extensions.unseen_pooling import LATER
from dntm.model.language_model import DynamicTextModel
from tests.model.small import build
from tests.model.texts import BOS, EOS, A, B, C


def copying(r: Tensor) -> DynamicTextModel:
    """A model that only copies, with a logit for each age of a copy."""
    model = build("baseline", extensions=("pointer",))
    term = model.terms["pointer"]
    assert isinstance(term, Pointer)
    with torch.no_grad():
        for parameter in term.parameters():
            parameter.zero_()
        term.b.fill_(20_000.0)
        term.r.copy_(r)
    return model


@pytest.mark.parametrize("sentences_per_window", [1, 2])
def test_tokens_beyond_the_size_of_the_cache_are_not_copied(
    sentences_per_window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointer, "SIZE", 2)
    model, text = copying(torch.zeros(pointer.AGES)), [[BOS, 7, 8, EOS], [BOS, 9, 10, EOS]]

    state, found = model.initial_state(1), []
    for start in range(0, 2, sentences_per_window):
        window = model.plan([text[start : start + sentences_per_window]])
        positions = window.layout.predicting.tolist()
        _, log_p, state = model.log_distribution(window, state, positions)
        found.append(log_p)

    copied = {1: [7], 2: [7, 8], 3: [8, EOS], 4: [EOS, 9], 5: [9, 10]}
    for position, rows in copied.items():
        expected = [1 / len(rows)] * len(rows)
        assert torch.cat(found)[position, rows].exp().tolist() == pytest.approx(expected)


def test_old_entries_share_the_last_class_of_ages() -> None:
    model = copying(torch.eye(pointer.AGES)[-1])
    window = model.plan([[[BOS, 7, *[8] * 1100, EOS]]])

    log_p = model.log_distribution(window, model.initial_state(1), [1101])[1][0]

    old = 1101 - 2 ** (pointer.AGES - 1) + 1  # entries of the last class, 7 among them
    assert log_p[7].exp().item() == pytest.approx(math.e / (old * math.e + 1101 - old), rel=1e-9)


def test_an_entity_out_of_order_is_improbable_and_no_error() -> None:
    model = build("both", "max", ("unseen-pooling",))

    (scores,), _ = model.score(model.plan([[[BOS, C, 7, EOS]]]), model.initial_state(1))

    assert -LATER - 20 < scores[0] < -LATER / 2
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("cut", range(7))
def test_mentions_are_counted_even_if_a_sentence_is_read_in_two_pieces(cut: int) -> None:
    first, rest = [BOS, 7, A, 8, A, B, EOS], [[BOS, 9, EOS], [BOS, B, EOS]]
    model, state, found = build("baseline"), MentionState.initial(1, 3), []
    for part in ([first[:cut]], [first[cut:], *rest]) if cut else ([first, *rest],):
        mentions, state = follow(model.plan([part]), state)
        found.append(mentions)
    ago, times = (np.concatenate(parts) for parts in zip(*found, strict=True))

    assert times[:, :2].T.tolist() == [
        [0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2],
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2],
    ]
    assert ago[2:, 0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert ago[5:, 1].tolist() == [0, 0, 1, 1, 1, 2, 0, 0]


def test_a_candidate_drawn_one_time_in_four_counts_fourfold() -> None:
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(4))
    x_e, some, answers = x[:3], x[3:], torch.tensor([0, 0, 0])
    four_times = torch.cat((some, some[1:], some[1:], some[1:]))

    def loss(x: Tensor, included: Tensor) -> Tensor:
        return Naming().loss(x_e, x, answers, included.log(), torch.ones_like(answers))

    sampled = loss(some, torch.tensor([1.0, 0.25, 0.25]))

    torch.testing.assert_close(sampled, loss(four_times, torch.ones(9)))


def test_signs_numbers_letters_and_entities_are_no_answers() -> None:
    words = Vocabulary(("the", "a", ",", "1990", "dog", "n't", "'s"), entities=2)

    assert np.array(words.labels())[nameable(words)].tolist() == ["the", "dog", "n't"]


def test_later_words_and_spelled_unknown_words_are_not_copied() -> None:
    model = copying(torch.zeros(pointer.AGES))
    term = model.terms["pointer"]
    assert isinstance(term, Pointer)
    term.copies_unknown = False
    rows = [[BOS, 0, 7, 0, 0, 8, EOS]]
    window, state = model.plan([rows]), model.initial_state(1)

    asked, _, _ = model.log_distribution(window, state, [0, 4])

    assert asked.copies is not None
    copied = [asked.copies.log_sum_of(torch.tensor([row, row])).tolist() for row in (0, 7)]
    assert max(*copied[0], copied[1][0]) < -1000 < copied[1][1]
