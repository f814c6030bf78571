"""Batches: what each update reads, determined by the seed.

For training, documents are shuffled and each batch is read to the end of its documents; `Hiding`
may read some of their words as entities.

For pretraining, a batch has sentences of similar length, which need no padding. The text is cut
into blocks of neighboring sentences. An epoch reads the blocks in random order, 64 at a time as a
pool; a pool is sorted by length, cut into batches and read in random order. Only the order of the
blocks grows with the text, and a batch follows from the seed and its number, so that a run can
resume at any batch.

Departure: the paper says neither how sentences are batched nor how negatives are drawn. Here,
negatives are drawn in proportion to counts to the power of .75, as in the cited word2vec.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.entity_slots import DocumentRows, encode
from dntm.corpus.token_store import TokenStore
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary, entity_rows
from dntm.model.extensions.naming import FREQUENT, held_out_types, nameable
from dntm.training.config import PretrainRecipe, Recipe

POOL = 64
"""Blocks per pool, and about as many batches."""
OCCURRENCES = range(2, 13)
"""Occurrences in the document of a word that may be hidden."""

Rows = NDArray[np.int64]


class SentenceBatch(NamedTuple):
    """The arguments of `SentenceCompletion`: sentences as rows, with negative samples."""

    sentences: list[Rows]
    negatives: NDArray[np.int64]
    """One row per word, in reading order."""

    @property
    def words(self) -> int:
        """Hidden words of the batch."""
        return len(self.negatives)

    def share(self, rank: int, of: int) -> "SentenceBatch":
        """The share of one of several processes."""
        negatives = _share(self.sentences, self.negatives, rank, of)
        return SentenceBatch(self.sentences[rank::of], negatives)


class NamingBatch(NamedTuple):
    """The arguments of `GapNaming`: sentences as rows, the words to name, and the candidates."""

    sentences: list[Rows]
    named: NDArray[np.bool_]
    """For each word, in reading order through the sentences."""
    candidates: Rows
    """Sorted; they include every named word."""
    log_included: NDArray[np.float32]
    """Log-probability of each candidate to be drawn; 0 for named words."""
    hidden: NDArray[np.bool_]
    """For each word, whether it is read as an unseen entity."""

    @property
    def words(self) -> int:
        """Named words of the batch."""
        return int(self.named.sum())

    def share(self, rank: int, of: int) -> "NamingBatch":
        """The share of one of several processes."""
        named, hidden = (
            _share(self.sentences, words, rank, of) for words in (self.named, self.hidden)
        )
        return self._replace(sentences=self.sentences[rank::of], named=named, hidden=hidden)


def _share(sentences: list[Rows], words: NDArray[Any], rank: int, of: int) -> NDArray[Any]:
    """Of values for each word, those of the sentences of one process."""
    ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
    return np.concatenate([words[:0], *np.split(words, ends)[rank::of]])


class SentenceBatches:
    """The batches of a run, starting at any of them."""

    def __init__(self, store: TokenStore, batch: int, *, seed: int) -> None:
        self.store, self.batch, self.seed = store, batch, seed
        blocks = [
            (start, min(start + batch, end))
            for first, end in store.train.tolist()
            for start in range(first, end, batch)
        ]
        self.blocks: NDArray[np.int64] = np.array(blocks, dtype=np.int64).reshape(-1, 2)
        if not len(self.blocks):
            raise ValueError("the text has no sentence to train on")

    def numbers(self, start: int = 0) -> Iterator[NDArray[np.int64]]:
        """Yield the sentence numbers of batch `start` and all later ones, without end."""
        epoch = 0
        while True:
            order = np.random.default_rng([self.seed, epoch]).permutation(len(self.blocks))
            for pool in range(0, len(order), POOL):
                blocks = self.blocks[order[pool : pool + POOL]]
                batches = -(-int((blocks[:, 1] - blocks[:, 0]).sum()) // self.batch)
                if start >= batches:
                    start -= batches
                    continue
                random = np.random.default_rng([self.seed, epoch, pool])
                yield from self._pool(blocks, random)[start:]
                start = 0
            epoch += 1

    def _pool(
        self, blocks: NDArray[np.int64], random: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        numbers = random.permutation(
            np.fromiter(chain.from_iterable(range(a, b) for a, b in blocks.tolist()), np.int64)
        )
        lengths = self.store.starts[numbers + 1] - self.store.starts[numbers]
        numbers = numbers[np.argsort(-lengths, kind="stable")]
        batches = [numbers[i : i + self.batch] for i in range(0, len(numbers), self.batch)]
        return [batches[i] for i in random.permutation(len(batches))]


class Negatives:
    """Draws words at random, with the probabilities in `share`."""

    def __init__(self, share: NDArray[np.float64]) -> None:
        self.share = share
        self._until = np.cumsum(share)

    @classmethod
    def smoothed(cls, counts: NDArray[np.int64], smoothing: float) -> "Negatives":
        """With probabilities proportional to counts raised to a power; never <bos> or <eos>."""
        weights = counts.astype(np.float64) ** smoothing
        weights[[BOS, EOS]] = 0
        weights[counts == 0] = 0
        return cls(weights / weights.sum())

    def draw(self, words: int, negatives: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Draw negatives for each of a number of words."""
        found = np.searchsorted(self._until, random.random((words, negatives)) * self._until[-1])
        rows: NDArray[np.int64] = np.minimum(found, len(self.share) - 1)
        return rows

    def with_words(
        self, words: Rows, count: int, random: np.random.Generator
    ) -> tuple[Rows, NDArray[np.float32]]:
        """Draw words in addition to these; the log-probability of each to be included."""
        answers = np.unique(words)
        rows = np.union1d(answers, self.draw(1, count, random))
        share = np.minimum(self.share[rows], 1 - 1e-9)
        included = -np.expm1(count * np.log1p(-share))
        included[np.searchsorted(rows, answers)] = 1.0
        return rows, np.log(included).astype(np.float32)


