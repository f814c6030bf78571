"""A small model with random weights, as a checkpoint on disk, and texts for it."""

from pathlib import Path

import torch

from dntm.corpus.document import AnonymizedDocument, Token
from dntm.corpus.entities import Lexicon
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import save_pretrained
from dntm.model.config import Extension, ModelConfig, Variant
from dntm.model.language_model import DynamicTextModel
from dntm.reader.reading import Reading, SentenceReading
from dntm.reader.text import as_text

WORDS = "the . a , sat down at table river met left old man She kept rowed home He Old".split()
VOCABULARY = Vocabulary(tuple(WORDS), entities=4)
LEXICON = Lexicon(VOCABULARY)
LOWER = Vocabulary(tuple(dict.fromkeys(word.lower() for word in WORDS)), entities=4)
"""The same words in lower case."""
STORY = "The old man met Ann. Ann kept a zork. He left the zork at home. Ann sat down."
"""One name, Ann, and one repeated unknown word, zork."""
TALES = [
    STORY,
    "Bo left.",
    "The zork sat down at the zork. A man met Ann, and Bo met Ann. Bo kept Ann. Ann left Bo.",
    "She rowed home.",
]


def checkpoint(
    folder: Path,
    variant: Variant = "both",
    seed: int = 7,
    vocabulary: Vocabulary = VOCABULARY,
    *,
    extensions: tuple[Extension, ...] = (),
    core: str = "lstm",
) -> Path:
    """Write a checkpoint with random weights."""
    config = ModelConfig(
        vocabulary=len(vocabulary),
        entities=vocabulary.entities,
        variant=variant,
        extensions=extensions,
        core=core,
        embedding_dim=6 if core == "lstm" else 8,
        hidden_dim=5 if core == "lstm" else 8,
        heads=2,
        encoder_dim=4,
        context_dim=7,
    )
    save_pretrained(random_model(config, seed, 0.6), vocabulary, folder)
    return folder


def random_model(config: ModelConfig, seed: int, scale: float) -> DynamicTextModel:
    """A model whose parameters, biases too, are all large enough to matter."""
    generator = torch.Generator().manual_seed(seed)
    model = DynamicTextModel(config, generator)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
    return model.eval()


def anonymized(*sentences: str) -> AnonymizedDocument:
    """A document in which numbers are entities."""
    tokens = [[int(w) if w.isdecimal() else w for w in s.split()] for s in sentences]
    return AnonymizedDocument(name="d", sentences=tokens)


def crowd(*last: str) -> str:
    """A text with more entities than slots."""
    return " ".join(["Zap met ox.", "Ix met Bo.", "Ann left.", "Zap met Kim.", *last])


def surprisals(reading: Reading, *, static: bool = False) -> list[float]:
    return [t.static_surprisal if static else t.surprisal for t in reading.tokens]


def said(sentence: SentenceReading) -> list[Token]:
    """A sentence's words and entity numbers."""
    return [token.entity or token.word for token in sentence.tokens if not token.end]


DOCUMENT = anonymized("the 1 met 2 .", "1 left", "the old 2 met 1 , 3 .", "2 sat down")
"""Three entities; two of them reappear."""
PREPARED = as_text(DOCUMENT)
