"""What the schedule promises: every order it gives is one in which the text can be read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dntm.layout import WORTH_A_CUT, lay_out
from dntm.schedule import Stretch, plan

BOS, EOS, A, B, C = 1, 2, 3, 4, 5
ENTITIES = 3
Document = list[list[int]]


def both(documents: list[Document], goes_on: list[bool] | None = None) -> Stretch:
    return plan(
        documents, entities=ENTITIES, dynamic_input=True, dynamic_output=True, goes_on=goes_on
    )


def encoded(stretch: Stretch) -> list[list[list[int]]]:
    """The sentences of each level, without their padding."""
    return [
        [row[:length].tolist() for row, length in zip(level.tokens, level.lengths, strict=True)]
        for level in stretch.levels
    ]


def test_a_sentence_waits_only_for_sentences_with_its_entities() -> None:
    of_a, of_b = [BOS, A, 7, EOS], [BOS, 8, B, EOS]
    of_both, plain = [BOS, A, B, EOS], [BOS, 9, EOS]

    stretch = both([[of_a, of_b, plain, of_both], [of_b]])

    assert encoded(stretch) == [[of_a, of_b, of_b], [of_both]]


def test_static_input_needs_one_level() -> None:
    document = [[BOS, A, EOS], [BOS, A, B, EOS], [BOS, A, A, EOS]]

    stretch = plan([document], entities=ENTITIES, dynamic_input=False, dynamic_output=True)

    assert encoded(stretch) == [document]
    assert [len(merge.contexts) for merge in stretch.levels[0].merges] == [2, 1, 1, 1]


def test_the_baseline_encodes_nothing() -> None:
    stretch = plan(
        [[[BOS, A, EOS], [BOS, A, EOS]]], entities=ENTITIES, dynamic_input=False,
        dynamic_output=False,
    )  # fmt: skip

    assert stretch.levels == ()


def test_the_last_sentence_is_encoded_only_if_the_document_goes_on() -> None:
    document = [[BOS, A, EOS], [BOS, B, A, EOS]]

    assert encoded(both([document], [True])) == [[document[0]], [document[1]]]
    assert encoded(both([document], [False])) == [[document[0]]]


def test_with_static_output_only_entities_that_come_back_are_encoded() -> None:
    document = [[BOS, A, B, EOS], [BOS, C, EOS], [BOS, B, EOS]]

    stretch = plan(
        [document], entities=ENTITIES, dynamic_input=True, dynamic_output=False, goes_on=[False]
    )

    assert encoded(stretch) == [[document[0]]]
    assert stretch.levels[0].position.tolist() == [2]


def test_mentions_of_one_sentence_merge_from_left_to_right() -> None:
    stretch = both([[[BOS, A, 7, A, B, EOS]]])

    merges = stretch.levels[0].merges

    assert [merge.contexts.tolist() for merge in merges] == [[0, 2], [1]]
    assert [merge.previous.tolist() for merge in merges] == [[0, 1], [3]]
    assert stretch.memory.tolist() == [[5, 4, 2]]


def test_an_entity_at_the_edge_of_a_sentence_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match=r"row 3 .* sentence \[3, 7, 2\], expected <bos>"):
        both([[[A, 7, EOS]]])


def test_goes_on_must_tell_of_every_document() -> None:
    with pytest.raises(ValueError, match="goes_on tells of 1 documents, expected 2"):
        both([[], []], [True])


def test_documents_that_go_on_are_cut_at_their_ends_and_others_where_it_pays() -> None:
    def widths(lengths: list[int], goes_on: list[bool]) -> list[tuple[int, int]]:
        documents = [[[BOS] * length] for length in lengths]
        return [(s.steps, s.width) for s in lay_out(documents, goes_on).segments]

    far = 10 + WORTH_A_CUT

    assert widths([10, 12], [True, True]) == [(10, 2), (2, 1)]
    assert widths([10, 12], [False, True]) == [(12, 2)]
    assert widths([10, far], [False, True]) == [(10, 2), (WORTH_A_CUT, 1)]
    assert widths([9, 0, 9], [True, True, True]) == [(9, 2)]


sentences = st.lists(st.sampled_from([A, B, C, 7, 8]), max_size=6).map(
    lambda words: [BOS, *words, EOS]
)
batches = st.lists(
    st.tuples(st.lists(sentences, max_size=6), st.booleans()), min_size=1, max_size=4
)


@settings(max_examples=60, deadline=None)
@given(batches)
def test_every_token_is_read_and_predicted_once(batch: list[tuple[Document, bool]]) -> None:
    documents = [document for document, _ in batch]

    layout = lay_out(documents, [goes_on for _, goes_on in batch])

    flat = [row for document in documents for sentence in document for row in sentence]
    after_bos = [row for document in documents for s in document for row in s[1:]]
    assert layout.tokens[layout.read].tolist() == flat
    assert len(set(layout.read.tolist())) == len(flat)
    assert layout.targets.tolist() == after_bos
    assert layout.predicted.sum() == len(after_bos)


@settings(max_examples=60, deadline=None)
@given(batches, st.booleans(), st.booleans())
def test_every_state_exists_before_it_is_read(
    batch: list[tuple[Document, bool]], dynamic_input: bool, dynamic_output: bool
) -> None:
    stretch = plan(
        [document for document, _ in batch],
        entities=ENTITIES,
        dynamic_input=dynamic_input,
        dynamic_output=dynamic_output,
        goes_on=[goes_on for _, goes_on in batch],
    )

    rows = len(batch) * ENTITIES
    for level in stretch.levels:
        assert not dynamic_input or np.all(level.entity_rows < rows)
        assert np.all(level.tokens.ravel()[level.entity_places] >= A)
        for merge in level.merges:
            assert np.all(merge.previous < rows)
            rows += len(merge.contexts)
    assert np.all(stretch.entity_rows < rows)
    assert sorted(np.concatenate(stretch.states).tolist()) == list(range(rows))
    assert np.all(stretch.memory < rows)


@settings(max_examples=60, deadline=None)
@given(batches)
def test_each_sentence_knows_the_states_of_its_start(batch: list[tuple[Document, bool]]) -> None:
    documents = [document for document, _ in batch]

    stretch = both(documents)

    sentence = 0
    for document, states in zip(documents, stretch.states, strict=True):
        mentions = np.zeros(ENTITIES, dtype=int)
        for text in document:
            first = mentions == 0
            assert np.all((stretch.known[sentence] < ENTITIES) == first)
            assert np.all(stretch.known[sentence] < ENTITIES + mentions.sum())
            mentions += [text.count(row) for row in (A, B, C)]
            sentence += 1
        assert len(states) == ENTITIES + mentions.sum()
