"""PretrainConfig: everything that a pretraining run depends on (Section 5.1). No torch in here."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from dntm.corpus.token_store import StoreConfig
from dntm.training.recipe import Optimisation


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The sizes of the word embeddings and the context encoder."""

    embedding_dim: int = 512
    """Size of the word embeddings x, and of the context vectors d' that are compared with them."""
    encoder_dim: int = 512
    """Size of each of the context encoder's two LSTMs."""

    def __post_init__(self) -> None:
        for name in ("embedding_dim", "encoder_dim"):
            if (size := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {size}, expected at least 1")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe(Optimisation):
    """The settings of pretraining; the defaults are the paper's."""

    batch: int = 128
    """Sentences of an update."""
    iterations: int = 50_000
    """Updates in all."""
    negatives: int = 5
    """Words drawn at random to tell each hidden word from."""
    smoothing: float = 0.75
    """They are drawn in proportion to their counts raised to this power."""
    validations: int = 10
    """How often in all the sentences held out are scored."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch", "iterations", "negatives", "validations"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        if self.smoothing < 0:
            raise ValueError(f"smoothing is {self.smoothing}, expected at least 0")


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """One pretraining run."""

    text: tuple[Path, ...]
    """Text files, plain or gzip, or folders of them; - is standard input."""
    output_dir: Path
    """The run folder to make."""
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

    def to_yaml(self) -> str:
        """All settings, resolved."""
        plain = dataclasses.asdict(self)
        plain["text"] = [str(path) for path in self.text]
        for name in ("output_dir", "dataset"):
            plain[name] = None if plain[name] is None else str(plain[name])
        return yaml.safe_dump(plain, sort_keys=False)
