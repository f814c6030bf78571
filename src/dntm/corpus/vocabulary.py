"""Vocabulary: the rows of the embedding tables.

Rows 0 to 2 are <unk>, <bos> and <eos>; the next ones are the entities [1], [2], ...; the rest are
the most frequent words of the training split. All count toward the size (10,000 in the paper).
`text_settings.json`, next to `vocab.txt`, stores how the text of a vocabulary was read, so that
other texts are read in the same way.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.document import Token
from dntm.corpus.text import spaces_before
from dntm.files import folder_of
from dntm.settings import merged, read_json

From = Literal["first", "repeated"]
"""When a name or an unknown word becomes an entity."""
UNK, BOS, EOS = 0, 1, 2
SPECIALS = ("<unk>", "<bos>", "<eos>")
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


def straightened(word: str) -> str:
    """The word with straight quotes instead of curly ones."""
    return word if word.isascii() else word.translate(_STRAIGHT)


Numbers = TypeVar("Numbers", int, NDArray[np.int64])


def entity_rows(entities: int) -> slice:
    """The rows of entities 1 to `entities`; the rows of words follow."""
    return slice(len(SPECIALS), len(SPECIALS) + entities)


def row_of_entity(entity: Numbers) -> Numbers:
    """The row of entity 1, 2, ..."""
    return entity + (len(SPECIALS) - 1)


_ENTITY = re.compile(r"\[\d+\]")
_MOST_ENTITIES = 1_000_000
_SETTINGS = "text_settings.json"
_COUNTS = "counts.txt"
VOCABULARY_FILES = ("vocab.txt", _SETTINGS, _COUNTS)
"""The files that `Vocabulary.save` writes."""


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How a text is read."""

    lower_case: bool = False
    """Whether words are looked up in lower case."""
    entities: tuple[str, ...] = ()
    """What counts as an entity; empty: not known."""
    entities_from: From = "first"
    """Whether names and unknown words are entities from the first mention on, or if repeated."""

    @classmethod
    def from_plain(cls, values: object) -> Self | None:
        """From a JSON value; None if it has no such settings. Other keys are ignored."""
        if not isinstance(values, dict) or "lower_case" not in values:
            return None
        known = {f.name: values[f.name] for f in fields(cls) if values.get(f.name) is not None}
        return merged(cls(), known, "settings")


@dataclass(frozen=True)
class Vocabulary:
    """Maps words and entity numbers to rows; words are in order of decreasing frequency."""

    ends: ClassVar[bool] = True
    """Whether every sentence ends with <eos>."""
    without_row: ClassVar[str] = SPECIALS[UNK]
    """The word that is read in place of a mention without a row."""
    words: Sequence[str] = field(repr=False)
    entities: int = 50
    settings: TextSettings | None = field(default=None, compare=False)
    """How its text was read, if known."""
    counts: Sequence[int] | None = field(default=None, compare=False, repr=False)
    """How often each row occurs in the training text, if known."""
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)
    _straightens: bool = field(init=False, repr=False, compare=False)
    """If no word has a curly quote, words with curly quotes are looked up with straight ones."""

    def __post_init__(self) -> None:
        first = entity_rows(self.entities).stop
        rows = {word: first + i for i, word in enumerate(self.words)}
        if len(rows) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ValueError(f"the vocabulary holds {twice!r:.80} twice, expected each word once")
        object.__setattr__(self, "_rows", rows)
        letters = "".join(self.words)
        object.__setattr__(self, "_straightens", not any(map(letters.__contains__, "‘’“”")))

    @classmethod
    def from_counts(cls, counts: Counter[str], *, size: int, entities: int) -> Self:
        """Keep the most frequent words, so that there are at most `size` rows."""
        check_size(size, entities)
        room = size - entity_rows(entities).stop
        ranked = sorted(
            (item for item in counts.items() if not is_label(item[0])),
            key=lambda item: (-item[1], item[0]),
        )
        return cls(tuple(word for word, _ in ranked[:room]), entities)

    def __len__(self) -> int:
        return len(SPECIALS) + self.entities + len(self.words)

    def __contains__(self, word: str) -> bool:
        return self._row(word) != UNK

    @cached_property
    def lower_case(self) -> bool:
        """Whether words are looked up in lower case; inferred from the words if not known."""
        if self.settings is not None:
            return self.settings.lower_case
        return all(word == word.lower() for word in self.words)

    @property
    def entities_from(self) -> From:
        """When names and unknown words become entities; from the first mention on if not known."""
        return "first" if self.settings is None else self.settings.entities_from

    def spelled(self, word: str) -> str:
        """The word with the case and the quotes of the vocabulary."""
        word = word.lower() if self.lower_case else word
        return straightened(word) if self._straightens else word

    def entity_row(self, entity: int) -> int:
        """The row of entity 1, 2, ..."""
        if not 1 <= entity <= self.entities:
            raise ValueError(f"entity {entity} has no row: expected 1 to {self.entities}")
        return row_of_entity(entity)

    def entity_at(self, row: int) -> int:
        """The entity of a row, or 0."""
        entity = row - row_of_entity(0)
        return entity if 1 <= entity <= self.entities else 0

    def row(self, token: Token) -> int:
        """The row of a word (<unk> if it has none) or of an entity."""
        return self._row(token) if isinstance(token, str) else self.entity_row(token)

    def rows_of(self, sentence: Sequence[Token]) -> Iterable[Sequence[int]]:
        """The rows of every word of a sentence, here always one; none for entities."""
        return ((self._row(token),) if isinstance(token, str) else () for token in sentence)

    def _row(self, word: str) -> int:
        row = self._rows.get(word, UNK)
        if row == UNK and self._straightens:
            return self._rows.get(straightened(word), UNK)
        return row

    def label(self, row: int) -> str:
        """The label of a row: a word, <unk>, [1]."""
        rows = entity_rows(self.entities)
        if row >= rows.stop:
            return str(self.words[row - rows.stop])
        return SPECIALS[row] if row < rows.start else f"[{row - row_of_entity(0)}]"

    def labels(self) -> list[str]:
        """The labels of all rows, in order."""
        return [self.label(row) for row in range(len(self))]

    def whole_words(self) -> Sequence[str]:
        """The word of each row of `words`; empty for parts of words."""
        return self.words

    def save(self, folder: Path) -> None:
        """Write `vocab.txt`, and if known `text_settings.json` and `counts.txt`."""
        text = "".join(f"{label}\n" for label in self.labels())
        (folder / "vocab.txt").write_text(text, encoding="utf-8", newline="\n")
        self.save_settings(folder)
        if self.counts is not None:
            text = "".join(f"{count}\n" for count in self.counts)
            (folder / _COUNTS).write_text(text, encoding="utf-8")

    def save_settings(self, folder: Path) -> None:
        """Write `text_settings.json`, if the settings are known."""
        if self.settings is not None:
            plain = json.dumps(asdict(self.settings), indent=2)
            (folder / _SETTINGS).write_text(plain + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path, *, entities: int) -> Self:
        """Read `vocab.txt` and the files next to it."""
        try:
            labels = path.read_bytes().decode().split("\n")[:-1]
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
        first = entity_rows(entities).stop
        if len(labels) <= first:
            raise ValueError(f"{path}: {len(labels)} rows, expected words after the first {first}")
        if "" in labels:
            raise ValueError(f"{path}, line {labels.index('') + 1}: found no word, expected one")
        for line, (found, expected) in enumerate(
            zip(labels, cls((), entities).labels(), strict=False), start=1
        ):
            if found != expected:
                raise ValueError(f"{path}, line {line}: found {found!r:.80}, expected {expected!r}")
        try:
            counts = _saved_counts(path, len(labels))
            return cls(tuple(labels[first:]), entities, saved_settings(path), counts)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


