"""Entity slots: who has which slot, and which evictions say so."""

from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entity_slots import NOBODY, DocumentRows, Eviction, SlotAllocator, encode
from dntm.corpus.vocabulary import UNK, Vocabulary

VOCABULARY = Vocabulary(("met", "left", "."), entities=3)
SENTENCES = st.lists(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, "met"]), max_size=5), max_size=8)


def rows_of(sentences: list[list[Token]]) -> DocumentRows:
    return encode(AnonymizedDocument(name="d", sentences=sentences), VOCABULARY)


def test_the_least_recently_mentioned_entity_is_evicted_when_the_last_slot_is_taken() -> None:
    allocator = SlotAllocator(3, evicts=True)
    allocator.assign([1, "met", 2])

    assert allocator.assign([3, "met", 2]) == ([3, None, 2], [Eviction(1, 1, NOBODY, evicted=1)])

    slots, evictions = allocator.assign([4, "met", 2, "and", 1])

    assert slots == [1, None, 2, None, 3]
    assert evictions == [Eviction(1, 3, NOBODY, evicted=3), Eviction(5, 3, 1, evicted=NOBODY)]
    assert allocator.assign(["met"]) == ([None], [Eviction(0, 1, NOBODY, evicted=4)])
    assert [allocator.occupant(slot) for slot in (1, 2, 3)] == [0, 2, 1]


def test_a_document_with_few_entities_keeps_their_numbers_as_slots() -> None:
    found = rows_of([["met", 2], [1, "left", 3]])

    assert found.sentences == [[1, 6, 4, 2], [1, 3, 7, 5, 2]]
    assert not any(found.evictions)


def test_entities_of_a_sentence_beyond_the_slots_are_unknown_words() -> None:
    assert rows_of([[1, 2, 3, 4]]).sentences[0][4] == UNK


@given(SENTENCES)
def test_no_two_entities_of_a_sentence_share_a_slot_and_evictions_report_every_change(
    sentences: list[list[Token]],
) -> None:
    allocator = SlotAllocator(3, evicts=True)
    occupant: dict[int, Token] = {}
    gone: set[Token] = set()
    for sentence in sentences:
        slots, evictions = allocator.assign(sentence)
        here: dict[int, Token] = {}
        for position, (token, slot) in enumerate(
            zip([*sentence, "."], [*slots, None], strict=True)
        ):
            for change in (e for e in evictions if e.position == position):
                if change.entity == NOBODY:
                    assert occupant.pop(change.slot) == change.evicted
                    gone.add(change.evicted)
                else:
                    assert occupant[change.slot] == change.entity
                    assert change.evicted == NOBODY
                    gone.remove(change.entity)
            if isinstance(token, int) and slot is not None:
                assert occupant.setdefault(slot, token) == token
                assert here.setdefault(slot, token) == token
                assert (token in gone) == (Eviction(position + 1, slot, token, NOBODY) in evictions)


@given(SENTENCES)
def test_slots_do_not_depend_on_copies(sentences: list[list[Token]]) -> None:
    one, other = SlotAllocator(3, evicts=True), SlotAllocator(3, evicts=True)
    for sentence in sentences:
        one.copy().assign([1, 2, 3])
        assert one.assign(sentence) == other.assign(sentence)
