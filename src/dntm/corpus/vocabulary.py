"""Vocabulary: the rows of the embedding tables.

Rows 0 to 2 are <unk>, <bos> and <eos>; the next ones belong to the entities [1], [2], ...; the
rest to the most frequent words of the training split. All of them count toward the size, 10,000
rows in the paper.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from dntm.corpus.document import Token

UNK, BOS, EOS = 0, 1, 2
SPECIALS = ("<unk>", "<bos>", "<eos>")


@dataclass(frozen=True)
class Vocabulary:
    """Maps words and entity numbers to rows; words come in order of falling frequency."""

    words: Sequence[str]
    entities: int = 50
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first = len(SPECIALS) + self.entities
        rows = {word: first + i for i, word in enumerate(self.words)}
        if len(rows) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ValueError(f"the vocabulary holds {twice!r} twice, expected each word once")
        object.__setattr__(self, "_rows", rows)

    @classmethod
    def from_counts(cls, counts: Counter[str], *, size: int, entities: int) -> Self:
        """Keep the most frequent words so that all rows together are at most `size`."""
        room = size - len(SPECIALS) - entities
        if room < 1:
            raise ValueError(
                f"a vocabulary of {size} rows has no room for words beside "
                f"{len(SPECIALS)} special and {entities} entity rows"
            )
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(tuple(word for word, _ in ranked[:room]), entities)

    def __len__(self) -> int:
        return len(SPECIALS) + self.entities + len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._rows

    def entity_row(self, entity: int) -> int:
        """The row of entity 1, 2, ..."""
        if not 1 <= entity <= self.entities:
            raise ValueError(f"entity {entity} has no row: expected 1 to {self.entities}")
        return len(SPECIALS) - 1 + entity

    def row(self, token: Token) -> int:
        """The row of a word (<unk> where it has none) or of an entity."""
        return self._rows.get(token, UNK) if isinstance(token, str) else self.entity_row(token)

    def encode(self, sentence: Iterable[Token]) -> list[int]:
        """The rows of a sentence, <bos> and <eos> around it."""
        return [BOS, *(self.row(token) for token in sentence), EOS]

    def labels(self) -> list[str]:
        """What each row is called, in order."""
        entities = [f"[{entity}]" for entity in range(1, self.entities + 1)]
        return [*SPECIALS, *entities, *self.words]

    def text(self) -> str:
        """The content of `vocab.txt`: one row a line."""
        return "".join(f"{label}\n" for label in self.labels())

    @classmethod
    def load(cls, path: Path, *, entities: int) -> Self:
        """Read `vocab.txt`; the number of entity rows stands beside it, in the JSON file."""
        try:
            labels = path.read_bytes().decode().split("\n")[:-1]
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
        first = len(SPECIALS) + entities
        for line, (found, expected) in enumerate(
            zip(labels, cls((), entities).labels(), strict=False), start=1
        ):
            if found != expected:
                raise ValueError(f"{path}, line {line}: found {found!r}, expected {expected!r}")
        if len(labels) <= first:
            raise ValueError(f"{path}: {len(labels)} rows, expected words after the first {first}")
        try:
            return cls(tuple(labels[first:]), entities)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
