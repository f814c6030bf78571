"""Windows: what is read in parallel, and what is not read at all."""

import pytest

from dntm.model.config import Variant
from dntm.model.fast.layout import WORTH_A_CUT, lay_out
from dntm.model.fast.window import Window
from tests.model.small import build
from tests.model.texts import BOS, EOS, A, B, C


def both(documents: list[list[list[int]]], continues: list[bool] | None = None) -> Window:
    return build().plan(documents, continues)


def merges(window: Window) -> list[list[int]]:
    """The number of contexts of each merge of each level."""
    return [[len(merge.contexts) for merge in level.merges] for level in window.levels]


def test_a_sentence_waits_only_for_sentences_with_its_entities() -> None:
    of_a, of_b = [BOS, A, 7, EOS], [BOS, 8, B, EOS]
    of_both, of_none = [BOS, A, B, EOS], [BOS, 9, EOS]

    assert merges(both([[of_a, of_b, of_none, of_both], [of_b]])) == [[3], [2]]
    assert merges(both([[of_a, of_a, of_a]])) == [[1, 1, 1]], "a lone mention is not read itself"


def test_tokens_that_depend_on_no_new_state_are_read_ahead() -> None:
    window = both([[[BOS, 7, A, EOS], [BOS, 8, A, 9, B, 10, EOS]]])

    (first, second), (forward, backward) = window.levels, window.ahead
    assert sorted(forward.tokens.tolist()) == [BOS, BOS, 7, 8]
    assert sorted(backward.tokens.tolist()) == sorted([EOS, EOS, 10, B, 9])
    assert [rest.call.tokens.tolist() for rest in first.rests] == [[], []]
    assert [rest.call.tokens.tolist() for rest in second.rests] == [[A, 9], []]


@pytest.mark.parametrize(
    ("variant", "continues", "encoded"),
    [("both", True, 4), ("both", False, 3), ("input", False, 1), ("baseline", True, 0)],
)
def test_contexts_that_nothing_reads_are_not_encoded(
    variant: Variant, encoded: int, *, continues: bool
) -> None:
    document = [[BOS, A, B, EOS], [BOS, C, EOS], [BOS, B, EOS]]

    window = build(variant).plan([document], [continues])

    assert len(window.merges.state) == encoded


def test_documents_that_continue_are_cut_at_their_ends_and_others_if_it_saves_padding() -> None:
    def widths(lengths: list[int], continues: list[bool]) -> list[tuple[int, int]]:
        documents = [[[BOS] * length] for length in lengths]
        return [(s.steps, s.width) for s in lay_out(documents, continues).segments]

    far = 10 + WORTH_A_CUT

    assert widths([10, 12], [True, True]) == [(10, 2), (2, 1)]
    assert widths([10, 12], [False, True]) == [(12, 2)]
    assert widths([10, far], [False, True]) == [(10, 2), (WORTH_A_CUT, 1)]
    assert widths([9, 0, 9], [True, True, True]) == [(9, 2)]
