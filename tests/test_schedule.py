"""What the schedule promises: every order it gives is one in which the text can be read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dntm.layout.encoding import Level, Run
from dntm.layout.segments import WORTH_A_CUT, lay_out
from dntm.schedule import Stretch, plan

BOS, EOS, A, B, C = 1, 2, 3, 4, 5
ENTITIES = 3
Document = list[list[int]]


def both(documents: list[Document], goes_on: list[bool] | None = None) -> Stretch:
    return plan(
        documents, entities=ENTITIES, dynamic_input=True, dynamic_output=True, goes_on=goes_on
    )


def leading_to(run: Run, place: int) -> list[int]:
    """The tokens of one sequence of a run, up to a place; and at index 0 the sequence's number."""
    starts = np.cumsum([0, *run.widths])
    step = int(np.searchsorted(starts, place, side="right")) - 1
    sequence = place - int(starts[step])
    return [sequence, *(int(run.tokens[starts[t] + sequence]) for t in range(step + 1))]


def around(stretch: Stretch, level: Level) -> list[tuple[list[int], list[int]]]:
    """What was read to the left and, from the end, to the right of each mention of a level."""
    sides = []
    for ahead, rest in zip(stretch.ahead, level.rests, strict=True):
        side = []
        for beside in rest.beside.tolist():
            if beside < len(rest.ahead):
                side.append(leading_to(ahead, rest.ahead[beside])[1:])
            else:
                sequence, *late = leading_to(rest.run, beside - len(rest.ahead))
                side.append(leading_to(ahead, rest.begins[sequence])[1:] + late)
        sides.append(side)
    return list(zip(*sides, strict=True))


def encoded(stretch: Stretch) -> list[list[tuple[list[int], list[int]]]]:
    return [around(stretch, level) for level in stretch.levels]


def test_a_sentence_waits_only_for_sentences_with_its_entities() -> None:
    of_a, of_b = [BOS, A, 7, EOS], [BOS, 8, B, EOS]
    of_both, plain = [BOS, A, B, EOS], [BOS, 9, EOS]

    stretch = both([[of_a, of_b, plain, of_both], [of_b]])

    assert encoded(stretch) == [
        [([BOS], [EOS, 7]), ([BOS, 8], [EOS]), ([BOS, 8], [EOS])],
        [([BOS], [EOS, B]), ([BOS, A], [EOS])],
    ]


def test_whatever_depends_on_nothing_is_read_ahead() -> None:
    stretch = both([[[BOS, 7, A, EOS], [BOS, 8, A, 9, B, 10, EOS]]])

    (first, second), (forward, backward) = stretch.levels, stretch.ahead
    assert sorted(forward.tokens.tolist()) == [BOS, BOS, 7, 8]
    assert sorted(backward.tokens.tolist()) == sorted([EOS, EOS, 10, B, 9])
    assert [rest.run.tokens.tolist() for rest in first.rests] == [[], []]
    assert [rest.run.tokens.tolist() for rest in second.rests] == [[A, 9], []]


def test_a_sentences_only_mention_is_merged_without_a_level_of_its_own() -> None:
    stretch = both([[[BOS, A, EOS], [BOS, A, EOS], [BOS, A, 7, EOS]]])

    assert [[len(m.contexts) for m in level.merges] for level in stretch.levels] == [[1, 1, 1]]


def test_static_input_needs_one_level() -> None:
    document = [[BOS, A, EOS], [BOS, A, B, EOS], [BOS, A, A, EOS]]

    stretch = plan([document], entities=ENTITIES, dynamic_input=False, dynamic_output=True)

    assert [[len(m.contexts) for m in level.merges] for level in stretch.levels] == [[2, 1, 1, 1]]
    assert [rest.run.tokens.tolist() for rest in stretch.levels[0].rests] == [[], []]


def test_the_baseline_encodes_nothing() -> None:
    stretch = plan(
        [[[BOS, A, EOS], [BOS, A, EOS]]], entities=ENTITIES, dynamic_input=False,
        dynamic_output=False,
    )  # fmt: skip

    assert stretch.levels == ()
    assert not any(len(run.tokens) for run in stretch.ahead)


def test_the_last_sentence_is_encoded_only_if_the_document_goes_on() -> None:
    document = [[BOS, A, EOS], [BOS, B, A, EOS]]
    first, second = [([BOS], [EOS])], [([BOS], [EOS, A]), ([BOS, B], [EOS])]

    assert encoded(both([document], [True])) == [first, second]
    assert encoded(both([document], [False])) == [first]


def test_with_static_output_only_entities_that_come_back_are_encoded() -> None:
    document = [[BOS, A, B, EOS], [BOS, C, EOS], [BOS, B, EOS]]

    stretch = plan(
        [document], entities=ENTITIES, dynamic_input=True, dynamic_output=False, goes_on=[False]
    )

    assert encoded(stretch) == [[([BOS, A], [EOS])]]


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
    assert not dynamic_input or all(np.all(run.entity_rows < rows) for run in stretch.ahead)
    for level in stretch.levels:
        for rest in level.rests:
            assert np.all(rest.run.entity_rows < rows)
            assert np.all(np.isin(rest.run.tokens[rest.run.entity_places], [A, B, C]))
        for merge in level.merges:
            assert np.all(merge.previous < rows)
            rows += len(merge.contexts)
    assert np.all(stretch.entity_rows < rows)
    assert sorted(np.concatenate(stretch.states).tolist()) == list(range(rows))
    assert np.all(stretch.memory < rows)


@settings(max_examples=60, deadline=None)
@given(batches)
def test_every_mention_is_encoded_from_both_sides(batch: list[tuple[Document, bool]]) -> None:
    documents = [document for document, _ in batch]

    stretch = both(documents)

    expected = [
        (sentence[:t], sentence[:t:-1])
        for document in documents
        for sentence in document
        for t, row in enumerate(sentence)
        if row in (A, B, C)
    ]
    assert sorted(mention for level in encoded(stretch) for mention in level) == sorted(expected)


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
