"""Lexicon: a vocabulary, and how its model spells words.

A model whose words are all in lower case was trained on text in lower case, and every word it is
given becomes a row in that spelling: of a text, of a sentence beside it, of a list of tokens.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dntm.corpus.document import Token
from dntm.corpus.vocabulary import BOS, EOS, Vocabulary


@dataclass(frozen=True, slots=True)
class Lexicon:
    """From words as people write them to rows."""

    vocabulary: Vocabulary
    lower_case: bool

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "Lexicon":
        """Find out how the words are spelled."""
        return cls(vocabulary, all(word == word.lower() for word in vocabulary.words))

    def __contains__(self, word: str) -> bool:
        return self.spelled(word) in self.vocabulary

    def spelled(self, word: str) -> str:
        """The word as the model knows it."""
        return word.lower() if self.lower_case else word

    def row(self, token: Token) -> int:
        """The row of a word (<unk> where it has none) or of an entity."""
        return self.vocabulary.row(self.spelled(token) if isinstance(token, str) else token)

    def rows(self, sentence: Iterable[Token]) -> list[int]:
        """The rows of a sentence, <bos> and <eos> around it."""
        return [BOS, *map(self.row, sentence), EOS]
