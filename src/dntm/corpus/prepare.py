"""From a corpus by name, or any file or folder, to a dataset folder: `dntm data build`."""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from dntm.corpus.build import (
    Assign,
    BuildConfig,
    LeftOut,
    Origin,
    Source,
    build,
    finish,
    new_dataset,
    write_splits,
)
from dntm.corpus.catalog import CORPORA, Corpus, belongs, files_of, locate
from dntm.corpus.dataset import SPLITS, Split
from dntm.corpus.document import AnonymizedDocument, Document
from dntm.corpus.reading import ANNOTATED, Format, files_and_format, read_documents
from dntm.corpus.resolver import INSTALL, Resolver, StanzaResolver
from dntm.corpus.source import LONGEST_LINE, Block, InputError, numbered_lines
from dntm.corpus.storyworld.story import StoryworldConfig, stories
from dntm.corpus.text import VERSION, Documents
from dntm.corpus.vocabulary import SPECIALS, Vocabulary, load_vocabulary
from dntm.files import resolved
from dntm.settings import settle


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    """How a source is read and split."""

    format: Format | None = None
    """The files' format; recognised where not given. inline: text with [1], [2] as mentions."""
    documents: Documents = "file"
    """Plain text: one document a file, or one between empty lines (then each line is a
    paragraph)."""
    on_error: Literal["stop", "skip"] = "stop"
    """A malformed document ends the build, or is left out and counted."""
    limit: int | None = None
    """Read only the first so many documents."""
    leave_out: tuple[str, ...] = ()
    """Leave out documents whose names match one of these patterns, such as 'GUM_fiction_*'."""
    split_by: Literal["auto", "folder", "ids", "fraction"] = "auto"
    """How documents fall into train, dev and test: by the names of folders or files, by a file of
    ids, or by a seeded fraction. auto: the first of ids, folder, fraction that applies."""
    splits: Path | None = None
    """The file of ids: lines of id and split, or headings and list items; or a folder of
    train.ids, dev.ids, test.ids."""
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Shares of train, dev and test for --split-by fraction."""
    dev_as_test: bool = False
    """For a corpus without test documents of its own: those of dev are test, and of train a seeded
    share (the second of --fractions) is dev."""
    seed: int = 1
    """Seed of the fraction's shuffle, and of storyworld."""
    coref_model: Path | None = None
    """Weights of the coreference model for --entities resolver (extra: coref)."""
    longest_line: int = LONGEST_LINE
    """Bytes of a line at most, of a document of an annotated format 64 times as many: what is
    larger is an error, and not read into memory."""

    def __post_init__(self) -> None:
        settle(self)
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit is {self.limit}, expected at least 1")
        if self.longest_line < 1:
            raise ValueError(f"longest_line is {self.longest_line}, expected at least 1")
        check_fractions(self.fractions)

    def as_plain(self) -> dict[str, Any]:
        """The settings as JSON holds them."""
        return {n: str(v) if isinstance(v, Path) else v for n, v in asdict(self).items()}


def prepare(
    source: str,
    target: Path,
    reading: ReadConfig,
    config: BuildConfig,
    *,
    given: str | None = None,
    overwrite: bool = False,
    skipped: list[str] | None = None,
    progress: Callable[[Iterable[Document]], Iterable[Document]] = iter,
) -> dict[str, Any]:
    """Build a dataset and return the content of its `dataset.json`.

    `given` is a local copy or mirror of a corpus known by name. With `on_error="skip"`, `skipped`
    is filled with what was wrong with each malformed document.
    """
    skipped = [] if skipped is None else skipped
    corpus = CORPORA.get(source) or Corpus.of_path(source)
    if given and source not in CORPORA:
        raise ValueError(f"--from {given} goes with a corpus known by name, not with {source!r}")
    located = locate(corpus, given if source in CORPORA else source)
    _check_target(target, located.documents)
    files, format_ = files_and_format(located.documents, reading.format or corpus.format)
    files = files_of(corpus, files, located.documents)
    if format_ in ANNOTATED and reading.documents != "file":
        raise ValueError(
            f"--documents {reading.documents} has no effect on {format_}, which marks documents"
        )
    config = _resolved(config, corpus, format_)
    left_out = LeftOut()
    read = read_documents(
        located.documents,
        files,
        format_,
        documents=reading.documents,
        skipped=skipped if reading.on_error == "skip" else None,
        version=config.text_rules or VERSION,
        places=False,
        longest=reading.longest_line,
    )
    wanted = (d for d in read if not any(fnmatchcase(d.name, p) for p in reading.leave_out))
    documents = islice(_of_corpus(wanted, corpus, left_out, skipped), reading.limit)
    return build(
        Source(
            documents=progress(documents),
            assign=_with_test(reading, _splitting(reading, located.splits)),
            origin=Origin(
                corpus=source,
                given=given,
                version=located.version,
                digest=_digest(files, located.documents),
                licence=corpus.licence,
            ),
            left_out=left_out,
            settings={**reading.as_plain(), "format": format_},
            resolver=_resolver(config, reading.coref_model),
        ),
        target,
        config,
        overwrite=overwrite,
    )


