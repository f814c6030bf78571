"""Which split a document belongs to: by folder, by a file of ids, or by a seeded fraction.

All parts of one document share its name and so its split.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from dntm.corpus.source import Block, InputError, numbered_lines

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
Assign = Callable[[str, str], str | None]
"""From a document's name and source file to its split, None where it belongs to none."""

_HEADING = re.compile(r"##+\s+(\S+)$")
_WORDS: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "development": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
}


def by_folder(_name: str, source: str) -> Split | None:
    """`data/development/...`, `train.english.v4_gold_conll`, `en_gum-corefud-test.conllu`."""
    *folders, file = source.lower().split("/")
    for folder in reversed(folders):
        if found := _named(folder):
            return found
    return _named(re.sub(r"(\.[a-z0-9_]+)+$", "", file)) or _named(file.split(".")[0])


def _named(text: str) -> Split | None:
    words = re.split(r"[^a-z]+", text)
    return _WORDS.get(words[0]) or _WORDS.get(words[-1])


def by_ids(path: Path) -> Assign:
    """From a folder of `train.ids`, `dev.ids`, `test.ids`, or one file that names the splits.

    One file is either headings and list items (`## dev`, `* GUM_bio_byron`) or lines of an id and
    its split, parted by white space.
    """
    splits = _ids_in_folder(path) if path.is_dir() else _ids_in_file(path)
    if not splits:
        raise InputError(str(path), None, "names no document, expected ids of train, dev and test")

    def assign(name: str, _source: str) -> str | None:
        return splits.get(name)

    return assign


def _ids_in_folder(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    for split in SPLITS:
        for file in (path / f"{split}.ids", path / f"{split}.txt"):
            if file.is_file():
                for number, line in _lines(file):
                    _assign(splits, line, split, file, number)
    return splits


def _ids_in_file(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    lines = list(_lines(path))
    headings = {number: match[1] for number, line in lines if (match := _HEADING.match(line))}
    split = ""
    for number, line in lines:
        split = headings.get(number, split).lower()
        if headings and split and (match := re.match(r"[*-]\s+(\S+)$", line)):
            _assign(splits, match[1], _WORDS.get(split, split), path, number)
        elif not headings and not line.startswith("#"):
            name, _, word = line.rpartition("\t" if "\t" in line else " ")
            if not name or word.lower() not in _WORDS:
                raise InputError(str(path), number, f"found {line!r}, expected an id and its split")
            _assign(splits, name.strip(), _WORDS[word.lower()], path, number)
    return splits


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    lines = [line for _, line in numbered_lines(path)]
    for number, line in Block(str(path), 1, lines).text_lines():
        if line.strip():
            yield number, line.strip()


def _assign(splits: dict[str, str], name: str, split: str, path: Path, line: int) -> None:
    if splits.setdefault(name, split) != split:
        raise InputError(
            str(path), line, f"{name!r} is in {splits[name]} and in {split}, expected one split"
        )


def check_fractions(fractions: Sequence[float]) -> None:
    """Raise ValueError where they are not three shares of one."""
    shares = len(fractions) == 3 and all(0 <= share <= 1 for share in fractions)
    if not shares or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"fractions {tuple(fractions)}, expected three that add up to 1")


def by_fraction(names: Iterable[str], fractions: Sequence[float], seed: int) -> Assign:
    """Shuffle the documents with a seed and cut them by these shares of train, dev and test."""
    check_fractions(fractions)
    order = sorted(set(names))
    random.Random(seed).shuffle(order)
    test = round(fractions[2] * len(order))
    dev = round(fractions[1] * len(order))
    splits: dict[str, Split] = dict.fromkeys(order[test + dev :], "train")
    splits |= dict.fromkeys(order[:test], "test")
    splits |= dict.fromkeys(order[test : test + dev], "dev")

    def assign(name: str, _source: str) -> str | None:
        return splits.get(name)

    return assign
