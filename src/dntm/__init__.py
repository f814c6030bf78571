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
    "api": ("load", "train"),
    "corpus.dataset": ("Dataset",),
    "corpus.document": ("AnonymizedDocument", "Document", "Mention"),
    "corpus.vocabulary": ("Vocabulary",),
    "model.config": ("ModelConfig",),
    "reader.questions": ("Continuation", "Filling", "Predictions"),
    "reader.reader": ("Reader",),
    "reader.reading": ("EntityReading", "Reading", "SentenceReading", "TokenReading"),
    "reader.streaming": ("ReadingPosition",),
    "reader.text": ("PreparedText",),
    "training.config": ("Recipe", "TrainConfig"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"dntm.{module}"), name)
            return value
    raise AttributeError(f"module 'dntm' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, for completion and help()."""
    return __all__
