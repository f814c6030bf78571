"""TokenStore: the sentences of a large text as rows of a vocabulary, in memory-mapped arrays.

    text.json     format version, settings, counts
    vocab.txt     the vocabulary's rows, one a line
    counts.npy    how often each row occurs
    tokens.npy    the rows of all sentences, one after the other, <bos> and <eos> not among them
    starts.npy    where each sentence begins, and where the last one ends

`corpus.build_store` makes such a folder from text files.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.text import Documents
from dntm.corpus.vocabulary import SPECIALS, Vocabulary

FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """Which sentences are kept, and which words have a row."""

    documents: Documents = "blank-line"
    """Lines of the text: each one a paragraph (blank-line), or wrapped, with empty lines between
    paragraphs (file)."""
    longest: int = 32
    """Leave out sentences of more words than this."""
    min_count: int = 500
    """Words that occur less often are unknown."""
    vocabulary_size: int = 100_000
    """Rows of the vocabulary at most; words of --dataset all have one."""
    held_out: float = 0.005
    """Share of the sentences, at the end of each file, that training never sees; files too short to
    hold one out do so together."""

    def __post_init__(self) -> None:
        for name in ("longest", "min_count"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        if self.vocabulary_size <= len(SPECIALS):
            raise ValueError(
                f"vocabulary_size is {self.vocabulary_size}, expected more than {len(SPECIALS)}"
            )
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out is {self.held_out}, expected at least 0 and below 1")


@dataclass(frozen=True)
class TokenStore:
    """An opened store."""

    vocabulary: Vocabulary
    counts: NDArray[np.int64]
    tokens: NDArray[np.unsignedinteger[Any]]
    starts: NDArray[np.int64]
    train: NDArray[np.int64]
    """Stretches of sentences to train on, in rows of two: the first sentence and the end."""
    held_out: NDArray[np.int64]
    """The same for those that training never sees."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a store; ValueError where the folder is none."""
        path = folder / "text.json"
        try:
            information = json.loads(path.read_text(encoding="utf-8"))
            if information["format_version"] != FORMAT_VERSION:
                raise ValueError(f"version {information['format_version']}")
            arrays = {
                name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                for name in ("counts", "tokens", "starts")
            }
            files = np.array(information["files"], dtype=np.int64).reshape(-1, 3)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder} holds no text ready for pretraining: {error}") from None
        vocabulary = Vocabulary.load(folder / "vocab.txt", entities=0)
        return cls(vocabulary, **arrays, train=files[:, :2], held_out=files[:, 1:])

    def sentence(self, number: int) -> NDArray[np.unsignedinteger[Any]]:
        """The rows of a sentence."""
        return self.tokens[self.starts[number] : self.starts[number + 1]]

    def sample_held_out(self, most: int) -> list[NDArray[np.int64]]:
        """At most so many of the sentences held out, spread evenly over them."""
        numbers = [n for first, end in self.held_out.tolist() for n in range(first, end)]
        step = max(1, -(-len(numbers) // most))
        return [self.sentence(n).astype(np.int64) for n in numbers[::step]]
