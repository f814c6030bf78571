"""Settings of training and pretraining runs (Section 5.1). No torch in here."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from dntm.corpus.token_store import StoreConfig
from dntm.corpus.vocabulary import Vocabulary
from dntm.files import resolved
from dntm.model.config import LARGEST_SIZE, Merging, ModelConfig
from dntm.settings import settle, to_yaml

RUN = Path("runs/DATASET-VARIANT-SEED")
"""Where a run goes that is not told."""


@dataclass(frozen=True, kw_only=True)
class Optimisation:
    """How the weights are updated, in pretraining and in training."""

    learning_rate: float = 1e-3
    """Adam's learning rate (its peak, where it changes)."""
    clip: float = 1.0
    """The largest norm of the gradient."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW)."""
    schedule: Literal["constant", "cosine"] = "constant"
    """How the learning rate falls: not at all, or along a cosine to a hundredth."""
    warmup: float = 0.0
    """Share of all updates over which the learning rate rises from zero."""
    embedding_rate: float = 1.0
    """Learning rate of the input embeddings x, as a share of the others'; a small one keeps word
    vectors they began with near to what they were, 0 fixes them."""
    average: float = 0.0
    """Decay of the EMA of the weights, which is then what is validated and kept; 0: the weights
    themselves."""

    def __post_init__(self) -> None:
        settle(self)
        for name in ("learning_rate", "clip"):
            if not (value := getattr(self, name)) > 0:
                raise ValueError(f"{name} is {value}, expected more than 0")
        for name in ("average", "warmup"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}, expected at least 0 and below 1")
        if self.embedding_rate < 0:
            raise ValueError(f"embedding_rate is {self.embedding_rate}, expected at least 0")
        if self.weight_decay < 0:
            raise ValueError(f"weight_decay is {self.weight_decay}, expected at least 0")


@dataclass(frozen=True, kw_only=True)
class Recipe(Optimisation):
    """The settings of training; the defaults are the paper's."""

    batch: int = 8
    """Documents read side by side."""
    truncation: int = 20
    """Sentences after which backpropagation is cut and the weights are updated."""
    epochs: int = 5
    """Passes over the training split."""
    validations: int = 2
    """Validations an epoch; the weights of the best one are kept."""
    output_sample: int = 0
    """Rows of the output layer that an update works with, for large vocabularies: half of them the
    most frequent, half drawn anew, besides those that occur; 0: all rows. Scores never sample."""
    hide: float = 0.0
    """Hide known words: with this probability all occurrences of a word in a document become an
    entity, drawn anew every epoch."""
    reveal: float = 0.0
    """The reverse for entities that go by one known word, such as names: with this probability they
    are words."""
    naming_weight: float = 0.5
    """Weight of naming hidden words in the loss, where the model has --model.naming."""
    freeze_encoder: bool = True
    """Fix the context encoder where it comes from pretraining; where the model merges contexts as
    pretraining learned to, W_dx and the merging function, too."""
    freeze: tuple[str, ...] = ()
    """Parts of the model that stay as they begin, by their names: encoder, lstm, x, output, ...
    Such as all but the pointer of a model that had none (--start-from)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch", "truncation", "epochs", "validations"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        for name in ("hide", "reveal"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ValueError(f"{name} is {value}, expected 0 to 1")
        for name in ("output_sample", "naming_weight"):
            if (value := getattr(self, name)) < 0:
                raise ValueError(f"{name} is {value}, expected at least 0")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run."""

    dataset: Path
    """The dataset folder (dntm data build)."""
    output_dir: Path = RUN
    """The run folder to make; where not given, its dataset, variant (of a peer its kind) and seed
    name it."""
    seed: int = 1
    """Seed of the initial weights, the order of documents and dropout."""
    start_from: Path | None = None
    """A run or checkpoint whose weights to begin with, where they fit; e.g. a trained baseline, or
    "default", the model that comes with the package.
    What --pretrained brings and fixes is not replaced."""
    pretrained: Path | None = None
    """A pretraining run: its embeddings and context encoder to begin with."""
    vectors: Path | None = None
    """Word vectors to begin with, in the text format of GloVe and word2vec, gzip or not; for a run
    without pretraining, which takes them itself."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model; its vocabulary and entities are taken from the dataset."""
    training: Recipe = field(default_factory=Recipe)
    """How to train it."""

    def __post_init__(self) -> None:
        settle(self)
        if self.vectors and self.pretrained:
            raise ValueError(
                f"vectors {self.vectors} and pretrained {self.pretrained} both say what the "
                "embeddings begin with: give the vectors to dntm pretrain"
            )
        if self.output_dir == RUN:
            kind = self.model.variant if self.model.kind == "dntm" else self.model.kind
            name = f"{resolved(self.dataset).name}-{kind}-{self.seed}"
            object.__setattr__(self, "output_dir", RUN.parent / name)

    def for_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """The same run with the sizes that the dataset asks for."""
        model = dataclasses.replace(
            self.model, vocabulary=len(vocabulary), entities=vocabulary.entities
        )
        return dataclasses.replace(self, model=model)

    def to_yaml(self) -> str:
        """All settings, resolved."""
        return to_yaml(self)


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The sizes of the word embeddings and the context encoder."""

    embedding_dim: int = 512
    """Size of the word embeddings x, and of the context vectors d' that are compared with them."""
    encoder_dim: int = 512
    """Size of each of the context encoder's two LSTMs."""
    context_dim: int | None = None
    """Size of the context vectors d', where they are named; otherwise that of the embeddings."""
    merging: Merging | None = None
    """Where gaps are named: how the contexts of a word that a batch names several times become one
    representation, learned for the language model; not given: each gap is named by itself."""

    def __post_init__(self) -> None:
        settle(self)
        for name in ("embedding_dim", "encoder_dim", "context_dim"):
            if (size := getattr(self, name)) is not None and not 1 <= size <= LARGEST_SIZE:
                raise ValueError(f"{name} is {size!r:.40}, expected 1 to {LARGEST_SIZE:,}")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe(Optimisation):
    """The settings of pretraining; the defaults are the paper's."""

    objective: Literal["negatives", "naming"] = "negatives"
    """Tell each hidden word from a few others (the paper), or name it: the cosines of W_dx d with
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
    hide: float = 0.0
    """Where gaps are named: share of the words that the encoder reads as an entity it meets for the
    first time, x_e = b, as it will read names and unknown words."""
    validations: int = 10
    """How often in all the sentences held out are scored."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("batch", "iterations", "negatives", "candidates", "validations"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        if not 0 <= self.hide < 1:
            raise ValueError(f"hide is {self.hide}, expected at least 0 and below 1")
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
    start_from: Path | None = None
    """A pretraining run on the same words whose weights to begin with; or a language model that
    names hidden words: its encoder then learns on, for words that stay as they are."""
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
        named = {
            "model.merging": self.model.merging,
            "model.context_dim": self.model.context_dim,
            "training.hide": self.training.hide or None,
        }
        given = [(name, value) for name, value in named.items() if value is not None]
        if given and self.training.objective != "naming":
            name, value = given[0]
            raise ValueError(
                f"{name} is {value}, which has no effect with training.objective "
                f"{self.training.objective}: expected naming"
            )

    def to_yaml(self) -> str:
        """All settings, resolved."""
        return to_yaml(self)
