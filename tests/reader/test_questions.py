import math
from pathlib import Path
from typing import Any

import pytest

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.vocabulary import SPECIALS
from dntm.reader.reader import Reader
from dntm.reader.text import as_text
from tests.reader.small import STORY, VOCABULARY, WORDS, checkpoint, said

EVERYTHING = len(VOCABULARY)
CONTENT = "sat table river met left old man kept rowed home".split()


def test_predictions_are_distributions_of_both_models(reader: Reader) -> None:
    found = reader.predictions(STORY, "Ann met the", k=EVERYTHING)

    for candidates in (found.dynamic, found.static):
        assert sum(c.probability for c in candidates) == pytest.approx(1)
        assert sum(c.static_probability for c in candidates) == pytest.approx(1)
    assert found.dynamic[0].probability == max(c.probability for c in found.dynamic)
    static = [c.static_probability for c in found.static]
    assert static == sorted(static, reverse=True)


def test_predictions_agree_with_surprisals(any_reader: Reader) -> None:
    text = STORY + " Ann met the zork at home ."
    *_, last = any_reader.read(text).sentences
    position = any_reader.position(STORY)

    words = said(last)
    for place, token in enumerate(last.tokens):
        found = any_reader.predictions(position, words[:place], k=EVERYTHING)
        [candidate] = [c for c in found.dynamic if (c.entity, c.word) == (token.entity, token.word)]

        assert candidate.word == token.word
        assert -math.log2(candidate.probability) == pytest.approx(token.surprisal, abs=1e-9)
        assert -math.log2(candidate.static_probability) == pytest.approx(
            token.static_surprisal, abs=1e-9
        )
    by_name = any_reader.predictions(position, "Ann met the", k=EVERYTHING)
    assert by_name == any_reader.predictions(position, [1, "met", "the"], k=EVERYTHING)


def test_entities_not_yet_mentioned_have_no_name(reader: Reader) -> None:
    first = next(reader.stream("the man left. Ann met Ann."))
    assert first.position is not None

    words = {c.word for c in reader.predictions(first.position, k=EVERYTHING).dynamic}

    assert words == {*SPECIALS, "[1]", "[2]", "[3]", "[4]", *WORDS}


def test_fill_ranks_by_the_surprisal_of_the_whole_sentence(any_reader: Reader) -> None:
    found = any_reader.fill("Ann met [] at home.", STORY, candidates=0, function_words=True)

    assert [f.surprisal for f in found] == sorted(f.surprisal for f in found)
    assert len(found) == len(WORDS) + 2
    # A word with a capital inside a sentence would be a name.
    small = [f for f in found if not f.entity and f.word.islower()]
    for filling in (small[0], small[-1], next(f for f in found if f.entity == 2)):
        text = any_reader.read(STORY + f" Ann met {filling.word} at home.")
        last = text.sentences[-1].tokens
        assert sum(t.surprisal for t in last) == pytest.approx(filling.surprisal, abs=1e-9)
        assert sum(t.static_surprisal for t in last) == pytest.approx(
            filling.static_surprisal, abs=1e-9
        )


def test_fill_restricts_the_candidates(reader: Reader) -> None:
    entities = reader.fill("[1] met [].", STORY, choose="entities")
    words = reader.fill("[1] met [].", STORY, choose="words", candidates=3)

    expected = set()
    likely = reader.predictions(STORY, "[1] met", k=EVERYTHING)
    for candidates in (likely.dynamic, likely.static):
        expected.update([c.word for c in candidates if c.word in CONTENT][:3])
    assert {f.entity for f in entities} == {1, 2}
    assert {f.word for f in words} == expected


