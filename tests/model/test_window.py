"""What a window promises: every order it gives is one in which the text can be read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dntm.model.fast.encoding import Call, Level
from dntm.model.fast.layout import WORTH_A_CUT, lay_out
from dntm.model.fast.window import Window, plan, windows

BOS, EOS, A, B, C = 1, 2, 3, 4, 5
ENTITIES = 3
Document = list[list[int]]


def both(documents: list[Document], continues: list[bool] | None = None) -> Window:
    return plan(
        documents, entities=ENTITIES, dynamic_input=True, dynamic_output=True, continues=continues
    )


def leading_to(call: Call, place: int) -> list[int]:
    """The tokens of one sequence of a call, up to a place; and at index 0 the sequence's number."""
    starts = np.cumsum([0, *call.widths])
    step = int(np.searchsorted(starts, place, side="right")) - 1
    sequence = place - int(starts[step])
    return [sequence, *(int(call.tokens[starts[t] + sequence]) for t in range(step + 1))]


def around(window: Window, level: Level) -> list[tuple[list[int], list[int]]]:
    """What was read to the left and, from the end, to the right of each mention of a level."""
    sides = []
    for ahead, rest in zip(window.ahead, level.rests, strict=True):
        side = []
        for beside in rest.beside.tolist():
            if beside < len(rest.ahead):
                side.append(leading_to(ahead, rest.ahead[beside])[1:])
            else:
                sequence, *late = leading_to(rest.call, beside - len(rest.ahead))
                side.append(leading_to(ahead, rest.begins[sequence])[1:] + late)
        sides.append(side)
    return list(zip(*sides, strict=True))


def encoded(window: Window) -> list[list[tuple[list[int], list[int]]]]:
    return [around(window, level) for level in window.levels]


def test_a_sentence_waits_only_for_sentences_with_its_entities() -> None:
    of_a, of_b = [BOS, A, 7, EOS], [BOS, 8, B, EOS]
    of_both, plain = [BOS, A, B, EOS], [BOS, 9, EOS]

    window = both([[of_a, of_b, plain, of_both], [of_b]])

    assert encoded(window) == [
        [([BOS], [EOS, 7]), ([BOS, 8], [EOS]), ([BOS, 8], [EOS])],
        [([BOS], [EOS, B]), ([BOS, A], [EOS])],
    ]


def test_whatever_depends_on_nothing_is_read_ahead() -> None:
    window = both([[[BOS, 7, A, EOS], [BOS, 8, A, 9, B, 10, EOS]]])

    (first, second), (forward, backward) = window.levels, window.ahead
    assert sorted(forward.tokens.tolist()) == [BOS, BOS, 7, 8]
    assert sorted(backward.tokens.tolist()) == sorted([EOS, EOS, 10, B, 9])
    assert [rest.call.tokens.tolist() for rest in first.rests] == [[], []]
    assert [rest.call.tokens.tolist() for rest in second.rests] == [[A, 9], []]


def test_a_sentences_only_mention_is_merged_without_a_level_of_its_own() -> None:
    window = both([[[BOS, A, EOS], [BOS, A, EOS], [BOS, A, 7, EOS]]])

    assert [[len(m.contexts) for m in level.merges] for level in window.levels] == [[1, 1, 1]]


def test_static_input_needs_one_level() -> None:
    document = [[BOS, A, EOS], [BOS, A, B, EOS], [BOS, A, A, EOS]]

    window = plan([document], entities=ENTITIES, dynamic_input=False, dynamic_output=True)

    assert [[len(m.contexts) for m in level.merges] for level in window.levels] == [[2, 1, 1, 1]]
    assert [rest.call.tokens.tolist() for rest in window.levels[0].rests] == [[], []]


def test_the_baseline_encodes_nothing() -> None:
    window = plan(
        [[[BOS, A, EOS], [BOS, A, EOS]]], entities=ENTITIES, dynamic_input=False,
        dynamic_output=False,
    )  # fmt: skip

    assert window.levels == ()
    assert not any(len(run.tokens) for run in window.ahead)


def test_the_last_sentence_is_encoded_only_if_the_document_continues() -> None:
    document = [[BOS, A, EOS], [BOS, B, A, EOS]]
    first, second = [([BOS], [EOS])], [([BOS], [EOS, A]), ([BOS, B], [EOS])]

    assert encoded(both([document], [True])) == [first, second]
    assert encoded(both([document], [False])) == [first]


