"""Tables of words; datasets and readers have the same rows."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dntm.corpus.dataset import Dataset
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.entity_slots import encode
from dntm.reader.reader import Reader
from dntm.reader.reading import Reading
from dntm.reader.text import prepare
from tests.reader.small import STORY, crowd

STORIES = [
    STORY,
    "“The old man,” she said, “met Ann’s zork.” Ann left—quietly—and sat down…",
    "Dr. Karol Vask, Ph.D., met Mr. Orr at 10 a.m. on Jan. 5. Vask left.",
    "He sat 😀. She left 👩‍👩‍👧 and 👍🏽! ☺️ The man met them.",
    "Cafe\u0301 Zoe\u0308 sat. The cafe\u0301 met nai\u0308ve Zoe\u0308.",
    "« Le vieil homme est parti. » Elle rit : « Oui ! » Zoé n'est pas là.",
    "In 1871, 4x4 met 10,000.50 (or 3%) of No. 5, i.e. 1990s and 19th.",
    "THE OLD MAN MET ANN. ANN LEFT.",
    "one\ttwo  three\u00a0four\u2003five\n six\r\nseven",
    "\ufeffThe man\u200b left \u200b at so\u00adft home.",
    "A well-known and/or snake_case e-mail: a@b.c, http://x.y/z?q=1#w.",
    "Para one. It sat.\n\n\nPara two! It met Bo.\n \nPara three?",
    "word",
    "... --- !!! ??",
    "She did n't; didn't, couldn’t've, y'all'll.",
    "[1] met [2]. <unk> <eos> <bos> [50]",
    "Привет, мир. Ελλάδα sat. 日本語の文。 שלום met مرحبا.",
    "क्षि met हिन्दी and ไทย left.",
    "Zap met ox. Ix met Bo. Ann met Ox and Kim and Lou. Zap left. Bo sat. Ix left Kim.",
    "He said: \"No.\" She: 'Yes!' (They left.) [They met.] {Ann sat.}",
]


@pytest.mark.parametrize("number", range(len(STORIES)))
def test_words_join_with_split_and_their_sums_agree(reader: Reader, number: int) -> None:
    story = STORIES[number]
    reading = reader.read(story)

    words, tokens = reading.to_frame(words=True), reading.to_frame()

    assert words["word"].tolist() == story.split()
    assert words["word_index"].tolist() == list(range(len(story.split())))
    assert [story[a:b] for a, b in zip(words["start"], words["end"], strict=True)] == story.split()
    for column in ("surprisal", "static_surprisal"):
        ends = words[f"end_{column}"].sum()
        assert words[column].sum() + ends == pytest.approx(tokens[column].sum(), abs=1e-9)
    assert words["tokens"].sum() == (tokens["word"] != "<eos>").sum()


def test_the_parts_of_a_long_text_have_the_rows_of_the_whole(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dntm.reader.engine.SENTENCES", 2)
    story = "\n\n".join(STORIES)
    whole, lazy = reader.read(story), prepare(story, reader.engine.lexicon, lazily=True)

    parts = list(reader.read_all([lazy], meanings=False, parts=True))

    assert len(parts) > 10
    assert "".join(part.text for part in parts) == story
    for rows in (Reading.token_rows, Reading.word_rows):
        found = [row for part in parts for row in rows(part)]
        for one, other in zip(found, rows(whole), strict=True):
            assert one == tuple(
                pytest.approx(v, abs=1e-9) if isinstance(v, float) else v for v in other
            )


def test_a_mention_over_several_words_is_marked_on_each(reader: Reader) -> None:
    words = reader.read("Dr. Karol Vask met Bo.").to_frame(words=True)

    assert words["mention_part"].tolist() == [1, 2, 3, 0, 1]
    assert words["mention_words"].tolist() == [3, 3, 3, 0, 1]
    assert words["surprisal"].tolist()[1:3] == [0, 0]
    assert set(words["name"]) == {"Dr. Karol Vask", "", "Bo"}
    ends = reader.read("Bo met Karol Vask.").to_frame(words=True)
    for column in ("unigram_surprisal", "entropy", "entropy_reduction"):
        assert ends[column].isna().tolist()[3], column
    assert ends["unknown"].tolist()[2:] == [1, 1]


def test_the_frequency_of_a_word_is_that_of_its_letters_not_of_a_quotation_mark() -> None:
    reader = Reader.from_pretrained()
    quoted, plain = (reader.read(f"He said {word}.") for word in ('"house"', "house"))

    words = (reading.to_frame(words=True)["unigram_surprisal"] for reading in (quoted, plain))

    assert len({own.tolist()[2] for own in words}) == 1


def test_entropy_reductions_add_up_to_the_change_of_the_entropy(reader: Reader) -> None:
    reading = reader.read("Karol Vask met Bo and left. Bo sat.")

    for sentence in reading.sentences:
        *tokens, end = sentence.tokens
        reduced = sum(token.entropy_reduction or 0 for token in tokens)
        assert reduced == pytest.approx(tokens[0].entropy - end.entropy)
        assert end.entropy_reduction is None
    words, rows = reading.to_frame(words=True), reading.to_frame()
    assert words["entropy_reduction"].sum() == pytest.approx(rows["entropy_reduction"].sum())


PIECES = st.sampled_from(
    ["Ann", "Bo Vask", "zork", "zorks", "The", "the", "met", "Mr. Vask", ". ", "! ", "\n\n"]
    + ["OLD", "😀", "cafe\u0301", "No. 5", "'s", ",", '"', "xi", "Ox", "Kim", "\u200b"]
)
ANY = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
)
TEXTS = st.lists(st.one_of(PIECES, PIECES, ANY), min_size=1, max_size=30).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(TEXTS)
def test_a_dataset_of_a_text_and_the_reader_have_identical_rows(
    reader: Reader, trained: Path, text: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text.txt"
        source.write_text(text, encoding="utf-8", newline="")
        try:
            prepared = reader.prepare(source.read_text(encoding="utf-8"))
        except ValueError:
            return
        build_dataset(
            str(source),
            Path(folder) / "out",
            ReadConfig(fractions=(0, 0, 1), format="text"),
            BuildConfig(vocabulary_of=trained),
        )
        dataset = Dataset.open(Path(folder) / "out")
        [document] = dataset.documents("test")
    # A reader keeps one slot free because another entity may follow; a dataset knows its count.
    assume(document.largest != dataset.vocabulary.entities)

    assert encode(document, dataset.vocabulary) == reader.engine.encode(
        prepared.tokens(), reader.engine.slots()
    )


def test_an_unseen_entity_starts_at_zero_and_an_evicted_one_continues(reader: Reader) -> None:
    """Four slots: Lou takes Bo's, and the ox takes Ann's after it had lost its own to Zap."""
    *_, bo, _, zap, lou, ox = reader.stream(crowd("Zap met Lou.", "Ox sat."))
    [first] = [e for e in next(reader.stream("Zap met ox.")).entities if e.name == "ox"]
    names = {e.name: e for s in (bo, zap, lou, ox) for e in s.entities}

    assert names["Lou"].row == names["Bo"].row == 4
    assert zap.position is not None
    assert lou.position is not None
    kept = zap.position.states.dynamic.memory.evicted[0][2][: len(first.representation)]
    assert kept.tolist() == pytest.approx(first.representation, abs=1e-9)
    assert names["ox"].change == pytest.approx(
        torch.dist(kept, torch.tensor(names["ox"].representation, dtype=kept.dtype)).item(),
        abs=1e-9,
    )
    assert names["Lou"].change == pytest.approx(
        torch.tensor(names["Lou"].representation).norm().item(), abs=1e-5
    )


@pytest.mark.parametrize("future", ["Bo left.", "Ox met Lou and Ix.", "Lou met Max. Max sat."])
def test_scores_are_strictly_left_to_right_with_evictions(any_reader: Reader, future: str) -> None:
    begin = crowd("Bo met Lou and")
    known = len(begin.split()) - 1

    one, other = (
        any_reader.read(f"{begin} {end}").to_frame() for end in ("the old man sat.", future)
    )

    columns = ["word", "entity", "occurrence", "group", "surprisal", "entropy", "static_surprisal"]
    for column in columns:
        a, b = (f[f["word_index"] < known][column].tolist() for f in (one, other))
        assert a == (pytest.approx(b, abs=1e-9) if isinstance(a[0], float) else b)
