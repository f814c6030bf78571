from hypothesis import given
from hypothesis import strategies as st

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.rows import Lender, Loan, encode
from dntm.corpus.vocabulary import UNK, Vocabulary

VOCABULARY = Vocabulary(("met", "left", "."), entities=3)
SENTENCES = st.lists(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, "met"]), max_size=5), max_size=8)


def test_a_newcomer_is_lent_the_row_of_the_entity_not_mentioned_for_the_longest_time() -> None:
    lender = Lender(3)
    lender.read([1, "met", 2])
    lender.read([3, "met", 1])

    rows, loans = lender.read([4, "met", 1, "and", 2])

    assert rows == [2, None, 1, None, 3]
    assert loans == [Loan(0, 2, 4, former=2), Loan(4, 3, 2, former=3)]


def test_a_document_with_few_entities_keeps_its_own_numbers_as_rows() -> None:
    sentences: list[list[Token]] = [["met", 2], [1, "left", 3]]

    found = encode(AnonymizedDocument(name="d", sentences=sentences), VOCABULARY)

    assert found.sentences == [VOCABULARY.encode(sentence) for sentence in sentences]
    assert not any(found.loans)


def test_more_entities_in_a_sentence_than_rows_are_unknown_words() -> None:
    found = encode(AnonymizedDocument(name="d", sentences=[[1, 2, 3, 4]]), VOCABULARY)

    assert found.sentences[0][4] == UNK


@given(SENTENCES)
def test_no_two_entities_of_a_sentence_share_a_row_and_loans_tell_every_change(
    sentences: list[list[Token]],
) -> None:
    lender = Lender(3)
    owner: dict[int, Token] = {}
    for sentence in sentences:
        rows, loans = lender.read(sentence)
        changes = {loan.position: loan for loan in loans}
        here: dict[int, Token] = {}
        for position, (token, row) in enumerate(zip(sentence, rows, strict=True)):
            if isinstance(token, str) or row is None:
                continue
            if loan := changes.get(position):
                assert (loan.row, loan.entity, loan.former) == (row, token, owner[row])
                owner[row] = token
            assert owner.setdefault(row, token) == token
            assert here.setdefault(row, token) == token


@given(SENTENCES)
def test_what_is_lent_does_not_depend_on_later_sentences(sentences: list[list[Token]]) -> None:
    document = AnonymizedDocument(name="d", sentences=sentences)
    whole = encode(document, VOCABULARY)

    for end in range(len(sentences)):
        part = encode(AnonymizedDocument(name="d", sentences=sentences[:end]), VOCABULARY)
        assert whole.sentences[:end] == part.sentences
        assert whole.loans[:end] == part.loans
