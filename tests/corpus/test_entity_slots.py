"""Entity slots: who has which slot, and which evictions say so."""

from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entity_slots import DocumentRows, Eviction, SlotAllocator, encode
from dntm.corpus.vocabulary import UNK, Vocabulary

VOCABULARY = Vocabulary(("met", "left", "."), entities=3)
SENTENCES = st.lists(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, "met"]), max_size=5), max_size=8)


def rows_of(sentences: list[list[Token]]) -> DocumentRows:
    return encode(AnonymizedDocument(name="d", sentences=sentences), VOCABULARY)


def test_a_new_entity_takes_the_slot_of_the_least_recently_mentioned_one() -> None:
    allocator = SlotAllocator(3)
    allocator.assign([1, "met", 2])
    allocator.assign([3, "met", 1])

    slots, evictions = allocator.assign([4, "met", 1, "and", 2])

    assert slots == [2, None, 1, None, 3]
    assert evictions == [Eviction(0, 2, 4, evicted=2), Eviction(4, 3, 2, evicted=3)]
    assert [allocator.occupant(slot) for slot in (1, 2, 3)] == [1, 4, 2]


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
    allocator = SlotAllocator(3)
    occupant: dict[int, Token] = {}
    for sentence in sentences:
        slots, evictions = allocator.assign(sentence)
        changes = {eviction.position: eviction for eviction in evictions}
        here: dict[int, Token] = {}
        for position, (token, slot) in enumerate(zip(sentence, slots, strict=True)):
            if isinstance(token, str) or slot is None:
                continue
            if change := changes.get(position):
                assert (change.slot, change.entity, change.evicted) == (slot, token, occupant[slot])
                occupant[slot] = token
            assert occupant.setdefault(slot, token) == token
            assert here.setdefault(slot, token) == token


@given(SENTENCES)
def test_slots_do_not_depend_on_later_sentences_or_copies(sentences: list[list[Token]]) -> None:
    whole = rows_of(sentences)
    allocator = SlotAllocator(3)
    for end, sentence in enumerate(sentences):
        part = rows_of(sentences[:end])
        assert whole.sentences[:end] == part.sentences
        assert whole.evictions[:end] == part.evictions
        allocator.copy().assign([1, 2, 3])
        assert allocator.assign(sentence)[1] == whole.evictions[end]
