"""TokenStore: the sentences of a large text as rows of a vocabulary, in memory-mapped arrays.

    text.json     format version, settings, counts
    vocab.txt     the vocabulary's rows, one per line
    counts.npy    how often each row occurs
    tokens.npy    the rows of all sentences, concatenated, without <bos> and <eos>
    starts.npy    the start of each sentence, and the end of the last one

The text is read once. Every word gets a provisional number when it is first seen; when all counts
are known, the numbers on disk are converted to rows, chunk by chunk. Memory holds the table of
words and the length of every sentence (4 bytes).

Departure: the words of a dataset have a row even if they are rare in the text; the paper does not
say how words outside the pretraining vocabulary are initialized.
"""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.text import Documents, documents_in
from dntm.corpus.vocabulary import SPECIALS, UNK, TextSettings, Vocabulary, check_size, straightened
from dntm.files import new_folder, write_text
from dntm.settings import cut, read_json, require, settle

FORMAT_VERSION = 1
_NO_HEADER = (SyntaxError, MemoryError, TokenError)
"""Errors of numpy for a damaged array header, in addition to ValueError."""


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """Which sentences are kept, and which words have a row."""

    documents: Documents = "blank-line"
    """Each line is a paragraph (blank-line), or blank lines separate paragraphs of wrapped lines
    (file)."""
    longest: int = 32
    """Maximum number of words per sentence; longer sentences are skipped."""
    min_count: int = 500
    """Words that occur less often than this are read as unknown words."""
    vocabulary_size: int = 100_000
    """Maximum number of vocabulary rows; the words of --dataset always have a row."""
    lower: bool = False
    """Convert words to lower case and quotation marks to straight ones; no-lower: do not."""
    without_vector: int = 500
    """With --vectors: words that have no vector and occur less often than this are read as unknown
    words."""
    held_out: float = 0.005
    """Fraction of sentences, at the end of each file, that are held out from training."""

    def __post_init__(self) -> None:
        settle(self, longest=1, min_count=1, without_vector=1)
        check_size(self.vocabulary_size, entities=0)
        require(self, "held_out", lambda v: 0 <= v < 1, "at least 0 and below 1")


