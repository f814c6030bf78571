"""Corpora: the named corpora, and how the documents of any corpus are split.

`corpora.yaml` has the source, license and settings of each named corpus. Documents are split by a
file of ids, by the names of folders and files, by a hash of their own names, or at random.

Corpora on GitHub are downloaded with pooch as the archive of a pinned commit, unpacked once into
the cache folder, and used from there. The commit id that git writes into the archive must be the
pinned one. `dataset.json` records the SHA-256 of the files that were read.
"""

import hashlib
import importlib.metadata
import os
import random
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import pooch

from dntm.corpus.dataset import SPLITS, Split
from dntm.corpus.document import InputError, text_lines
from dntm.corpus.formats import Format
from dntm.files import locked, new_folder
from dntm.settings import read_yaml


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus that `dntm data build NAME` knows."""

    name: str
    summary: str = ""
    license: str = "that of the source"
    how: Literal["package", "generated", "download", "given"] = "given"
    """Part of a Python package, generated, downloaded, or given by the user with --from."""
    instructions: str = ""
    """How to get it, if it cannot be downloaded."""
    repository: str = ""
    """The GitHub repository, such as https://github.com/amir-zeldes/gum."""
    commit: str = ""
    paths: Sequence[str] = ()
    """The files and folders of the repository that are unpacked."""
    folders: Sequence[str] = (".",)
    """Where the documents are below the given or downloaded folder; the first that exists."""
    splits: Sequence[str] = ()
    """Where the file or folder of ids is; the first that exists."""
    split_by_name: bool = False
    """Whether a hash of the document's name decides its split."""
    prefer: Sequence[tuple[str, str]] = ()
    """Pairs of folder names: if the first exists, files below the second are not read (`*`: all
    files outside the first)."""
    leave_out: str = r"(?!)"
    """Regular expression of document names that are not part of the corpus."""
    format: Format | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """Build settings that differ from the defaults."""

    @property
    def archive(self) -> str:
        """The URL of the commit's archive."""
        host = self.repository.replace("//github.com", "//codeload.github.com")
        return f"{host}/tar.gz/{self.commit}"

    def preferred(self, files: list[Path], root: Path) -> list[Path]:
        """The files to read, if the corpus has the same documents in several folders."""
        for first, second in self.prefer:
            folders = {path: path.relative_to(root).parts[:-1] for path in files if path != root}
            if any(first in parts for parts in folders.values()):
                files = [
                    path
                    for path, parts in folders.items()
                    if first in parts or (second != "*" and second not in parts)
                ]
        return files


CORPORA = {
    name: Corpus(name=name, **values)
    for name, values in read_yaml(Path(__file__).with_name("corpora.yaml")).items()
}


class Located(NamedTuple):
    """A corpus on this machine."""

    documents: Path
    splits: Path | None
    version: str


def locate(corpus: Corpus, given: str | None) -> Located:
    """Find the corpus in the folder `given` (`--from`), in its package, or download it."""
    if given is not None:
        return _in_folder(corpus, Path(given), "")
    if corpus.how == "package":
        package = importlib.metadata.distribution(corpus.name)
        root = Path(str(package.locate_file(f"{corpus.name}/data/speeches")))
        return Located(root, None, package.version)
    if corpus.how == "download":
        return _in_folder(corpus, download(corpus), corpus.commit)
    raise ValueError(f"{corpus.name} cannot be downloaded. {corpus.instructions}")


def download(corpus: Corpus) -> Path:
    """The folder of the corpus in $DNTM_CACHE or the user's cache; downloaded if it is missing."""
    cache = Path(os.environ.get("DNTM_CACHE") or pooch.os_cache("dntm"))
    name = f"{corpus.name}-{corpus.commit[:12]}"
    with locked(cache / f"{name}.lock"):
        if (cache / name).is_dir():
            return cache / name
        try:
            archive = pooch.retrieve(
                corpus.archive,
                known_hash=None,
                path=cache,
                fname=f"{name}.tar.gz",
                progressbar=sys.stderr.isatty(),
            )
        except (OSError, ValueError) as error:
            raise ValueError(
                f"cannot download {corpus.archive} ({error}): without network, pass a local copy "
                "with --from FOLDER"
            ) from None
        try:
            with new_folder(cache / name) as folder:
                _unpack(Path(archive), folder, corpus)
        finally:
            Path(archive).unlink()
    return cache / name


def _unpack(archive: Path, folder: Path, corpus: Corpus) -> None:
    """Unpack the corpus's paths; ValueError if the archive is damaged or of another commit."""
    try:
        with tarfile.open(archive) as tar:
            if (commit := tar.pax_headers.get("comment")) != corpus.commit:
                raise ValueError(f"{corpus.archive} is commit {commit}, expected {corpus.commit}")
            for member in tar:
                path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                if any(path.is_relative_to(wanted) for wanted in corpus.paths):
                    tar.extract(member.replace(name=str(path)), folder, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(f"{corpus.archive} is damaged: {error}") from None


def _in_folder(corpus: Corpus, root: Path, version: str) -> Located:
    if not root.exists():
        raise InputError(str(root), None, "no such file or folder")
    documents = next((root / f for f in corpus.folders if (root / f).is_dir()), root)
    ids = next((root / f for f in corpus.splits if (root / f).exists()), None)
    return Located(documents, ids.parent if ids and ids.suffix == ".ids" else ids, version)


Key = tuple[str, str]
"""A document's name and source file."""
FRACTIONS = (0.8, 0.1, 0.1)
_HEADING = re.compile(r"##+\s+(\S+)$")
_SPLIT_NAMES: dict[str, Split] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "development", "valid", "validation"), "dev"),
    "test": "test",
}


