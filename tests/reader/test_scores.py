import math

import pytest

from dntm.reader.reader import Reader
from tests.reader.small import STORY, TALES


def test_token_score_gives_log_probabilities_surprisals_or_probabilities(reader: Reader) -> None:
    tokens = [t for t in reader.read(STORY, unit="nats").tokens if not t.end]
    nats = [t.surprisal for t in tokens]

    [[*logs], _] = reader.token_score([STORY, "She left."])
    [bits] = reader.token_score(STORY, surprisal=True, base_two=True)
    [chances] = reader.token_score(STORY, prob=True)

    assert [word for word, _ in logs] == [t.word for t in tokens]
    assert [value for _, value in logs] == pytest.approx([-n for n in nats])
    assert [value for _, value in bits] == pytest.approx([n / math.log(2) for n in nats])
    assert [value for _, value in chances] == pytest.approx([math.exp(-n) for n in nats])


def test_ends_of_sentences_count_on_request(reader: Reader) -> None:
    [[*with_ends]] = reader.token_score(STORY, eos_token=True)

    assert sum(word == "<eos>" for word, _ in with_ends) == 4
    assert sum(value for _, value in with_ends) == pytest.approx(
        -reader.read(STORY, unit="nats").surprisal
    )


def test_sequence_score_reduces_the_log_probabilities(reader: Reader) -> None:
    scored = reader.token_score(TALES)

    means = reader.sequence_score(TALES)
    sums = reader.sequence_score(TALES, reduction=lambda x: -x.sum(0).item(), base_two=True)

    for tokens, mean, total in zip(scored, means, sums, strict=True):
        values = [value for _, value in tokens]
        assert mean == pytest.approx(sum(values) / len(values))
        assert total == pytest.approx(-sum(values) / math.log(2))


def test_conditional_score_counts_only_what_follows_the_prefix(reader: Reader) -> None:
    prefix = "Ann met a zork. The"
    [tokens] = reader.token_score(prefix + " zork left.")

    found = reader.conditional_score(
        prefix, ["zork left.", "man sat."], reduction=lambda x: x.sum().item()
    )

    assert found[0] == pytest.approx(sum(value for _, value in tokens[6:]))
    assert len(tokens[6:]) == 3
    assert reader.conditional_score([prefix], ["zork left."]) == pytest.approx([found[0] / 3])


def test_a_name_of_several_words_in_the_prefix_counts_as_its_words(reader: Reader) -> None:
    prefix = "The man met Big Bo. He left"
    [tokens] = reader.token_score(prefix + " Big Bo at home.")

    [found] = reader.conditional_score(
        prefix, "Big Bo at home.", reduction=lambda x: x.sum().item()
    )

    assert [word for word, _ in tokens[-4:]] == ["Big Bo", "at", "home", "."]
    assert found == pytest.approx(sum(value for _, value in tokens[-4:]))


def test_scores_that_cannot_be_are_refused(reader: Reader) -> None:
    with pytest.raises(ValueError, match="prob and surprisal are both set"):
        reader.token_score(STORY, surprisal=True, prob=True)
    with pytest.raises(ValueError, match="prob and base_two"):
        reader.sequence_score(STORY, prob=True, base_two=True)
    with pytest.raises(ValueError, match="2 prefixes for 1 stimuli"):
        reader.conditional_score(["a", "b"], ["left"])
    with pytest.raises(ValueError, match="no word comes after the prefix"):
        reader.conditional_score("Ann left", "")
