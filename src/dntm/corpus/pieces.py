"""PieceVocabulary: the rows of a pretrained language model, whose tokenizer divides words.

The rows of special tokens and entities come first, as in any vocabulary; the model's own pieces
follow in the order of its tokenizer. A word is one piece or several. The tokens of a corpus have
lost their blanks, which are put back as English text has them. Sentences have no <eos>: a
pretrained language model reads a text as one sequence.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar

from dntm.corpus.document import Token
from dntm.corpus.text import spaces_before
from dntm.corpus.vocabulary import Vocabulary, entity_rows

_BLANKS = "Ġ▁"
"""How tokenizers write a blank at the beginning of a piece."""


@dataclass(frozen=True)
class PieceVocabulary(Vocabulary):
    """Maps words to the pieces of a tokenizer; `words` are the pieces."""

    ends: ClassVar[bool] = False
    divide: Callable[[str], Sequence[int]] = field(kw_only=True, compare=False, repr=False)
    """The tokenizer: from text to the numbers of pieces."""

    def __contains__(self, word: str) -> bool:
        return len(self.divide(f" {word}")) == 1

    @cached_property
    def lower_case(self) -> bool:
        """Words are read as written."""
        return False

    def rows_of(self, sentence: Sequence[Token]) -> Iterable[Sequence[int]]:
        """The pieces of every word of a sentence; a sentence begins with a blank."""
        first = entity_rows(self.entities).stop
        written = [token if isinstance(token, str) else f"[{token}]" for token in sentence]
        blanks = chain(" ", islice(spaces_before(written), 1, None))
        for token, blank in zip(sentence, blanks, strict=False):
            pieces = self.divide(f"{blank}{token}") if isinstance(token, str) else ()
            if isinstance(token, str) and not pieces:
                raise ValueError(f"the tokenizer of the base model has no piece for {token!r:.80}")
            yield [first + piece for piece in pieces]

    def whole_words(self) -> Sequence[str]:
        """Of each piece that begins with a blank, the rest; a part of a word is empty."""
        return [piece[1:] if piece[0] in _BLANKS else "" for piece in self.words]

    def save(self, folder: Path) -> None:
        """Write how the text was read; the pieces belong to the base model."""
        self.save_settings(folder)
