import math

import pytest
from torch import Tensor

from dntm.reader.reader import Reader
from dntm.reader.text import as_text
from tests.reader.small import STORY, TALES, VOCABULARY, anonymized, said


def total(scores: Tensor) -> float:
    return float(scores.sum())


def count(scores: Tensor) -> float:
    return float(len(scores))


def test_token_score_gives_log_probabilities_surprisals_or_probabilities(reader: Reader) -> None:
    tokens = [t for t in reader.read(STORY, unit="nats").tokens if not t.end]
    nats = [t.surprisal for t in tokens]

    [[*logs], _] = reader.token_score([STORY, "She left."])
    [bits] = reader.token_score(STORY, surprisal=True, base_two=True)
    [chances] = reader.token_score(STORY, prob=True)

    assert [word for word, *_ in logs] == [t.word for t in tokens]
    assert [value for _, value, *_ in logs] == pytest.approx([-n for n in nats])
    assert [value for _, value, *_ in bits] == pytest.approx([n / math.log(2) for n in nats])
    assert [value for _, value, *_ in chances] == pytest.approx([math.exp(-n) for n in nats])


def test_ends_of_sentences_count_on_request(reader: Reader) -> None:
    [[*with_ends]] = reader.token_score(STORY, eos_token=True)

    assert sum(word == "<eos>" for word, *_ in with_ends) == 4
    assert sum(value for _, value, *_ in with_ends) == pytest.approx(
        -reader.read(STORY, unit="nats").surprisal
    )


def test_sequence_score_reduces_the_log_probabilities(reader: Reader) -> None:
    scored = reader.token_score(TALES)

    means = reader.sequence_score(TALES)
    sums = reader.sequence_score(TALES, reduction=lambda x: -x.sum(0).item(), base_two=True)

    for tokens, mean, total in zip(scored, means, sums, strict=True):
        values = [value for _, value, *_ in tokens]
        assert mean == pytest.approx(sum(values) / len(values))
        assert total == pytest.approx(-sum(values) / math.log(2))


def test_conditional_score_counts_only_what_follows_the_prefix(reader: Reader) -> None:
    prefix = "Ann met a zork. The"
    [tokens] = reader.token_score(prefix + " zork left.")

    found = reader.conditional_score(prefix, ["zork left.", "man sat."], reduction=total)

    assert found[0] == pytest.approx(sum(value for _, value, *_ in tokens[6:]))
    assert len(tokens[6:]) == 3
    assert reader.conditional_score([prefix], ["zork left."]) == pytest.approx([found[0] / 3])


def test_a_mention_across_the_border_stays_words(reader: Reader) -> None:
    prefix, stimulus = "She met Big Bo. Big Bo left Big", "Bo at home. He sat."
    apart = anonymized("She met 1 .", "1 left Big Bo at home .", "He sat .")
    [scored] = reader.token_score(as_text(apart))

    [found] = reader.conditional_score(prefix, stimulus, reduction=total, entities="names")

    assert [word for word, *_ in scored[-7:]] == ["Bo", "at", "home", ".", "He", "sat", "."]
    assert found == pytest.approx(sum(value for _, value, *_ in scored[-7:]))


def test_an_initial_at_the_border_is_one_word_and_half_a_word_is_refused(reader: Reader) -> None:
    assert reader.conditional_score("He met J.", "Smith at home.", reduction=count) == [4]
    assert reader.conditional_score("e\u0301a met", "the man", reduction=count) == [2]
    with pytest.raises(ValueError, match="the border is inside 'unknown'"):
        reader.conditional_score("She left un", "known .", separator="")


def test_a_rank_is_a_words_place_among_all_rows(any_reader: Reader) -> None:
    reading = any_reader.read(STORY)

    [scored] = any_reader.token_score(
        STORY, surprisal=True, base_two=True, rank=True, eos_token=True
    )
    [words, _] = any_reader.token_score([STORY, "She left."], rank=True)

    ranks = iter(scored)
    position = any_reader.position("")
    for sentence, streamed in zip(reading.sentences, any_reader.stream(STORY), strict=True):
        for place, token in enumerate(sentence.tokens):
            found = any_reader.predictions(position, said(sentence)[:place], k=len(VOCABULARY))
            likelier = sum(c.probability > 2**-token.surprisal * (1 + 1e-9) for c in found.dynamic)
            word, surprisal, rank = next(ranks)
            assert (word, rank) == (token.word, 1 + likelier)
            assert surprisal == pytest.approx(token.surprisal)
        assert streamed.position is not None
        position = streamed.position
    assert [(word, rank) for word, _, rank in words] == [
        (word, rank) for word, _, rank in scored if word != "<eos>"
    ]


def test_invalid_arguments_are_refused(reader: Reader) -> None:
    with pytest.raises(ValueError, match="prob and surprisal are both set"):
        reader.token_score(STORY, surprisal=True, prob=True)
    with pytest.raises(ValueError, match="prob and base_two"):
        reader.sequence_score(STORY, prob=True, base_two=True)
    with pytest.raises(ValueError, match="2 prefixes for 1 stimuli"):
        reader.conditional_score(["a", "b"], ["left"])
    with pytest.raises(ValueError, match="no word follows the prefix"):
        reader.conditional_score("Ann left", "")
