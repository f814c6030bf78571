"""Splits: how documents are divided into train, dev and test.

By a file of ids, by the names of folders and files, or by seeded fractions.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from dntm.corpus.dataset import SPLITS, Split
from dntm.corpus.source import InputError, text_lines

Key = tuple[str, str]
"""A document's name and source file."""
Assign = Callable[[str, str], str | None]
"""From a document's name and source file to its split; None if it belongs to none."""
FRACTIONS = (0.8, 0.1, 0.1)
_DEV_SHARE = 0.1
_HEADING = re.compile(r"##+\s+(\S+)$")
_NAMES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "development": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
}


def automatic(
    keys: Sequence[Key], ids: Path | None, fractions: Sequence[float] | None, seed: int
) -> Assign:
    """By fractions if given, else by ids if given, else by folders if they name all splits."""
    if fractions is None and ids is not None:
        return by_ids(ids)
    named = {by_folder(*key) for key in keys}
    if fractions is None and None not in named and "train" in named:
        return by_folder
    return by_fraction((name for name, _ in keys), fractions or FRACTIONS, seed)


def by_folder(_name: str, source: str) -> Split | None:
    """`data/development/...`, `train.english.v4_gold_conll`, `en_gum-corefud-test.conllu`."""
    *folders, file = source.lower().split("/")
    for folder in reversed(folders):
        if found := _named(folder):
            return found
    return _named(re.sub(r"(\.[a-z0-9_]+)+$", "", file)) or _named(file.split(".")[0])


def _named(text: str) -> Split | None:
    words = re.split(r"[^a-z]+", text)
    return _NAMES.get(words[0]) or _NAMES.get(words[-1])


def by_ids(path: Path) -> Assign:
    """From a folder of `train.ids`, `dev.ids`, `test.ids`, or from one file.

    The file has headings and list items (`## dev`, `* GUM_bio_byron`), or lines of an id and its
    split, separated by white space.
    """
    splits = _ids_in_folder(path) if path.is_dir() else _ids_in_file(path)
    if not splits:
        raise InputError(str(path), None, "names no document, expected ids of train, dev and test")
    return lambda name, _source: splits.get(name)


def _ids_in_folder(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    for split in SPLITS:
        for file in (path / f"{split}.ids", path / f"{split}.txt"):
            if file.is_file():
                for number, line in _lines(file):
                    _put(splits, line, split, file, number)
    return splits


def _ids_in_file(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    lines = _lines(path)
    headings = {number: match[1] for number, line in lines if (match := _HEADING.match(line))}
    split = ""
    for number, line in lines:
        split = headings.get(number, split).lower()
        if headings and split and (match := re.match(r"[*-]\s+(\S+)$", line)):
            _put(splits, match[1], _NAMES.get(split, split), path, number)
        elif not headings and not line.startswith("#"):
            name, _, word = line.rpartition("\t" if "\t" in line else " ")
            if not name or word.lower() not in _NAMES:
                raise InputError(str(path), number, f"found {line!r}, expected an id and its split")
            _put(splits, name.strip(), _NAMES[word.lower()], path, number)
    return splits


def _lines(path: Path) -> list[tuple[int, str]]:
    return [(number, line.strip()) for number, line in text_lines(path) if line.strip()]


def _put(splits: dict[str, str], name: str, split: str, path: Path, line: int) -> None:
    if splits.setdefault(name, split) != split:
        raise InputError(
            str(path), line, f"{name!r} is in {splits[name]} and in {split}, expected one split"
        )


def check_fractions(fractions: Sequence[float]) -> None:
    """Raise ValueError if these are not three shares that add up to 1."""
    shares = len(fractions) == 3 and all(0 <= share <= 1 for share in fractions)
    if not shares or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"fractions {tuple(fractions)}, expected three that add up to 1")


def by_fraction(names: Iterable[str], fractions: Sequence[float], seed: int) -> Assign:
    """Shuffle the documents with a seed and divide them by these shares of train, dev and test."""
    check_fractions(fractions)
    order = sorted(set(names))
    random.Random(seed).shuffle(order)
    test = round(fractions[2] * len(order))
    dev = round(fractions[1] * len(order))
    splits: dict[str, Split] = dict.fromkeys(order[test + dev :], "train")
    splits |= dict.fromkeys(order[:test], "test")
    splits |= dict.fromkeys(order[test : test + dev], "dev")
    return lambda name, _source: splits.get(name)


def dev_as_test(keys: Sequence[Key], assign: Assign, seed: int) -> Assign:
    """Use dev as test, and a seeded tenth of train as dev."""
    splits = {name: assign(name, source) for name, source in keys}
    held = Counter(splits.values())
    if held["test"] or not held["dev"] or not held["train"]:
        raise ValueError(
            "--dev-as-test needs documents in train and dev and none in test, found "
            f"{held['train']} in train, {held['dev']} in dev and {held['test']} in test"
        )
    train = sorted(name for name, split in splits.items() if split == "train")
    random.Random(seed).shuffle(train)
    moved = {name: "test" for name, split in splits.items() if split == "dev"}
    moved |= dict.fromkeys(train[: max(1, round(_DEV_SHARE * len(train)))], "dev")
    return lambda name, source: moved.get(name) or assign(name, source)
