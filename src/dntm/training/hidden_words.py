"""Hidden words: known words read as entities (beyond the paper).

In every epoch some known words of each document are hidden: all occurrences of such a word become
one entity, so that language modeling sees many more entities. Some of the entities whose mentions
are all the same known word, such as a name, are revealed, so that their words are learned.

These are never hidden: the most frequent words, words that occur once (nothing later depends on
them) or more than twelve times in the document, and more words than the model has free slots for.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.entity_slots import DocumentRows, encode
from dntm.corpus.vocabulary import UNK, Vocabulary
from dntm.model.extensions.naming import infrequent, nameable
from dntm.training.config import Recipe

OCCURRENCES = range(2, 13)
"""Occurrences in the document of a word that may be hidden."""


class Hiding:
    """Hides words of a document, and reveals entities, at random."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary) -> None:
        self.hide, self.reveal = recipe.hide, recipe.reveal
        if self.is_random and not vocabulary.ends:
            raise ValueError("hide and reveal need one row per word, not pieces of words")
        self.vocabulary, self.lexicon = vocabulary, Lexicon(vocabulary)
        self.nameable = nameable(vocabulary)
        self.words = infrequent(vocabulary)
        """Rows of the words that may be hidden."""

    @property
    def is_random(self) -> bool:
        """Whether a document reads differently in each epoch."""
        return self.hide > 0 or self.reveal > 0

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
        """Choose the words to hide."""
        if not self.hide:
            return set()
        counts = Counter(token for sentence in tokens for token in sentence)
        free = self.vocabulary.entities - sum(isinstance(token, int) for token in counts)
        able = [
            token
            for token, count in counts.items()
            if isinstance(token, str)
            and count in OCCURRENCES
            and self.words[self.vocabulary.row(token)]
        ]
        chosen = [token for token in able if random.random() < self.hide]
        random.shuffle(chosen)
        return set(chosen[: max(free, 0)])