class WordsToName:
    """Chooses the words to name and the candidates.

    Frequent words are subsampled: an occurrence of a word with frequency f is named with
    probability min(1, sqrt(subsample / f)). Candidates are drawn in proportion to the square root
    of how often they are named.
    """

    def __init__(
        self, counts: NDArray[np.int64], answers: NDArray[np.bool_], subsample: float
    ) -> None:
        share = counts / max(counts.sum(), 1)
        often = np.sqrt(subsample / np.maximum(share, 1e-12))
        self.named = np.where(answers & (counts > 0), np.minimum(1.0, often), 0.0)
        """The probability that an occurrence of each row is named."""
        drawn = np.sqrt(counts * self.named)
        if not drawn.any():
            raise ValueError("the text has no word that could be named")
        self._candidates = Negatives(drawn / drawn.sum())

    def batch(
        self,
        sentences: list[Rows],
        candidates: int,
        random: np.random.Generator,
        *,
        hide: float = 0.0,
    ) -> NamingBatch:
        """Choose the words to name and to hide, and draw candidates in addition to them."""
        words = np.concatenate(sentences)
        named = random.random(len(words)) < self.named[words]
        hidden = random.random(len(words)) < hide if hide else np.zeros(len(words), dtype=np.bool_)
        drawn = self._candidates.with_words(words[named], candidates, random)
        return NamingBatch(sentences, named, *drawn, hidden)


