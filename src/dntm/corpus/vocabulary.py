"""Vocabulary: the rows of the embedding tables.

Rows 0 to 2 are <unk>, <bos> and <eos>; the next ones belong to the entities [1], [2], ...; the
rest to the most frequent words of the training split. All of them count toward the size, 10,000
rows in the paper. A vocabulary knows how the text was read that it was made for, so that whoever
reads with it reads alike; `text_settings.json` keeps that beside `vocab.txt`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.document import Token

UNK, BOS, EOS = 0, 1, 2
SPECIALS = ("<unk>", "<bos>", "<eos>")
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


def straightened(word: str) -> str:
    """The word with straight quotes for curly ones."""
    return word if word.isascii() else word.translate(_STRAIGHT)


Numbers = TypeVar("Numbers", int, NDArray[np.int64])


def entity_rows(entities: int) -> slice:
    """The rows of entities 1 to `entities`; the words' rows begin where it stops."""
    return slice(len(SPECIALS), len(SPECIALS) + entities)


def row_of_entity(entity: Numbers) -> Numbers:
    """The row of entity 1, 2, ..."""
    return entity + (len(SPECIALS) - 1)


def entity_of_row(row: Numbers) -> Numbers:
    """The entity 1, 2, ... of a row that is known to be an entity's."""
    return row - (len(SPECIALS) - 1)


