"""Dynamic Neural Text Model: builds embeddings of unknown words and entities while it reads.

    dntm.train(dataset=path)            trains a model and returns its results
    dntm.load(path)                     loads a run or a checkpoint to score documents
    dntm.Reader.from_pretrained(path)   reads texts: predicted words, surprisal, continuation
    dntm.Dataset.open(path)             opens a dataset folder

Modules that need torch are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dntm.api import load, train
    from dntm.corpus.dataset import Dataset
    from dntm.corpus.document import AnonymizedDocument, Document, Mention
    from dntm.corpus.vocabulary import Vocabulary
    from dntm.model.config import ModelConfig
    from dntm.reader.questions import Continuation, Filling, Predictions
    from dntm.reader.reader import Reader
    from dntm.reader.reading import EntityReading, Reading, SentenceReading, TokenReading
    from dntm.reader.streaming import ReadingPosition
    from dntm.reader.text import PreparedText
    from dntm.training.config import Recipe, TrainConfig

__version__ = "0.1.0"
__all__ = [
    "AnonymizedDocument",
    "Continuation",
    "Dataset",
    "Document",
    "EntityReading",
    "Filling",
    "Mention",
    "ModelConfig",
    "Predictions",
    "PreparedText",
    "Reader",
    "Reading",
    "ReadingPosition",
    "Recipe",
    "SentenceReading",
    "TokenReading",
    "TrainConfig",
    "Vocabulary",
    "__version__",
    "load",
    "train",
]

_MODULES = {
    "AnonymizedDocument": "dntm.corpus.document",
    "Continuation": "dntm.reader.questions",
    "Dataset": "dntm.corpus.dataset",
    "Document": "dntm.corpus.document",
    "EntityReading": "dntm.reader.reading",
    "Filling": "dntm.reader.questions",
    "Mention": "dntm.corpus.document",
    "ModelConfig": "dntm.model.config",
    "Predictions": "dntm.reader.questions",
    "PreparedText": "dntm.reader.text",
    "Reader": "dntm.reader.reader",
    "Reading": "dntm.reader.reading",
    "ReadingPosition": "dntm.reader.streaming",
    "Recipe": "dntm.training.config",
    "SentenceReading": "dntm.reader.reading",
    "TokenReading": "dntm.reader.reading",
    "TrainConfig": "dntm.training.config",
    "Vocabulary": "dntm.corpus.vocabulary",
    "load": "dntm.api",
    "train": "dntm.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'dntm' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
