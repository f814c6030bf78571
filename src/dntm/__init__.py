"""Dynamic Neural Text Model: builds embeddings of unknown words and entities while it reads.

    reader = dntm.Reader.from_pretrained()    the bundled model, or that of a run folder
    reading = reader.read(text)               surprisals, and predicted words of its entities
    reading.to_frame()                        one row per token, as a pandas data frame
    reading.plot()                            surprisals, or the trail of a meaning, as a figure
    reader.fill("She sat on the [] .")        ranks words for a gap
    reader.token_score(texts)                 log-probabilities, with the arguments of minicons

    dntm.Dataset.open(folder)                 a dataset built by `dntm data build`
    dntm.train(dataset=folder)                trains a model and returns its results
    dntm.load(folder).score(documents)        log-probabilities of anonymized documents

`help(dntm.Reader)` describes the methods of a reader. Names are imported on first use.
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
__all__ = [  # noqa: RUF022 (in the order of the API reference)
    "Reader",
    "Reading",
    "SentenceReading",
    "TokenReading",
    "EntityReading",
    "Predictions",
    "Filling",
    "Continuation",
    "PreparedText",
    "ReadingPosition",
    "Document",
    "Mention",
    "AnonymizedDocument",
    "Vocabulary",
    "Dataset",
    "load",
    "train",
    "TrainConfig",
    "Recipe",
    "ModelConfig",
    "__version__",
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