_ENTITY = re.compile(r"\[\d+\]")
_SETTINGS = "text_settings.json"
_COUNTS = "counts.txt"
VOCABULARY_FILES = ("vocab.txt", _SETTINGS, _COUNTS)
"""What `Vocabulary.save` writes."""


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How a text is read."""

    lower_case: bool = False
    """Whether words are looked up in lower case."""
    entities: tuple[str, ...] = ()
    """What counts as an entity; empty: not known."""
    entities_from: str = "first"
    """Names and unknown words: from the first mention on, or only if repeated."""
    text_rules: int = 2
    """The version of the rules for words and sentences (`corpus.text`)."""

    @classmethod
    def from_plain(cls, values: object) -> Self | None:
        """From what JSON holds; None where that is none."""
        if not isinstance(values, dict) or "lower_case" not in values:
            return None
        if "entities_from" not in values:  # a dataset built when there was no other setting
            values = {**values, "entities_from": "repeated", "text_rules": 1}
        known = {f.name: values[f.name] for f in fields(cls) if values.get(f.name) is not None}
        if isinstance(known.get("entities"), list):
            known["entities"] = tuple(map(str, known["entities"]))
        kinds = {"lower_case": bool, "entities": tuple, "entities_from": str, "text_rules": int}
        if any(type(value) is not kinds[name] for name, value in known.items()):
            raise ValueError(f"settings {values!r:.200}, expected how a text is read")
        return cls(**known)


@dataclass(frozen=True)
class Vocabulary:
    """Maps words and entity numbers to rows; words come in order of falling frequency."""

    words: Sequence[str]
    entities: int = 50
    settings: TextSettings | None = field(default=None, compare=False)
    """How its text was read, where that is known."""
    counts: Sequence[int] | None = field(default=None, compare=False, repr=False)
    """How often each row occurs in the training text, where that is known."""
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)
    _straightens: bool = field(init=False, repr=False, compare=False)
    """Where no word has a curly quote, words that have one are looked up with straight ones."""

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
        """Keep the most frequent words so that all rows together are at most `size`."""
        room = size - entity_rows(entities).stop
        if room < 1:
            raise ValueError(
                f"a vocabulary of {size} rows has no room for words beside "
                f"{len(SPECIALS)} special and {entities} entity rows"
            )
        ranked = sorted(
            (item for item in counts.items() if not is_label(item[0])),
            key=lambda item: (-item[1], item[0]),
        )
        return cls(tuple(word for word, _ in ranked[:room]), entities)

    def __len__(self) -> int:
        return len(SPECIALS) + self.entities + len(self.words)

    def __contains__(self, word: str) -> bool:
        return self._row(word) != UNK

    @property
    def lower_case(self) -> bool:
        """Whether words are looked up in lower case; the words tell where nothing else does."""
        if self.settings is not None:
            return self.settings.lower_case
        return all(word == word.lower() for word in self.words)

    def entity_row(self, entity: int) -> int:
        """The row of entity 1, 2, ..."""
        if not 1 <= entity <= self.entities:
            raise ValueError(f"entity {entity} has no row: expected 1 to {self.entities}")
        return row_of_entity(entity)

    def entity_at(self, row: int) -> int:
        """The entity whose row this is, else 0."""
        entity = entity_of_row(row)
        return entity if 1 <= entity <= self.entities else 0

    def row(self, token: Token) -> int:
        """The row of a word (<unk> where it has none) or of an entity."""
        return self._row(token) if isinstance(token, str) else self.entity_row(token)

    def _row(self, word: str) -> int:
        row = self._rows.get(word, UNK)
        if row == UNK and self._straightens:
            return self._rows.get(straightened(word), UNK)
        return row

    def encode(self, sentence: Iterable[Token]) -> list[int]:
        """The rows of a sentence, <bos> and <eos> around it."""
        return [BOS, *(self.row(token) for token in sentence), EOS]

    def label(self, row: int) -> str:
        """What a row is called."""
        rows = entity_rows(self.entities)
        if row >= rows.stop:
            return str(self.words[row - rows.stop])
        return SPECIALS[row] if row < rows.start else f"[{entity_of_row(row)}]"

    def labels(self) -> list[str]:
        """What each row is called, in order."""
        entities = [f"[{entity}]" for entity in range(1, self.entities + 1)]
        return [*SPECIALS, *entities, *self.words]

    def text(self) -> str:
        """The content of `vocab.txt`: one row a line."""
        return "".join(f"{label}\n" for label in self.labels())

    def save(self, folder: Path) -> None:
        """Write `vocab.txt`, and beside it how the text was read."""
        (folder / "vocab.txt").write_text(self.text(), encoding="utf-8", newline="\n")
        if self.settings is not None:
            plain = json.dumps(asdict(self.settings), indent=2)
            (folder / _SETTINGS).write_text(plain + "\n", encoding="utf-8")
        if self.counts is not None:
            text = "".join(f"{count}\n" for count in self.counts)
            (folder / _COUNTS).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: Path, *, entities: int) -> Self:
        """Read `vocab.txt`; the number of entity rows stands beside it, in the JSON file."""
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
            counts = _counts_beside(path, len(labels))
            return cls(tuple(labels[first:]), entities, _settings_beside(path), counts)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def is_label(word: str) -> bool:
    """Whether a word of a text looks like a row that belongs to no word: <unk>, [1]."""
    return word in SPECIALS or _ENTITY.fullmatch(word) is not None


def _settings_beside(vocabulary: Path) -> TextSettings | None:
    path = vocabulary.with_name(_SETTINGS)
    if not path.is_file():
        return None
    try:
        return TextSettings.from_plain(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, OSError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _counts_beside(vocabulary: Path, rows: int) -> tuple[int, ...] | None:
    path = vocabulary.with_name(_COUNTS)
    if not path.is_file():
        return None
    counts = path.read_bytes().split()
    if len(counts) != rows or not b"".join(counts).isdigit() or max(map(len, counts)) > 15:
        raise ValueError(f"{path} is damaged: expected {rows} whole numbers, one a row")
    return tuple(map(int, counts))


def load_vocabulary(folder: Path, *, entities: int) -> Vocabulary:
    """The vocabulary of a dataset, a run, a checkpoint, a pretraining run or a store of its text.

    That of a pretraining has no entities: it gets so many rows of them.
    """
    for place in (folder, folder / "best", folder / "text"):
        if not (place / "vocab.txt").is_file():
            continue
        beside = (place / name for name in ("dataset.json", "config.json"))
        information = next((_object(path) for path in beside if path.is_file()), {})
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


_MOST_ENTITIES = 1_000_000


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged: expected an object")
    return found
