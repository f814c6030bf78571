"""Building a TokenStore: a large text, read once, as rows of a vocabulary.

Every word gets a provisional number when it is first seen; once all counts are known the numbers
on disk are turned into rows, a piece at a time. Held in memory are the table of words, the length
of every sentence (4 bytes) and the count of every number ever given (8 bytes). Where the table
grows too large its rarest words are dropped, those of the dataset never: what was read of them
becomes unknown, and they count from zero if they come back.

Departure: the words of a dataset have a row however rare they are in the text; the paper does not
say what its words begin with that pretraining did not know.
"""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dntm.corpus import text
from dntm.corpus.source import InputError
from dntm.corpus.token_store import FORMAT_VERSION, StoreConfig
from dntm.corpus.vocabulary import SPECIALS, UNK, Vocabulary
from dntm.files import new_folder, write_text

LARGEST_TABLE = 5_000_000
"""Different words in memory, some 600 MB, above which the rarest are dropped."""
_PIECE = 1 << 22


def build_store(
    files: Iterable[Path],
    target: Path,
    config: StoreConfig,
    *,
    words: Iterable[str] = (),
    progress: Callable[[int], object] = lambda _: None,
) -> dict[str, Any]:
    """Read the files into a new store and return the content of its `text.json`.

    `words` have a row whatever their count. `progress` is told how many words were read
    since it was last told.
    """
    with new_folder(target, overwrite=True) as folder:
        given = frozenset(words)
        table = _Table(given)
        read = _Read()
        staged = folder / "staged.bin"
        with staged.open("wb") as handle:
            for path in files:
                for sentence in read_sentences(path, config.documents, progress):
                    if len(sentence) > config.longest:
                        read.left_out += 1
                    else:
                        read.lengths.append(len(sentence))
                        handle.write(table.encode(sentence).tobytes())
                read.end_file(config.held_out)
        if len(read.lengths) == 0:
            raise ValueError(f"the text has no sentence of at most {config.longest} words")
        vocabulary = _vocabulary(table.counts(), given, config)
        counts = _write_rows(staged, folder, table, vocabulary, sum(read.lengths))
        staged.unlink()
        np.save(folder / "counts.npy", counts)
        np.save(folder / "starts.npy", read.starts())
        (folder / "vocab.txt").write_text(vocabulary.text(), encoding="utf-8", newline="\n")
        information = {
            "format_version": FORMAT_VERSION,
            "settings": asdict(config),
            "sentences": len(read.lengths),
            "left_out": read.left_out,
            "tokens": int(counts.sum()),
            "unknown_tokens": int(counts[UNK]),
            "rows": len(vocabulary),
            "files": read.files,
        }
        write_text(folder / "text.json", json.dumps(information, indent=2) + "\n")
    return information


class _Read:
    """What has been read so far."""

    def __init__(self) -> None:
        self.lengths = array("i")
        self.left_out = 0
        """Sentences that are too long."""
        self.files: list[tuple[int, int, int]] = []
        """Of each file the first sentence, the first one held out, and the end."""
        self.short = 0
        """Sentences of files too short to hold one out, since they last did so together."""

    def end_file(self, held_out: float) -> None:
        """What came since the last file was one file."""
        first, end = self.files[-1][2] if self.files else 0, len(self.lengths)
        kept_back = int((end - first) * held_out)
        if not kept_back:
            self.short += end - first
            kept_back = min(int(self.short * held_out), end - first)
            if kept_back:
                self.short -= min(self.short, round(kept_back / held_out))
        self.files.append((first, end - kept_back, end))

    def starts(self) -> NDArray[np.int64]:
        """Where each sentence begins, and where the last one ends."""
        starts = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        np.cumsum(np.frombuffer(self.lengths, dtype=np.intc), out=starts[1:])
        return starts


class _Table:
    """Provisional numbers of words and how often each has been seen."""

    def __init__(self, kept: Collection[str]) -> None:
        self.kept = kept
        """Words that are never dropped."""
        self.numbers: dict[str, int] = {}
        self.seen = array("q")

    def encode(self, words: list[str]) -> "array[int]":
        """The numbers of a sentence's words."""
        numbers, seen = self.numbers, self.seen
        found = array("i")
        for word in words:
            number = numbers.get(word, -1)
            if number < 0:
                number = numbers[word] = len(seen)
                seen.append(0)
            seen[number] += 1
            found.append(number)
        if len(numbers) > LARGEST_TABLE:
            self._drop()
        return found

    def counts(self) -> Counter[str]:
        """How often each word occurs."""
        return Counter({word: self.seen[number] for word, number in self.numbers.items()})

    def _drop(self) -> None:
        """Forget the rarer half; what is on disk under their numbers becomes unknown."""
        line = sorted(self.seen[n] for n in self.numbers.values())[len(self.numbers) // 2]
        self.numbers = {
            w: n for w, n in self.numbers.items() if self.seen[n] > line or w in self.kept
        }


def read_sentences(
    path: Path, documents: text.Documents, progress: Callable[[int], object] = lambda _: None
) -> Iterator[list[str]]:
    """The sentences of a file; a text may have blocks without a word."""
    for block in text.blocks(path, documents):
        try:
            sentences = text.parse(block, documents).sentences
        except InputError:
            if any(any(c.isalnum() for c in line) for _, line in block.text_lines()):
                raise
            continue
        for sentence in sentences:
            yield list(sentence)
        progress(sum(map(len, sentences)))


def _vocabulary(counts: Counter[str], given: Collection[str], config: StoreConfig) -> Vocabulary:
    """The words given, then the most frequent ones; in order of falling frequency."""
    room = max(0, config.vocabulary_size - len(SPECIALS) - len(given))
    frequent = ((w, c) for w, c in counts.items() if c >= config.min_count and w not in given)
    kept = sorted(frequent, key=lambda item: (-item[1], item[0]))[:room]
    known = [*kept, *((word, counts[word]) for word in given)]
    if not known:
        raise ValueError(f"no word of the text occurs {config.min_count} times: lower --min-count")
    known.sort(key=lambda item: (-item[1], item[0]))
    return Vocabulary(tuple(word for word, _ in known), entities=0)


def _write_rows(
    staged: Path, folder: Path, table: _Table, vocabulary: Vocabulary, tokens: int
) -> NDArray[np.int64]:
    """Turn provisional numbers into rows, a piece at a time; returns how often each row occurs."""
    kind = np.uint16 if len(vocabulary) <= 1 << 16 else np.uint32
    rows = np.full(len(table.seen), UNK, dtype=kind)
    for word, number in table.numbers.items():
        rows[number] = vocabulary.row(word)
    counts = np.zeros(len(vocabulary), dtype=np.int64)
    target = np.lib.format.open_memmap(
        folder / "tokens.npy", mode="w+", dtype=kind, shape=(tokens,)
    )
    source = np.memmap(staged, dtype=np.int32, mode="r")
    for start in range(0, tokens, _PIECE):
        piece = rows[source[start : start + _PIECE]]
        target[start : start + len(piece)] = piece
        counts += np.bincount(piece, minlength=len(counts))
    target.flush()
    return counts