def splits_of(
    keys: Sequence[Key],
    ids: Path | None,
    fractions: Sequence[float] | None,
    seed: int,
    *,
    by_name: bool = False,
) -> list[str | None]:
    """By fractions if given, else by ids, by names, or by folders if they name all splits."""
    if fractions is None and ids is not None:
        by_id = splits_by_ids(ids)
        return [by_id.get(name) for name, _ in keys]
    if fractions is None and by_name:
        held_out: dict[int, Split] = {0: "test", 1: "dev"}  # a tenth each
        return [held_out.get(_hash(name) % 10, "train") for name, _ in keys]
    by_folder = [split_of_file(source) for _, source in keys]
    if fractions is None and None not in by_folder and "train" in by_folder:
        return [*by_folder]
    at_random = splits_by_fraction({name for name, _ in keys}, fractions or FRACTIONS, seed)
    return [at_random[name] for name, _ in keys]


def part_of_train(
    keys: Sequence[Key], splits: Sequence[str | None], fraction: float
) -> list[str | None]:
    """Keep only this fraction of the training documents, those with the smallest hashes.

    A smaller fraction is part of a larger one; dev and test do not change.
    """
    train = {name for (name, _), split in zip(keys, splits, strict=True) if split == "train"}
    kept = set(sorted(train, key=_hash)[: max(1, round(fraction * len(train)))])
    return [
        None if split == "train" and name not in kept else split
        for (name, _), split in zip(keys, splits, strict=True)
    ]


def _hash(name: str) -> int:
    """SHA-256 of a document's name without its folders."""
    return int.from_bytes(hashlib.sha256(PurePosixPath(name).name.encode()).digest())


def split_of_file(source: str) -> Split | None:
    """`data/development/...`, `train.english.v4_gold_conll`, `en_gum-corefud-test.conllu`."""
    *folders, file = source.lower().split("/")
    for name in (*reversed(folders), re.sub(r"(\.[a-z0-9_]+)+$", "", file), file.split(".")[0]):
        words = re.split(r"[^a-z]+", name)
        if found := _SPLIT_NAMES.get(words[0]) or _SPLIT_NAMES.get(words[-1]):
            return found
    return None


def splits_by_ids(path: Path) -> dict[str, str]:
    """From a folder of `train.ids`, `dev.ids`, `test.ids`, or from one file.

    The file has headings and list items (`## dev`, `* GUM_bio_byron`), or lines of an id and its
    split, separated by whitespace.
    """
    splits: dict[str, str] = {}
    for file, number, name, split in _ids_in_folder(path) if path.is_dir() else _ids_in_file(path):
        if splits.setdefault(name, split) != split:
            problem = f"{name!r} is in {splits[name]} and in {split}, expected one split"
            raise InputError(str(file), number, problem)
    if not splits:
        raise InputError(str(path), None, "names no document, expected ids of train, dev and test")
    return splits


def _ids_in_folder(path: Path) -> Iterator[tuple[Path, int, str, str]]:
    for split in SPLITS:
        for file in (path / f"{split}.ids", path / f"{split}.txt"):
            if file.is_file():
                yield from ((file, number, line, split) for number, line in _lines(file))


def _ids_in_file(path: Path) -> Iterator[tuple[Path, int, str, str]]:
    lines = _lines(path)
    headings = {number: match[1] for number, line in lines if (match := _HEADING.match(line))}
    split = ""
    for number, line in lines:
        split = headings.get(number, split).lower()
        if headings and split and (match := re.match(r"[*-]\s+(\S+)$", line)):
            yield path, number, match[1], _SPLIT_NAMES.get(split, split)
        elif not headings and not line.startswith("#"):
            name, _, word = line.rpartition("\t" if "\t" in line else " ")
            if not name or word.lower() not in _SPLIT_NAMES:
                raise InputError(str(path), number, f"found {line!r}, expected an id and its split")
            yield path, number, name.strip(), _SPLIT_NAMES[word.lower()]


def _lines(path: Path) -> list[tuple[int, str]]:
    return [(number, line.strip()) for number, line in text_lines(path) if line.strip()]


def splits_by_fraction(
    names: Iterable[str], fractions: Sequence[float], seed: int
) -> dict[str, Split]:
    """Shuffle the documents with a seed and divide them by these shares of train, dev and test."""
    order = sorted(names)
    random.Random(seed).shuffle(order)
    test = round(fractions[2] * len(order))
    dev = round(fractions[1] * len(order))
    splits: dict[str, Split] = dict.fromkeys(order, "train")
    splits |= dict.fromkeys(order[:test], "test")
    return splits | dict.fromkeys(order[test : test + dev], "dev")


def dev_as_test(keys: Sequence[Key], splits: Sequence[str | None], seed: int) -> list[str | None]:
    """Use dev as test, and a seeded tenth of train as dev."""
    by_name = {name: split for (name, _), split in zip(keys, splits, strict=True)}
    held = Counter(by_name.values())
    if held["test"] or not held["dev"] or not held["train"]:
        raise ValueError(
            "--dev-as-test needs documents in train and dev and none in test, found "
            f"{held['train']} in train, {held['dev']} in dev and {held['test']} in test"
        )
    train = [name for name, split in by_name.items() if split == "train"]
    new: dict[str, Split] = splits_by_fraction(train, (0.9, 0.1, 0.0), seed)
    return [new.get(name, "test" if by_name[name] == "dev" else None) for name, _ in keys]