def _check_target(target: Path, source: Path) -> None:
    here, there = resolved(target), resolved(source)
    if here == there or here in there.parents:
        raise ValueError(f"{target} is, or holds, the source {source}: choose another folder")


def _resolved(config: BuildConfig, corpus: Corpus, format_: Format) -> BuildConfig:
    """The settings with what the corpus and its format decide where the user did not."""
    annotated = format_ in ANNOTATED or format_ == "inline"
    if config.named_entities and format_ != "conll2012":
        raise ValueError(f"--named-entities needs the column of CoNLL-2012, found {format_}")
    if not annotated and config.entities == ("chains",):
        raise ValueError("plain text has no chains: pass --entities names, unknown or resolver")
    if format_ in ANNOTATED and config.text_rules is not None:
        raise ValueError(f"--text-rules has no effect on {format_}, where words are told")
    entities = ("chains",) if annotated else ("names", "unknown")
    settings = {"entities": entities, "max_sentences": 0, **corpus.settings}
    config = config.resolved(**settings)
    if format_ == "inline":  # anonymised already: every [k] is an entity, mentioned once or not
        config = replace(config, keep_single=True, keep_single_in_part=True)
    return config


def _of_corpus(
    documents: Iterable[Document], corpus: Corpus, left_out: LeftOut, skipped: list[str]
) -> Iterator[Document]:
    for document in documents:
        if belongs(corpus, document.name):
            yield document
        else:
            left_out.not_of_the_corpus += 1
    left_out.malformed = len(skipped)


def _digest(files: list[Path], root: Path) -> str:
    """SHA-256 over the names and contents of the files."""
    digest = hashlib.sha256()
    for path in files:
        name = path.relative_to(root).as_posix() if path != root else path.name
        digest.update(f"{name}\0".encode())
        if path.is_file():
            with path.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def _splitting(
    reading: ReadConfig, corpus_splits: Path | None
) -> Callable[[list[tuple[str, str]]], Assign]:
    """How the splits are found; a file of ids is read at once, the rest needs all documents."""
    by, ids = reading.split_by, reading.splits or corpus_splits
    if by == "ids" or (by == "auto" and ids):
        if ids is None:
            raise ValueError("split by ids asked for: pass --splits with the file or folder of ids")
        _refuse_shares(reading, "by a file of ids")
        listed = by_ids(ids)
        return lambda _keys: listed

    if reading.splits is not None:
        raise ValueError(f"--splits has no effect with --split-by {by}")

    def of(keys: list[tuple[str, str]]) -> Assign:
        splits = {by_folder(*key) for key in keys}
        if by == "folder" or (by == "auto" and None not in splits and "train" in splits):
            _refuse_shares(reading, "by the names of folders and files")
            return by_folder
        return by_fraction((name for name, _ in keys), reading.fractions, reading.seed)

    return of


def _refuse_shares(reading: ReadConfig, how: str) -> None:
    for name in ("fractions", "seed"):
        if not reading.dev_as_test and getattr(reading, name) != getattr(ReadConfig(), name):
            raise ValueError(
                f"--{name} has no effect: documents are split {how} (--split-by fraction)"
            )