class WordsByType:
    """Draws words by type, with some of their sentences: an unknown word is a rare word.

    A type is drawn with a probability proportional to its count to the power of .25. Of its
    occurrences in the training sentences one to `mentions` are named, in random order. Sentences
    are cut 20 words before and after the gap; other occurrences of the word are hidden too.
    """

    LEAST, POWER, RADIUS = 8, 0.25, 20

    def __init__(
        self, store: TokenStore, answers: NDArray[np.bool_], recipe: PretrainRecipe
    ) -> None:
        self.store, self.recipe = store, recipe
        counts = np.where(answers, store.counts, 0)
        train = np.zeros(len(store.tokens), dtype=np.bool_)
        for first, end in store.train.tolist():
            train[store.starts[first] : store.starts[end]] = True
        places = np.nonzero(train & (counts >= self.LEAST)[store.tokens])[0]
        self._places = places[np.argsort(store.tokens[places], kind="stable")]
        """The places of all words that can be drawn, word by word."""
        own = self._count = np.bincount(store.tokens[places], minlength=len(counts))
        self._ends = np.cumsum(own)
        weights = np.where(own >= self.LEAST, own**self.POWER, 0.0)
        if not weights.any():
            raise ValueError(f"no word of the text occurs {self.LEAST} times")
        self._types = Negatives(weights / weights.sum())

    def batch(self, random: np.random.Generator) -> NamingBatch:
        """Words with about as many sentences as the recipe's batch has."""
        most, store = self.recipe.mentions, self.store
        drawn = self._types.draw(1, max(1, 2 * self.recipe.batch // (most + 1)), random)[0]
        sentences, named = [], []
        for word in np.unique(drawn).tolist():
            size = min(int(random.integers(1, most + 1)), int(self._count[word]))
            chosen = random.choice(int(self._count[word]), size, replace=False)
            for place in self._places[self._ends[word] - 1 - chosen].tolist():
                sentence = int(np.searchsorted(store.starts, place, side="right")) - 1
                start = max(int(store.starts[sentence]), place - self.RADIUS)
                end = min(int(store.starts[sentence + 1]), place + self.RADIUS + 1)
                sentences.append(store.tokens[start:end].astype(np.int64))
                gap = np.zeros(end - start, dtype=np.bool_)
                gap[place - start] = True
                named.append((gap, sentences[-1] == word))
        gaps, same = (np.concatenate(masks) for masks in zip(*named, strict=True))
        hidden = same | (random.random(len(gaps)) < self.recipe.hide)
        words = np.concatenate(sentences)[gaps]
        candidates = self._types.with_words(words, self.recipe.candidates, random)
        return NamingBatch(sentences, gaps, *candidates, hidden)


def epoch_batches(documents: int, batch: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Shuffle the documents with the seed and the epoch's number and cut them into batches."""
    order = np.random.default_rng([seed, epoch]).permutation(documents)
    return [order[start : start + batch].tolist() for start in range(0, documents, batch)]


class Hiding:
    """Reads known words of a document as entities, at random (beyond the paper).

    In every epoch some known words are hidden: all occurrences of such a word become one entity, so
    that language modeling sees many more entities. Some of the entities whose mentions are all the
    same known word, such as a name, are revealed, so that their words are learned.

    These are never hidden: the most frequent words, words that occur once (nothing later depends on
    them) or more than twelve times in the document, and more words than there are free slots.
    """

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary) -> None:
        self.hide, self.reveal = recipe.hide, recipe.reveal
        if (self.hide or self.reveal) and not vocabulary.ends:
            raise ValueError("hide and reveal need one row per word, not pieces of words")
        self.vocabulary, self.lexicon = vocabulary, Lexicon(vocabulary)
        self.nameable = nameable(vocabulary)
        self.words = self.nameable & ~held_out_types(vocabulary)
        """Rows of the words that may be hidden."""
        self.words[: entity_rows(vocabulary.entities).stop + FREQUENT] = False

    def __call__(self, document: AnonymizedDocument, random: np.random.Generator) -> DocumentRows:
        """Encode the document with some of its words hidden and some of its entities revealed."""
        names = self._names(document) if self.reveal else {}
        revealed: dict[Token, Token] = {
            entity: self.vocabulary.label(row)
            for entity, row in names.items()
            if random.random() < self.reveal
        }
        tokens = [[revealed.get(t, t) for t in sentence] for sentence in document.sentences]
        hidden = self._choose(tokens, random)
        numbers: dict[Token, int] = {}
        """New entity numbers by first appearance, of entities and of hidden words."""
        sentences: list[list[Token]] = [
            [
                numbers.setdefault(t, len(numbers) + 1) if isinstance(t, int) or t in hidden else t
                for t in sentence
            ]
            for sentence in tokens
        ]
        return encode(AnonymizedDocument(name=document.name, sentences=sentences), self.vocabulary)

    def _names(self, document: AnonymizedDocument) -> dict[int, int]:
        """The row of the known word that all mentions of an entity consist of."""
        found: dict[int, set[int]] = {}
        mentions = (t for sentence in document.sentences for t in sentence if isinstance(t, int))
        for entity, words in zip(mentions, document.surfaces, strict=False):
            row = self.lexicon.row(words[0]) if len(words) == 1 else UNK
            found.setdefault(entity, set()).add(row)
        single = {entity: next(iter(rows)) for entity, rows in found.items() if len(rows) == 1}
        return {entity: row for entity, row in single.items() if self.nameable[row]}

    def _choose(self, tokens: Sequence[Sequence[Token]], random: np.random.Generator) -> set[str]:
        if not self.hide:
            return set()
        counts = Counter(token for sentence in tokens for token in sentence)
        free = self.vocabulary.entities - sum(isinstance(token, int) for token in counts)
        often = [t for t, n in counts.items() if isinstance(t, str) and n in OCCURRENCES]
        able = [token for token in often if self.words[self.vocabulary.row(token)]]
        chosen = [token for token in able if random.random() < self.hide]
        random.shuffle(chosen)
        return set(chosen[: max(free, 0)])
