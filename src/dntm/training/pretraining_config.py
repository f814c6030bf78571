"""PretrainConfig: everything that a pretraining run depends on (Section 5.1). No torch in here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dntm.corpus.token_store import StoreConfig
from dntm.model.config import LARGEST_SIZE
from dntm.settings import settle, to_yaml
from dntm.training.recipe import Optimisation


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The sizes of the word embeddings and the context encoder."""

    embedding_dim: int = 512
    """Size of the word embeddings x, and of the context vectors d' that are compared with them."""
    encoder_dim: int = 512
    """Size of each of the context encoder's two LSTMs."""
    context_dim: int | None = None
    """Size of the context vectors d', where they are named; otherwise that of the embeddings."""

    def __post_init__(self) -> None:
        settle(self)
        for name in ("embedding_dim", "encoder_dim", "context_dim"):
            if (size := getattr(self, name)) is not None and not 1 <= size <= LARGEST_SIZE:
                raise ValueError(f"{name} is {size!r:.40}, expected 1 to {LARGEST_SIZE:,}")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe(Optimisation):
    """The settings of pretraining; the defaults are the paper's."""

    objective: Literal["negatives", "naming"] = "negatives"
    """Tell each hidden word from a few others (the paper), or name it: the cosines of W_dx d' with
    the embeddings of many words, as hidden words are named in training."""
    batch: int = 128
    """Sentences of an update."""
    iterations: int = 50_000
    """Updates in all."""
    negatives: int = 5
    """Words drawn at random to tell each hidden word from."""
    smoothing: float = 0.75
    """They are drawn in proportion to their counts raised to this power."""
    candidates: int = 4096
    """Words drawn at random to name from, beside the hidden words themselves."""
    subsample: float = 1e-3
    """Words whose share f of the text is larger are named with probability sqrt(this / f)."""
    validations: int = 10
    """How often in all the sentences held out are scored."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch", "iterations", "negatives", "candidates", "validations"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        if self.subsample <= 0:
            raise ValueError(f"subsample is {self.subsample}, expected more than 0")
        if self.smoothing < 0:
            raise ValueError(f"smoothing is {self.smoothing}, expected at least 0")


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """One pretraining run."""

    text: tuple[Path, ...]
    """Text files, plain or gzip, or folders of them; - is standard input."""
    output_dir: Path
    """The run folder to make."""
    vectors: Path | None = None
    """Word vectors to begin with, in the text format of GloVe and word2vec, gzip or not."""
    dataset: Path | None = None
    """A dataset whose words all get a row, so that a language model on it finds each of them."""
    seed: int = 1
    """Seed of the initial weights, the order of sentences and the negative samples."""
    store: StoreConfig = field(default_factory=StoreConfig)
    """Which sentences are read and which words are known."""
    model: EncoderConfig = field(default_factory=EncoderConfig)
    """The sizes."""
    training: PretrainRecipe = field(default_factory=PretrainRecipe)
    """How to train."""

    def __post_init__(self) -> None:
        settle(self)

    def to_yaml(self) -> str:
        """All settings, resolved."""
        return to_yaml(self)
