"""The pointer, where the comparison with `reference` in test_language_model does not look."""

import numpy as np
import pytest
import torch

from dntm.model import history, pointer
from dntm.model.cache import OwnCache
from dntm.model.config import ModelConfig, Variant
from dntm.model.fast.filling import Blanks, fill
from dntm.model.fast.read import read
from dntm.model.language_model import DynamicTextModel
from dntm.model.trace import trace
from tests.model.small import BOS, EOS, A, B, C, assert_begun_as_whole, assert_distributions, build

TEXT = [[BOS, A, 7, 7, EOS], [BOS, 8, A, B, 9, EOS], [BOS, A, C, A, 7, EOS], [BOS, 7, 8, EOS]]


@pytest.mark.parametrize("variant", ["baseline", "both"])
def test_words_and_moments_sum_to_one_and_scores_are_read_off_them(variant: Variant) -> None:
    model = build(variant, "gru", beyond=True)

    assert_distributions(model, TEXT)


def test_a_sentence_that_is_only_begun_points_where_the_whole_one_does() -> None:
    model = build("both", "attention", beyond=True)
    *earlier, sentence = TEXT
    _, state = model.score(model.plan([earlier]), model.initial_state(1))

    assert_begun_as_whole(model, sentence, state)


def test_nothing_depends_on_what_is_still_to_come() -> None:
    model = build("both", "max", beyond=True)
    positions = range(sum(map(len, TEXT)))
    _, before, _ = model.log_distribution(model.plan([TEXT]), model.initial_state(1), positions)

    changed = [*TEXT[:2], [BOS, A, C, A, 11, EOS], TEXT[3]]
    _, after, _ = model.log_distribution(model.plan([changed]), model.initial_state(1), positions)

    place = sum(map(len, TEXT[:2])) + 4
    torch.testing.assert_close(after[:place], before[:place])
    assert not torch.allclose(after[place], before[place])


def test_without_a_past_it_is_the_model_without_a_pointer() -> None:
    model = build("both", "gru", beyond=True)
    begun = model.plan([[TEXT[0][:1]]])
    _, with_it, _ = model.log_distribution(begun, model.initial_state(1), [0])

    model.pointer = None
    _, without, _ = model.log_distribution(begun, model.initial_state(1), [0])

    torch.testing.assert_close(with_it, without)


def test_what_was_said_too_long_ago_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SIZE", 2)
    model = build("baseline", "gru", beyond=True)
    assert model.pointer is not None
    with torch.no_grad():
        for parameter in model.pointer.parameters():
            parameter.zero_()
        model.pointer.b.fill_(50.0)  # the words' own logits no longer count

    _, log_p, _ = model.log_distribution(
        model.plan([[[BOS, 7, 8, 9, 10, EOS]]]), model.initial_state(1), range(5)
    )

    for position, said in ((1, [7]), (2, [7, 8]), (3, [8, 9]), (4, [9, 10])):
        assert log_p[position, said].exp().tolist() == pytest.approx([1 / len(said)] * len(said))


def test_moments_count_in_powers_of_two() -> None:
    model = build("baseline", "gru", beyond=True)
    assert model.pointer is not None
    ages = torch.arange(float(pointer.AGES)).double() * 0.1
    with torch.no_grad():
        for parameter in model.pointer.parameters():
            parameter.zero_()
        model.pointer.b.fill_(50.0)
        model.pointer.r.copy_(ages)

    # Ages from 5 to 1: the powers 2, 2, 1, 1, 0.
    _, log_p, _ = model.log_distribution(
        model.plan([[[BOS, 7, 8, 9, 10, 6, EOS]]]), model.initial_state(1), [5]
    )

    expected = torch.tensor([2, 2, 1, 1, 0]).double() * 0.1
    torch.testing.assert_close(log_p[0, [7, 8, 9, 10, 6]], expected.log_softmax(0))


@pytest.mark.parametrize("cache", [None, OwnCache(theta=0.7, weight=0.3, kappa=1.5)])
@pytest.mark.parametrize("pointer", [True, False])
def test_entropies_are_those_of_whole_distributions(
    cache: OwnCache | None, *, pointer: bool
) -> None:
    model = build("both", "gru", beyond=True)
    model.cache, model.pointer = cache, model.pointer if pointer else None
    state = model.initial_state(2)
    for sentences in (TEXT[:2], TEXT[2:]):
        window = model.plan([sentences, sentences[::-1]])
        positions = window.layout.predicting.tolist()
        _, log_p, _ = model.log_distribution(window, state, positions)
        expected = -(log_p.exp() * log_p).nan_to_num(0.0).sum(1)

        found = trace(model, window, state)

        np.testing.assert_allclose(np.concatenate(found.entropies), expected, atol=1e-12)
        own = log_p[range(len(positions)), window.layout.targets]
        np.testing.assert_allclose(np.concatenate(found.scores), own, atol=1e-12)
        state = found.state


def test_what_was_said_longest_ago_has_the_last_row() -> None:
    model = build("baseline", "gru", beyond=True)
    assert model.pointer is not None
    with torch.no_grad():
        for parameter in model.pointer.parameters():
            parameter.zero_()
        model.pointer.b.fill_(50.0)
        model.pointer.r[-1] = 1.0
    sentence = [BOS, 7, *[8] * 1100, EOS]

    _, log_p, _ = model.log_distribution(
        model.plan([[sentence]]), model.initial_state(1), [len(sentence) - 2]
    )

    old = 1101 - 2 ** (pointer.AGES - 1) + 1  # moments of that age, the 7 among them
    share = np.e / (old * np.e + 1101 - old)
    assert log_p[0, 7].exp().item() == pytest.approx(share, rel=1e-9)


def test_gaps_look_back_no_farther_than_other_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SIZE", 3)
    model = build("both", "max", beyond=True)
    text = [[BOS, 7, A, 8, B, EOS], [BOS, 9, A, 7, 8, EOS]]
    found = read(model, model.plan([text]), model.initial_state(1), cells=True)
    blanks = Blanks(np.array([8]), np.array([0, 0]), np.array([1, 2]))

    gap, rest = fill(model, found, blanks)

    for entity, *values in ((A, gap[0], rest[0]), (B, gap[1], rest[1])):
        filled = [text[0], [BOS, 9, entity, 7, 8, EOS]]
        [scores], _ = model.score(model.plan([filled]), model.initial_state(1))
        assert values == pytest.approx([scores[6], scores[7:].sum()], abs=1e-12)


def test_it_learns_that_a_document_says_its_own_word_again() -> None:
    """Each document has a word of its own, which no weights can know."""
    rng = np.random.default_rng(1)
    texts = [[[BOS, 4, word, EOS]] * 4 for word in rng.integers(5, 25, size=48).tolist()]

    def trained(*, pointer: bool) -> float:
        config = ModelConfig(
            vocabulary=25,
            entities=1,
            variant="baseline",
            pointer=pointer,
            embedding_dim=12,
            hidden_dim=12,
        )
        model = DynamicTextModel(config, torch.Generator().manual_seed(3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for step in range(40):
            batch = texts[8 * (step % 5) : 8 * (step % 5) + 8]
            loss, tokens, _ = model.loss(model.plan(batch), model.initial_state(8))
            optimizer.zero_grad()
            (loss / tokens).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        loss, tokens, _ = model.loss(model.plan(texts[40:]), model.initial_state(8))
        return float(loss.detach()) / tokens

    assert trained(pointer=True) < 0.7 * trained(pointer=False)