@pytest.mark.parametrize(
    ("sentence", "asked", "problem"),
    [
        ("[1] met [].", {"candidates": -3}, "candidates is -3, expected 0"),
        ("[1] met [].", {"choose": "nouns"}, "'nouns', expected one of both, words, entities"),
        ("Ann left.", {}, "0 gaps, expected one"),
        ("[] met [].", {}, "2 gaps, expected one"),
    ],
)
def test_an_impossible_question_is_refused(
    reader: Reader, sentence: str, asked: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        reader.fill(sentence, STORY, **asked)


def test_an_entity_that_the_text_lacks_is_an_error(reader: Reader) -> None:
    missing = r"\[9\] is not an entity of the text: expected \[1\] to \[2\]"

    with pytest.raises(ValueError, match=missing):
        reader.fill("[9] sat down at the [] .", STORY)
    asked: tuple[str | list[Token], ...] = ("[9] met", [9, "met"])
    for prefix in asked:
        with pytest.raises(ValueError, match=missing):
            reader.predictions(STORY, prefix)
    with pytest.raises(ValueError, match="the text has none"):
        reader.fill("[1] sat [] .")


def test_a_continuation_contains_only_known_words_and_entities(reader: Reader) -> None:
    position = reader.position(STORY)
    drawn = [
        reader.continue_text(position, sentences=4, tokens=8, top_p=1.0, seed=seed)
        for seed in range(8)
    ]

    words = {word for c in drawn for sentence in c.sentences for word in sentence}
    entities = {e for c in drawn for sentence in c.entities for e in sentence}
    assert words == {*WORDS, "Ann", "zork"}
    assert entities == {0, 1, 2}
    assert all(sentence for c in drawn for sentence in c.sentences)


def test_temperature_zero_takes_the_most_likely_token(any_reader: Reader) -> None:
    found = any_reader.continue_text(STORY, sentences=1, tokens=8, temperature=0.0)
    position = any_reader.position(STORY)

    so_far: list[str | int] = []
    for word, entity in zip(found.sentences[0], found.entities[0], strict=True):
        likely = any_reader.predictions(position, so_far, k=EVERYTHING).dynamic
        allowed = [
            c for c in likely if c.word in {*WORDS, "Ann", "zork", *["<eos>"][: len(so_far)]}
        ]
        assert allowed[0].word == word
        so_far.append(entity or word)


def test_each_sampled_sentence_is_read_before_the_next(tmp_path: Path) -> None:
    reader = Reader.from_pretrained(checkpoint(tmp_path / "d", seed=2))

    found = reader.continue_text(STORY, sentences=2, tokens=8, temperature=0.0)

    read = [[word.token for word in s] for s in reader.prepare(STORY).sentences]
    first = zip(found.sentences[0], found.entities[0], strict=True)
    history = AnonymizedDocument(name="d", sentences=[*read, [e or word for word, e in first]])
    second = reader.continue_text(as_text(history), sentences=1, tokens=8, temperature=0.0)
    assert [w.replace("Ann", "[1]").replace("zork", "[2]") for w in found.sentences[1]] == list(
        second.sentences[0]
    )
    assert found.sentences[0] != found.sentences[1]


@pytest.mark.usefixtures("unchecked")
def test_sample_frequencies_follow_the_distribution(reader: Reader) -> None:
    position = reader.position(STORY)
    allowed = {
        c.word: c.probability
        for c in reader.predictions(position, k=EVERYTHING).dynamic
        if c.word in {*WORDS, "Ann", "zork"}
    }
    best = max(allowed, key=allowed.__getitem__)
    share = allowed[best] / sum(allowed.values())

    firsts = [
        reader.continue_text(position, sentences=1, tokens=1, top_p=1.0, seed=seed).sentences[0][0]
        for seed in range(200)
    ]

    error = math.sqrt(share * (1 - share) / 200)
    assert firsts.count(best) / 200 == pytest.approx(share, abs=4 * error)


def test_a_tiny_top_p_takes_the_most_likely_token(reader: Reader) -> None:
    narrow = reader.continue_text(STORY, top_p=1e-9, tokens=8, seed=5)

    assert narrow == reader.continue_text(STORY, tokens=8, temperature=0.0)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("temperature", value) for value in (-1.0, math.nan, math.inf)),
        *(("top_p", value) for value in (0.0, 1.5, math.nan)),
        *(("sentences", 0), ("tokens", 0), ("seed", 2**64)),
    ],
)
def test_impossible_sampling_is_refused(reader: Reader, setting: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{value}.*expected"):
        reader.continue_text(STORY, **{setting: value})  # type: ignore[arg-type]
