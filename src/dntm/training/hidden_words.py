"""Hidden words: known words read as if they were unknown, with an answer key (beyond the paper).

Every epoch some known words of each document are hidden: all their occurrences become an entity, as
an unknown word's would. So language modelling meets many more entities, and after each mention the
model can be asked which word it was (`dntm.model.naming`). Entities of the dataset that go by one
known word, such as names, have an answer too; some of them are revealed, so that their words are
learned. Entities are then numbered anew by first appearance.

The most frequent words are never hidden, nor are words that occur once (nothing is learned from
them later) or in every other sentence, nor more of them than the model has rows for. A document
with more entities than rows is read as ever: rows are lent (`dntm.corpus.rows`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.rows import Lender, Loan
from dntm.corpus.vocabulary import BOS, EOS, UNK, Vocabulary, entity_rows, row_of_entity
from dntm.model.fast.window import EncodedDocument, Merges
from dntm.model.naming import nameable
from dntm.training.config import Recipe

FREQUENT = 100
"""So many of the most frequent words are never hidden."""
OCCURRENCES = range(2, 13)
"""How often a word occurs in a document whose occurrences are hidden."""


@dataclass(frozen=True, slots=True)
class TrainingDocument:
    """A document with what its entities are called."""

    sentences: Sequence[Sequence[int]]
    """Rows of words; an entity k is -k."""
    answers: dict[int, int]
    """Row of the one known word that an entity goes by, for entities that go by one."""

    @classmethod
    def of(
        cls,
        document: AnonymizedDocument,
        vocabulary: Vocabulary,
        answers: Bool[np.ndarray, " vocabulary"],
    ) -> "TrainingDocument":
        """Of a document of the dataset; `answers` are the rows that can be one."""
        sentences = [
            [-t if isinstance(t, int) else vocabulary.row(t) for t in sentence]
            for sentence in document.sentences
        ]
        lexicon = Lexicon(vocabulary)
        called: dict[int, set[int]] = {}
        mentions = (t for sentence in document.sentences for t in sentence if isinstance(t, int))
        for entity, words in zip(mentions, document.surfaces, strict=False):
            row = lexicon.row(words[0]) if len(words) == 1 else UNK
            called.setdefault(entity, set()).add(row)
        found = {entity: next(iter(rows)) for entity, rows in called.items() if len(rows) == 1}
        return cls(sentences, {entity: row for entity, row in found.items() if answers[row]})


@dataclass(frozen=True, slots=True)
class HiddenDocument:
    """A document as an epoch reads it."""

    sentences: EncodedDocument
    answers: EncodedDocument
    """For each token that is an entity with an answer the row of that word, else 0."""
    loans: Sequence[Sequence[Loan]]
    """Of each sentence."""

    @classmethod
    def of(
        cls, sentences: EncodedDocument, loans: Sequence[Sequence[Loan]] = ()
    ) -> "HiddenDocument":
        """A document in which nothing is hidden; without `loans` no row is lent."""
        none = [[0] * len(sentence) for sentence in sentences]
        return cls(sentences, none, loans or [()] * len(sentences))


@dataclass(frozen=True)
class Hiding:
    """Which words are hidden."""

    hide: float
    reveal: float
    words: Bool[np.ndarray, " vocabulary"]
    """Rows of words that may be hidden."""
    entities: int

    @classmethod
    def of(cls, recipe: Recipe, vocabulary: Vocabulary) -> "Hiding":
        """As the recipe says."""
        words = nameable(vocabulary)
        words[: entity_rows(vocabulary.entities).stop + FREQUENT] = False
        return cls(recipe.hide, recipe.reveal, words, vocabulary.entities)

    def __call__(self, document: TrainingDocument, random: np.random.Generator) -> HiddenDocument:
        """Read a document with some of its words hidden, and some of its entities revealed."""
        revealed = {
            -entity: row
            for entity, row in document.answers.items()
            if self.reveal and random.random() < self.reveal
        }
        answers = {-entity: row for entity, row in document.answers.items()}
        tokens = [[revealed.get(t, t) for t in sentence] for sentence in document.sentences]
        hidden = self._chosen(tokens, random)
        numbers: dict[int, int] = {}
        lender = Lender(self.entities)
        sentences, keys, loans = [], [], []
        for sentence in tokens:
            mentioned = [token < 0 or token in hidden for token in sentence]
            entities: list[Token] = [
                numbers.setdefault(token, len(numbers) + 1) if is_entity else ""
                for token, is_entity in zip(sentence, mentioned, strict=True)
            ]
            rows, lent = lender.read(entities)
            read, key = [BOS], [0]
            for token, is_entity, row in zip(sentence, mentioned, rows, strict=True):
                if not is_entity:
                    read.append(token)
                else:
                    read.append(UNK if row is None else row_of_entity(row))
                answer = answers.get(token, max(token, 0))
                key.append(answer if is_entity and row is not None else 0)
            sentences.append([*read, EOS])
            keys.append([*key, 0])
            loans.append(lent)
        return HiddenDocument(sentences, keys, loans)

    def _chosen(self, tokens: Sequence[Sequence[int]], random: np.random.Generator) -> set[int]:
        """The rows of the words to hide."""
        if not self.hide:
            return set()
        counts = Counter(token for sentence in tokens for token in sentence)
        room = self.entities - sum(token < 0 for token in counts)
        able = [t for t, n in counts.items() if t >= 0 and self.words[t] and n in OCCURRENCES]
        chosen = [token for token in able if random.random() < self.hide]
        random.shuffle(chosen)
        return set(chosen[: max(room, 0)])


def answers_of(
    merges: Merges, beside: Sequence[Sequence[Sequence[int]]]
) -> Int[np.ndarray, " merges"]:
    """The answer to each merge of a window, from those beside the tokens of its documents."""
    sentences = [answers for document in beside for answers in document]
    places = zip(merges.sentence.tolist(), merges.position.tolist(), strict=True)
    return np.array([sentences[s][t] for s, t in places], dtype=np.int64)