@dataclass(frozen=True)
class TokenStore:
    """An opened store."""

    vocabulary: Vocabulary
    counts: NDArray[np.int64]
    tokens: NDArray[np.unsignedinteger[Any]]
    starts: NDArray[np.int64]
    train: NDArray[np.int64]
    """Training sentences of each file: first sentence and end."""
    held_out: NDArray[np.int64]
    """Held-out sentences of each file: first sentence and end."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a store; ValueError if the folder is not one."""
        path = folder / "text.json"
        try:
            information = read_json(path)
            if information["format_version"] != FORMAT_VERSION:
                raise ValueError(f"version {information['format_version']!r:.40}")
            arrays = {
                name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                for name in ("counts", "tokens", "starts")
            }
            files = np.array(information["files"], dtype=np.int64).reshape(-1, 3)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, *_NO_HEADER) as error:
            problem = cut(str(error), 300)
            raise ValueError(f"{folder} is not a token store: {problem}") from None
        vocabulary = Vocabulary.load(folder / "vocab.txt", entities=0)
        store = cls(vocabulary, **arrays, train=files[:, :2], held_out=files[:, 1:])
        if not store._is_consistent(files):
            raise ValueError(f"{folder} is damaged: its arrays are inconsistent")
        return store

    def _is_consistent(self, files: NDArray[np.int64]) -> bool:
        arrays = (self.counts, self.tokens, self.starts)
        if any(a.ndim != 1 or a.dtype.kind not in "iu" or not a.size for a in arrays):
            return False
        starts, ends = self.starts, np.concatenate(([0], files.ravel(), [len(self.starts) - 1]))
        return bool(
            len(self.counts) == len(self.vocabulary)
            and self.counts.min() >= 0
            and self.tokens.min() >= 0
            and self.tokens.max() < len(self.vocabulary)
            and starts[0] == 0
            and starts[-1] == len(self.tokens)
            and (np.diff(starts) > 0).all()
            and (np.diff(ends) >= 0).all()
        )

    def sentence(self, number: int) -> NDArray[np.unsignedinteger[Any]]:
        """The rows of a sentence."""
        return self.tokens[self.starts[number] : self.starts[number + 1]]

    def sentences(self, numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The rows of several sentences."""
        return [self.sentence(int(number)).astype(np.int64) for number in numbers]

    def sample_held_out(self, most: int) -> list[NDArray[np.int64]]:
        """At most `most` held-out sentences, spread evenly."""
        numbers = [n for first, end in self.held_out.tolist() for n in range(first, end)]
        step = max(1, -(-len(numbers) // most))
        return [self.sentence(n).astype(np.int64) for n in numbers[::step]]


CHUNK = 1 << 22
"""Tokens converted at a time."""


def build_store(
    files: Iterable[Path],
    target: Path,
    config: StoreConfig,
    *,
    words: Iterable[str] = (),
    vectors: Container[str] | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> dict[str, Any]:
    """Read the files into a new store and return the content of its `text.json`.

    `words` have a row whatever their count. If `vectors` are given, words without a vector need
    the higher count of the settings. `progress` is called with the number of words read since the
    last call.
    """
    with new_folder(target, overwrite=True) as folder:
        numbers: dict[str, int] = {}  # the provisional number of each word
        lengths, left_out, held_out = array("i"), 0, 0
        bounds: list[tuple[int, int, int]] = []
        staged = folder / "staged.bin"
        with staged.open("wb") as handle:
            for path in files:
                first = len(lengths)
                for words_read in read_sentences(path, config.documents, progress):
                    if len(words_read) > config.longest:
                        left_out += 1
                        continue
                    lengths.append(len(words_read))
                    if config.lower:
                        words_read = [straightened(word.lower()) for word in words_read]  # noqa: PLW2901
                    found = [numbers.setdefault(word, len(numbers)) for word in words_read]
                    handle.write(array("i", found).tobytes())
                # Of all files so far, this share is held out at their ends.
                end = len(lengths)
                more = min(int(end * config.held_out) - held_out, end - first)
                held_out += more
                bounds.append((first, end - more, end))
        if not lengths:
            raise ValueError(f"the text has no sentence of at most {config.longest} words")
        seen = _counts(np.memmap(staged, dtype=np.int32, mode="r"), len(numbers))
        by_word = Counter(dict(zip(numbers, seen.tolist(), strict=True)))
        vocabulary = _vocabulary(by_word, frozenset(words), config, vectors)
        rows = np.array([vocabulary.row(word) for word in numbers])
        counts = np.zeros(len(vocabulary), dtype=np.int64)
        np.add.at(counts, rows, seen)
        kind = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
        _write_rows(staged, rows.astype(kind), folder / "tokens.npy")
        staged.unlink()
        np.save(folder / "counts.npy", counts)
        np.save(folder / "starts.npy", np.cumsum([0, *lengths], dtype=np.int64))
        vocabulary.save(folder)
        information = {
            "format_version": FORMAT_VERSION,
            "settings": asdict(config),
            "sentences": len(lengths),
            "left_out": left_out,
            "tokens": int(counts.sum()),
            "unknown_tokens": int(counts[UNK]),
            "rows": len(vocabulary),
            "files": bounds,
        }
        write_text(folder / "text.json", json.dumps(information, indent=2) + "\n")
    return information


def _counts(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """How often each number below `size` occurs, chunk by chunk."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(numbers), CHUNK):
        counts += np.bincount(numbers[start : start + CHUNK], minlength=size)
    return counts


def read_sentences(
    path: Path, documents: Documents, progress: Callable[[int], object] = lambda _: None
) -> Iterator[list[str]]:
    """The sentences of a file; blocks without a word are skipped."""
    for document in documents_in(path, documents):
        yield from map(list, document.sentences)
        progress(sum(map(len, document.sentences)))


def _vocabulary(
    counts: Counter[str],
    given: Collection[str],
    config: StoreConfig,
    vectors: Container[str] | None,
) -> Vocabulary:
    """The given words and the most frequent ones, in order of decreasing frequency."""
    rare = max(config.min_count, config.without_vector)

    def is_frequent(word: str) -> bool:
        has_vector = vectors is None or word in vectors
        return counts[word] >= (config.min_count if has_vector else rare)

    def rank(word: str) -> tuple[int, str]:
        return -counts[word], word

    room = max(0, config.vocabulary_size - len(SPECIALS) - len(given))
    frequent = sorted((w for w in counts if w not in given and is_frequent(w)), key=rank)
    known = sorted([*frequent[:room], *given], key=rank)
    if not known:
        raise ValueError(f"no word of the text occurs {config.min_count} times: lower --min-count")
    settings = TextSettings(lower_case=True) if config.lower else None
    return Vocabulary(tuple(known), entities=0, settings=settings)


def _write_rows(staged: Path, rows: NDArray[Any], target: Path) -> None:
    """Convert provisional numbers to rows, chunk by chunk."""
    source = np.memmap(staged, dtype=np.int32, mode="r")
    # Written, not memory-mapped: on a full disk a write is an error, a map kills the process
    with target.open("wb") as handle:
        descr = np.lib.format.dtype_to_descr(rows.dtype)
        header = {"descr": descr, "fortran_order": False, "shape": source.shape}
        np.lib.format.write_array_header_1_0(handle, header)
        for start in range(0, len(source), CHUNK):
            handle.write(rows[source[start : start + CHUNK]].data)
