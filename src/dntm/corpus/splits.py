"""Which split a document belongs to: by folder, by a file of ids, or by a seeded fraction.

All parts of one document share its name and so its split.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from dntm.corpus.source import InputError, numbered_lines

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
Assign = Callable[[str, str], str | None]
"""From a document's name and source file to its split, None where it belongs to none."""

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
    return {
        raw.decode().strip(): split
        for split in SPLITS
        for suffix in (".ids", ".txt")
        if (path / f"{split}{suffix}").is_file()
        for _, raw in numbered_lines(path / f"{split}{suffix}")
        if raw.strip()
    }


def _ids_in_file(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    heading: str | None = None
    for number, raw in numbered_lines(path):
        line = raw.decode(errors="replace").strip()
        if match := re.match(r"#+\s*(\S+)$", line):
            heading = match[1]
        elif heading and (match := re.match(r"[*-]\s+(\S+)$", line)):
            splits[match[1]] = _WORDS.get(heading, heading)
        elif not heading and line and not line.startswith("#"):
            fields = line.split()
            if len(fields) != 2 or fields[1] not in _WORDS:
                raise InputError(str(path), number, f"found {line!r}, expected an id and its split")
            splits[fields[0]] = _WORDS[fields[1]]
    return splits


def by_fraction(names: Iterable[str], fractions: Sequence[float], seed: int) -> Assign:
    """Shuffle the documents with a seed and cut them by these shares of train, dev and test."""
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"fractions {tuple(fractions)}, expected three that add up to 1")
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