def test_with_static_output_only_entities_that_come_back_are_encoded() -> None:
    document = [[BOS, A, B, EOS], [BOS, C, EOS], [BOS, B, EOS]]

    window = plan(
        [document], entities=ENTITIES, dynamic_input=True, dynamic_output=False, continues=[False]
    )

    assert encoded(window) == [[([BOS, A], [EOS])]]


def test_mentions_of_one_sentence_merge_from_left_to_right() -> None:
    window = both([[[BOS, A, 7, A, B, EOS]]])

    merges = window.levels[0].merges

    assert [merge.contexts.tolist() for merge in merges] == [[0, 2], [1]]
    assert [merge.previous.tolist() for merge in merges] == [[0, 1], [3]]
    assert window.memory.tolist() == [[5, 4, 2]]


def test_an_entity_at_the_edge_of_a_sentence_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match=r"row 3 .* sentence \[3, 7, 2\], expected <bos>"):
        both([[[A, 7, EOS]]])


def test_continues_must_tell_of_every_document() -> None:
    with pytest.raises(ValueError, match="continues tells of 1 documents, expected 2"):
        both([[], []], [True])


def test_documents_that_go_on_are_cut_at_their_ends_and_others_where_it_pays() -> None:
    def widths(lengths: list[int], continues: list[bool]) -> list[tuple[int, int]]:
        documents = [[[BOS] * length] for length in lengths]
        return [(s.steps, s.width) for s in lay_out(documents, continues).segments]

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

    layout = lay_out(documents, [continues for _, continues in batch])

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
    window = plan(
        [document for document, _ in batch],
        entities=ENTITIES,
        dynamic_input=dynamic_input,
        dynamic_output=dynamic_output,
        continues=[continues for _, continues in batch],
    )

    rows = len(batch) * ENTITIES
    assert not dynamic_input or all(np.all(run.entity_rows < rows) for run in window.ahead)
    for level in window.levels:
        for rest in level.rests:
            assert np.all(rest.call.entity_rows < rows)
            assert np.all(np.isin(rest.call.tokens[rest.call.entity_places], [A, B, C]))
        for merge in level.merges:
            assert np.all(merge.previous < rows)
            rows += len(merge.contexts)
    assert np.all(window.entity_rows < rows)
    assert sorted(np.concatenate(window.states).tolist()) == list(range(rows))
    assert np.all(window.memory < rows)


@settings(max_examples=60, deadline=None)
@given(batches)
def test_every_mention_is_encoded_from_both_sides(batch: list[tuple[Document, bool]]) -> None:
    documents = [document for document, _ in batch]

    window = both(documents)

    expected = [
        (sentence[:t], sentence[:t:-1])
        for document in documents
        for sentence in document
        for t, row in enumerate(sentence)
        if row in (A, B, C)
    ]
    assert sorted(mention for level in encoded(window) for mention in level) == sorted(expected)


@settings(max_examples=60, deadline=None)
@given(batches)
def test_each_sentence_knows_the_states_of_its_start(batch: list[tuple[Document, bool]]) -> None:
    documents = [document for document, _ in batch]

    window = both(documents)

    merges, merge, sentence = window.merges, 0, 0
    for number, (document, states) in enumerate(zip(documents, window.states, strict=True)):
        rows = np.arange(number * ENTITIES, (number + 1) * ENTITIES)
        owned = rows.tolist()
        for text in document:
            assert window.known[sentence].tolist() == rows.tolist()
            for position, row in enumerate(text):
                if row in {A, B, C}:
                    entity = row - A
                    assert merges.document[merge] == number
                    assert merges.sentence[merge] == sentence
                    assert merges.position[merge] == position
                    assert merges.entity[merge] == entity + 1
                    assert merges.previous[merge] == rows[entity]
                    rows[entity] = merges.state[merge]
                    owned.append(int(rows[entity]))
                    merge += 1
            sentence += 1
        assert states.tolist() == owned
        assert window.memory[number].tolist() == rows.tolist()
    assert merge == len(merges.state)


def test_windows_leave_out_documents_that_have_ended() -> None:
    one, two, none = [[BOS, EOS]] * 3, [[BOS, 7, EOS]], list[list[int]]()

    first, second = windows([two, one, none], 2)

    assert first == ([two, one[:2], none], [False, True, False], [0, 1, 2], [0, 1, 2], ())
    assert second == ([one[2:]], [False], [1], [1], ())