_BLANKS = "Ġ▁"
"""How tokenizers write a blank at the beginning of a piece."""


@dataclass(frozen=True)
class PieceVocabulary(Vocabulary):
    """The rows of a pretrained language model, whose tokenizer divides words into pieces.

    `words` are the pieces, in the order of the tokenizer. The tokens of a corpus have lost their
    blanks, which are put back as English text has them. Sentences have no <eos>: a pretrained
    language model reads a text as one sequence.
    """

    ends: ClassVar[bool] = False
    without_row: ClassVar[str] = "it"
    divide: Callable[[str], Sequence[int]] = field(kw_only=True, compare=False, repr=False)
    """The tokenizer: from text to the numbers of pieces."""

    def _row(self, word: str) -> int:
        pieces = self.divide(f" {word}")
        return entity_rows(self.entities).stop + pieces[0] if len(pieces) == 1 else UNK

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


def check_size(size: int, entities: int) -> None:
    """Raise ValueError if a vocabulary of this size has no room for words."""
    if size <= (least := len(SPECIALS) + entities):
        raise ValueError(
            f"vocabulary_size is {size}, expected more than {least}: "
            f"{len(SPECIALS)} special and {entities} entity rows count too"
        )


def is_label(word: str) -> bool:
    """Whether a word looks like the label of a special or entity row: <unk>, [1]."""
    return word in SPECIALS or _ENTITY.fullmatch(word) is not None


def saved_settings(vocabulary: Path) -> TextSettings | None:
    """The settings next to a `vocab.txt`, if there are any."""
    path = vocabulary.with_name(_SETTINGS)
    return TextSettings.from_plain(read_json(path)) if path.is_file() else None


def _saved_counts(vocabulary: Path, rows: int) -> tuple[int, ...] | None:
    path = vocabulary.with_name(_COUNTS)
    if not path.is_file():
        return None
    counts = path.read_bytes().split()
    if len(counts) != rows or not b"".join(counts).isdigit() or max(map(len, counts)) > 15:
        raise ValueError(f"{path} is damaged: expected {rows} whole numbers, one per row")
    return tuple(map(int, counts))


def load_vocabulary(folder: Path, *, entities: int) -> Vocabulary:
    """The vocabulary of a folder; that of a pretraining run gets `entities` entity rows."""
    folder = folder_of(folder)
    for place in (folder, folder / "best", folder / "text"):
        if not (place / "vocab.txt").is_file():
            continue
        files = (place / name for name in ("dataset.json", "config.json"))
        information = next((read_json(path) for path in files if path.is_file()), {})
        rows = information.get("entities", 0)
        if type(rows) is not int or not 0 <= rows <= _MOST_ENTITIES:
            raise ValueError(f"{place}: entities {rows!r:.40}, expected a number of rows")
        found = Vocabulary.load(place / "vocab.txt", entities=rows)
        if found.settings is None:
            settings = TextSettings.from_plain(information.get("settings"))
            found = replace(found, settings=settings)
        return found if rows else replace(found, entities=entities)
    raise ValueError(
        f"{folder} has no vocabulary: expected a dataset, a run, a checkpoint or a pretraining run"
    )
