"""Settings of training and pretraining runs (Section 5.1). No torch here."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from dntm.corpus.token_store import StoreConfig
from dntm.corpus.vocabulary import Vocabulary
from dntm.files import resolved
from dntm.model.config import LARGEST_SIZE, Merging, ModelConfig
from dntm.settings import require, settle

RUN = Path("runs/DATASET-VARIANT-SEED")
"""The default run folder."""


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """Settings of the optimizer, in pretraining and in training."""

    learning_rate: float = 1e-3
    """Learning rate of Adam; with warmup or a schedule, its maximum."""
    clip: float = 1.0
    """Maximum norm of the gradient."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW)."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate schedule: constant, or cosine decay to 1 % of the maximum."""
    warmup: float = 0.0
    """Fraction of the updates during which the learning rate rises from zero."""
    embedding_rate: float = 1.0
    """Multiplier of the learning rate for the input embeddings x. A small value keeps them close to
    the word vectors they start from; 0 freezes them."""
    average: float = 0.0
    """Decay of an exponential moving average (EMA) of the weights, such as .999; 0 disables it. The
    averaged weights are validated and saved instead of the latest ones."""
    matmul_precision: Literal["highest", "medium"] = "highest"
    """Precision of matrix products in training, and in the scores of training runs and studies.
    With medium, PyTorch may round the factors to bfloat16, and a pretrained core is trained in
    bfloat16. This is up to twice as fast on recent CPUs."""

    def __post_init__(self) -> None:
        settle(self)
        require(self, "learning_rate clip", lambda v: v > 0, "more than 0")
        require(self, "average warmup", lambda v: 0 <= v < 1, "at least 0 and below 1")
        require(self, "embedding_rate weight_decay", lambda v: v >= 0, "at least 0")


@dataclass(frozen=True, kw_only=True)
class Recipe(Optimization):
    """The settings of training; the defaults are the paper's."""

    batch: int = 8
    """Documents per batch."""
    truncation: int = 20
    """Sentences per BPTT window; the weights are updated after each window."""
    epochs: int = 5
    """Passes over the training split."""
    validations: int = 2
    """Validations per epoch; the weights with the best result are kept."""
    output_sample: int = 0
    """Sampled softmax for large vocabularies: each update uses the rows that occur in its text and
    this many others, half of them the most frequent rows and half of them random. 0 uses all rows.
    Validation and evaluation always use all rows."""
    hide: float = 0.0
    """Probability that a known word is hidden: all its occurrences in a document become one entity.
    The hidden words differ in each epoch."""
    reveal: float = 0.0
    """Probability that an entity is read as a word, if all its mentions are the same known word."""
    exchange_memories: bool = False
    """As a control, train and score with the entities' memories exchanged within each document."""
    freeze_encoder: bool = True
    """Freeze a pretrained context encoder; no-freeze-encoder: train it. If pretraining also learned
    the model's merging function, the same applies to it and to W_dx."""
    freeze: tuple[str, ...] = ()
    """Parts of the model to freeze: x, x.words, core, memory.encoder, output, terms.pointer, ..."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "batch truncation epochs validations", lambda v: v >= 1, "at least 1")
        require(self, "hide reveal", lambda v: 0 <= v <= 1, "0 to 1")
        require(self, "output_sample", lambda v: v >= 0, "at least 0")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run."""

    dataset: Path
    """The dataset folder (dntm data build)."""
    output_dir: Path = RUN
    """The run folder to create; if omitted, it is named after the dataset, variant and seed."""
    seed: int = 1
    """Random seed for the initial weights, the order of documents and dropout."""
    start_from: Path | None = None
    """A run or checkpoint to start from, such as a trained baseline, or "default" (the bundled
    model). Parameters that both models have are copied; with --pretrained, the input embeddings
    and the context encoder come from there."""
    pretrained: Path | None = None
    """A pretraining run that provides the initial embeddings and context encoder."""
    vectors: Path | None = None
    """Word vectors to start from, in the text format of GloVe and word2vec, optionally gzipped.
    Cannot be combined with --pretrained."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model; its vocabulary and entities are taken from the dataset."""
    training: Recipe = field(default_factory=Recipe)
    """Settings of training."""

    def __post_init__(self) -> None:
        settle(self)
        if self.vectors and self.pretrained:
            raise ValueError(
                f"vectors {self.vectors} and pretrained {self.pretrained} both initialize the "
                "embeddings: pass the vectors to dntm pretrain"
            )
        if self.output_dir == RUN:
            parts: list[str] = [self.model.variant, *self.model.extensions]
            if self.model.core != "lstm":
                parts.insert(0, Path(self.model.core).stem)
            name = f"{resolved(self.dataset).name}-{'-'.join(parts)}-{self.seed}"
            object.__setattr__(self, "output_dir", RUN.parent / name)

    def for_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """The same run with the sizes of the vocabulary."""
        model = dataclasses.replace(
            self.model, vocabulary=len(vocabulary), entities=vocabulary.entities
        )
        return dataclasses.replace(self, model=model)


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The sizes of the word embeddings and the context encoder."""

    embedding_dim: int = 512
    """Size of the word embeddings x, and of the context vectors d' that are compared with them."""
    encoder_dim: int = 512
    """Size of each of the context encoder's two LSTMs."""
    context_dim: int | None = None
    """Size of the context vectors d'; if omitted, the size of the embeddings. Only for the naming
    objective."""
    merging: Merging | None = None
    """How to merge the contexts of a word if training.mentions is set; if omitted, each gap is
    predicted from its own context. Only for the naming objective."""
    attention: bool = False
    """Also attend to the words of the sentence, like the extension word-attention; no-attention: do
    not. Only for the naming objective."""

    def __post_init__(self) -> None:
        settle(self)
        sizes = "embedding_dim encoder_dim context_dim"
        require(self, sizes, lambda v: 1 <= v <= LARGEST_SIZE, f"1 to {LARGEST_SIZE:,}")


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe(Optimization):
    """The settings of pretraining; the defaults are the paper's."""

    objective: Literal["negatives", "naming"] = "negatives"
    """negatives: distinguish each hidden word from a few random words, as in the paper. naming:
    select it from thousands of words by its cosine with W_dx d, like the extension naming."""
    batch: int = 128
    """Sentences per update."""
    iterations: int = 50_000
    """Number of updates."""
    negatives: int = 5
    """Negative samples per hidden word."""
    smoothing: float = 0.75
    """Negative samples are drawn in proportion to word counts raised to this power."""
    candidates: int = 4096
    """Naming objective: number of random words to select from, in addition to the hidden words."""
    subsample: float = 1e-3
    """Naming objective: words with a relative frequency f above this value are prediction targets
    only with probability sqrt(value / f)."""
    hide: float = 0.0
    """Naming objective: fraction of words that the encoder reads as an unseen entity (x_e = b), as
    the language model reads new names and unknown words."""
    mentions: int = 0
    """Naming objective: if not 0, words are drawn by type instead of by frequency. Up to this many
    sentences of a word are read, and the word is named after each."""
    validations: int = 10
    """Number of validations on the held-out sentences."""

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = "batch iterations negatives candidates validations"
        require(self, counts, lambda v: v >= 1, "at least 1")
        require(self, "hide", lambda v: 0 <= v < 1, "at least 0 and below 1")
        require(self, "subsample", lambda v: v > 0, "more than 0")
        require(self, "smoothing mentions", lambda v: v >= 0, "at least 0")


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """One pretraining run."""

    text: tuple[Path, ...]
    """Text files, optionally gzipped, or folders of them; - is standard input."""
    output_dir: Path
    """The run folder to create."""
    vectors: Path | None = None
    """Word vectors to start from, in the text format of GloVe and word2vec, optionally gzipped."""
    start_from: Path | None = None
    """A pretraining run with the same vocabulary to start from."""
    dataset: Path | None = None
    """A dataset on which a language model will be trained; all its words get a row."""
    seed: int = 1
    """Random seed for the initial weights, the order of sentences and the negative samples."""
    store: StoreConfig = field(default_factory=StoreConfig)
    """Which sentences are read, and which words are in the vocabulary."""
    model: EncoderConfig = field(default_factory=EncoderConfig)
    """Sizes of the model."""
    training: PretrainRecipe = field(default_factory=PretrainRecipe)
    """Settings of pretraining."""

    def __post_init__(self) -> None:
        settle(self)
        by_type = self.training.objective == "naming" and self.training.mentions
        if self.model.merging and not by_type:
            raise ValueError(
                f"merging is {self.model.merging}, expected the naming objective with mentions: "
                "only sentences of words drawn by type are merged"
            )
