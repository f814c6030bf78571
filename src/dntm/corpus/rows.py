"""Rows: a model has so many rows for entities, and a text may have more of these.

Entity k has row k as long as there are rows. When all are taken, a newcomer is lent the row of the
entity that was not mentioned for the longest time; one that comes back after its row was lent is
lent one in the same way. A loan takes place where the mention stands that needs it. A newcomer
begins with the initial memory, one that returns with what it had when it lost its row
(`model.reading_state`).

In a sentence with more different entities than rows those beyond are read as unknown words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary


class Loan(NamedTuple):
    """A row changes hands."""

    position: int
    """The token of the sentence, from 0, that mentions the new owner."""
    row: int
    """From 1, as entities count."""
    entity: int
    """The new owner."""
    former: int
    """The entity that had the row."""


class Lender:
    """Gives rows to entities, sentence by sentence."""

    def __init__(self, rows: int, *, in_order: bool = False) -> None:
        """With `in_order` a newcomer gets the first free row, whatever its number."""
        self._rows = rows
        self._in_order = in_order
        self._unused = dict.fromkeys(range(1, rows + 1))
        self._row: dict[int, int] = {}
        """The row of each entity that has one, the one mentioned longest ago first."""

    def read(self, sentence: Iterable[Token]) -> tuple[list[int | None], list[Loan]]:
        """For each token of the next sentence its entity's row, else None, and the loans."""
        here: set[int] = set()
        rows: list[int | None] = []
        loans: list[Loan] = []
        for position, token in enumerate(sentence):
            if isinstance(token, str):
                rows.append(None)
                continue
            row = self._row.pop(token, None)
            if row is None and self._unused:
                own = token in self._unused and not self._in_order
                row = token if own else next(iter(self._unused))
                del self._unused[row]
            elif row is None:
                longest_ago = next((entity for entity in self._row if entity not in here), None)
                if longest_ago is not None:
                    row = self._row.pop(longest_ago)
                    loans.append(Loan(position, row, token, longest_ago))
            if row is not None:
                self._row[token] = row
                here.add(token)
            rows.append(row)
        return rows, loans

    def copy(self) -> "Lender":
        """The same, to go on from here more than once."""
        other = Lender(0, in_order=self._in_order)
        other._unused, other._row = dict(self._unused), dict(self._row)
        return other

    def owned(self) -> list[int]:
        """The rows that some entity has."""
        return list(self._row.values())

    def owner(self, row: int) -> int:
        """The entity that has a row, else 0."""
        return next((entity for entity, owned in self._row.items() if owned == row), 0)


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """A document as rows of the vocabulary, and what changes hands."""

    sentences: Sequence[Sequence[int]]
    """<bos> and <eos> around each."""
    loans: Sequence[Sequence[Loan]]
    """Of each sentence."""


def encode(document: AnonymizedDocument, vocabulary: Vocabulary) -> DocumentRows:
    """The rows of a document, and what changes hands."""
    lender = Lender(vocabulary.entities)
    sentences: list[list[int]] = []
    loans: list[list[Loan]] = []
    for sentence in document.sentences:
        owned, lent = lender.read(sentence)
        sentences.append([BOS])
        for token, row in zip(sentence, owned, strict=True):
            if isinstance(token, str):
                sentences[-1].append(vocabulary.row(token))
            else:
                sentences[-1].append(UNK if row is None else vocabulary.entity_row(row))
        sentences[-1].append(EOS)
        loans.append(lent)
    return DocumentRows(sentences, loans)
