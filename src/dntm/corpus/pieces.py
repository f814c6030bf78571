"""PieceVocabulary: the rows of a pretrained language model, whose tokenizer divides words.

The rows of special tokens and entities come first, as in any vocabulary; the model's own pieces
follow in the order of its tokenizer. A word is one piece or several. The tokens of a corpus have
lost their blanks, so `follows_blank` puts them back as English text has them. Sentences have no
<eos>: a pretrained language model reads a text as one sequence.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from dntm.corpus.document import Token
from dntm.corpus.vocabulary import Vocabulary, entity_rows

_CLOSES = re.compile(r"""[.,;:!?%)\]}…”’]+|''|'|'(s|d|m|t|re|ve|ll)|n't""", re.IGNORECASE)
_OPENS = re.compile(r"""[(\[{$£€#“‘]|``""")


def follows_blank(before: Token | None, word: str) -> bool:
    """Whether there is a blank between two tokens of an English text."""
    opened = isinstance(before, str) and _OPENS.fullmatch(before)
    return not (opened or (before is not None and _CLOSES.fullmatch(word)))


@dataclass(frozen=True)
class PieceVocabulary(Vocabulary):
    """Maps words to the pieces of a tokenizer; `words` are the pieces."""

    ends: ClassVar[bool] = False
    divide: Callable[[str], Sequence[int]] = field(kw_only=True, compare=False, repr=False)
    """The tokenizer: from text to the numbers of pieces."""

    def __contains__(self, word: str) -> bool:
        return True

    @property
    def lower_case(self) -> bool:
        """Words are read as written."""
        return False

    def rows_of(self, word: str, before: Token | None) -> Sequence[int]:
        """The pieces of a word after another token of its sentence."""
        first = entity_rows(self.entities).stop
        pieces = self.divide(f" {word}" if follows_blank(before, word) else word)
        if not pieces:
            raise ValueError(f"the tokenizer of the base model has no piece for {word!r:.80}")
        return [first + piece for piece in pieces]

    def save(self, folder: Path) -> None:
        """Write how the text was read; the pieces belong to the base model."""
        self.save_settings(folder)
