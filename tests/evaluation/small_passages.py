"""A vocabulary, a model and passages for the evaluation of meaning."""

from collections.abc import Sequence

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.entity_slots import encode
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.passages import Passage
from dntm.model.config import Extension, ModelConfig, Variant
from dntm.model.scorer import Scorer
from tests.reader import small

WORDS = tuple("the . a at and dog cat wolf barked purred howled ran met it , 17 x".split())
VOCABULARY = Vocabulary(WORDS, entities=4)
LEXICON = Lexicon(VOCABULARY)
DIM = 5
FIRST = 3 + 4
"""Row of the first word."""


def row(word: str) -> int:
    return VOCABULARY.row(word)


def encoded(sentences: Sequence[Sequence[Token]]) -> Sequence[Sequence[int]]:
    return encode(AnonymizedDocument(name="", sentences=sentences), VOCABULARY).sentences


def random_model(variant: Variant = "both", extensions: tuple[Extension, ...] = ()) -> Scorer:
    """A model with random weights, x and y of different widths."""
    config = ModelConfig(
        vocabulary=len(VOCABULARY), entities=4, variant=variant, merging="gru",
        embedding_dim=DIM, hidden_dim=6, encoder_dim=3, context_dim=4, extensions=extensions,
    )  # fmt: skip
    return Scorer(small.random_model(config, seed=3, scale=1.0), VOCABULARY)


def passage(*sentences: str) -> Passage:
    """Numbers are entities; entity 1 stands for a dog."""
    return Passage(encoded(small.anonymized(*sentences).sentences), 3, row("dog"))


PASSAGES = [
    passage("the 1 barked at 2 .", "2 met the 1 and the 1 ran .", "it ran .", "the 1 howled"),
    passage("a 1 .", "the cat met 3", "1"),
]


SENTENCES = [
    sentence.split()
    for sentence in (
        "the dog barked at the cat .",
        "the cat purred and the dog ran .",
        "a wolf howled at it , and a dog met the wolf .",
        "the cat met 17 x and it ran at the cat",
        "a dog ran and barked , the cat purred and howled",
    )
]
TEXT = encoded(SENTENCES)