def _with_test(
    reading: ReadConfig, assign: Callable[[list[tuple[str, str]]], Assign]
) -> Callable[[list[tuple[str, str]]], Assign]:
    """Where asked for, dev becomes test and a share of train dev."""

    def of(keys: list[tuple[str, str]]) -> Assign:
        rule = assign(keys)
        splits = {name: rule(name, source) for name, source in keys}
        held = Counter(splits.values())
        if held["test"] or not held["dev"] or not held["train"]:
            raise ValueError(
                f"--dev-as-test needs documents of train and dev and none of test, found "
                f"{held['train']} of train, {held['dev']} of dev and {held['test']} of test"
            )
        train = sorted(name for name, split in splits.items() if split == "train")
        random.Random(reading.seed).shuffle(train)
        moved = {name: "test" for name, split in splits.items() if split == "dev"}
        moved |= dict.fromkeys(train[: max(1, round(reading.fractions[1] * len(train)))], "dev")
        return lambda name, source: moved.get(name) or rule(name, source)

    return of if reading.dev_as_test else assign


def _resolver(config: BuildConfig, model: Path | None) -> Resolver | None:
    if "resolver" not in (config.entities or ()):
        if model is not None:
            raise ValueError("--coref-model is used with --entities resolver only")
        return None
    if model is None:
        raise ValueError(
            f"entities by a coreference model asked for: {INSTALL}, and pass --coref-model with "
            "the path of its weights"
        )
    return StanzaResolver(model)


def prepare_storyworld(
    target: Path,
    config: StoryworldConfig,
    *,
    vocabulary_of: Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write generated stories; every word has its row, so that the ideal reader stays ideal."""
    made: list[tuple[str, AnonymizedDocument]] = [
        (split, story) for split in SPLITS for story in stories(config, split)
    ]
    words = Counter(
        word for _, d in made for s in d.sentences for word in s if isinstance(word, str)
    )
    size = len(SPECIALS) + config.entities + len(words)
    vocabulary = Vocabulary.from_counts(words, size=size, entities=config.entities)
    if vocabulary_of:
        counted, vocabulary = vocabulary, load_vocabulary(vocabulary_of, entities=config.entities)
        if counted.entities > vocabulary.entities or set(counted.words) - set(vocabulary.words):
            raise ValueError(
                f"the vocabulary of {vocabulary_of} has {vocabulary.entities} entities and lacks "
                f"{len(set(counted.words) - set(vocabulary.words))} words of the stories, expected "
                f"at least {counted.entities} entities and every word"
            )
    source = Source(
        documents=(),
        assign=lambda _keys: by_folder,
        origin=Origin(corpus="storyworld", licence=CORPORA["storyworld"].licence),
        left_out=LeftOut(),
        settings={},
    )
    with new_dataset(target, overwrite=overwrite) as folder:
        statistics = write_splits(folder, made, vocabulary)
        of = None if vocabulary_of is None else str(vocabulary_of)
        settings = {**asdict(config), "vocabulary_of": of}
        return finish(folder, vocabulary, statistics, settings, source)


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
                    _put(splits, line, split, file, number)
    return splits


def _ids_in_file(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    lines = list(_lines(path))
    headings = {number: match[1] for number, line in lines if (match := _HEADING.match(line))}
    split = ""
    for number, line in lines:
        split = headings.get(number, split).lower()
        if headings and split and (match := re.match(r"[*-]\s+(\S+)$", line)):
            _put(splits, match[1], _WORDS.get(split, split), path, number)
        elif not headings and not line.startswith("#"):
            name, _, word = line.rpartition("\t" if "\t" in line else " ")
            if not name or word.lower() not in _WORDS:
                raise InputError(str(path), number, f"found {line!r}, expected an id and its split")
            _put(splits, name.strip(), _WORDS[word.lower()], path, number)
    return splits


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    lines = [line for _, line in numbered_lines(path)]
    for number, line in Block(str(path), 1, lines).text_lines():
        if line.strip():
            yield number, line.strip()


def _put(splits: dict[str, str], name: str, split: str, path: Path, line: int) -> None:
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
