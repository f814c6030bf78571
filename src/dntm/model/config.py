"""ModelConfig: which model to build and its sizes (Sections 3 and 5.1).

The defaults are the paper's model D with GRU-ReLU merging. This module does not import torch, so
that --help is fast.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from dntm.corpus.vocabulary import SPECIALS, entity_rows
from dntm.settings import require, settle

CORES = ("lstm", "transformer")
"""Cores that are trained from scratch."""
Variant = Literal["baseline", "input", "output", "both"]
Merging = Literal["gru-relu", "gru", "max", "latest", "mean", "attention"]
Extension = Literal[
    "entity-residual",
    "salience",
    "entity-nlm",
    "unseen-pooling",
    "pointer",
    "naming",
    "word-attention",
]
NEED_MEMORY: tuple[Extension, ...] = ("entity-residual", "naming", "word-attention")
"""Extensions that the baseline cannot have."""
_NEED_WORDS: tuple[Extension, ...] = ("naming", "word-attention")
"""Extensions that need one row per word."""
LETTERS: dict[str, Variant] = {"A": "baseline", "B": "input", "C": "output", "D": "both"}
"""The paper's names of the variants; a config always has the long name."""

LARGEST_SIZE = 10_000_000
"""The maximum of any dimension; products of larger sizes would overflow."""
_SIZES = (
    "vocabulary entities embedding_dim hidden_dim core_dim encoder_dim context_dim layers heads"
)
_DROPOUTS = "dropout_embedding dropout_hidden dropout_context"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a Dynamic Neural Text Model."""

    core: str = "lstm"
    """The language model that reads the document: lstm (the paper's), transformer (with the same
    number of weights), or a pretrained causal language model, given as its folder, GGUF file or
    Hugging Face id. A pretrained model stays frozen and determines the vocabulary and the sizes of
    x, h and y."""
    vocabulary: int = 10_000
    """Number of rows of the embedding tables, including special tokens and entities."""
    entities: int = 50
    """Number of rows for entities."""
    variant: Literal[Variant, "A", "B", "C", "D"] = "both"
    """Where entities have dynamic embeddings: nowhere (baseline, A), in the input (B), in the
    output (C) or in both (D)."""
    merging: Merging = "gru-relu"
    """How an entity's contexts are merged into one representation."""
    extensions: tuple[Extension, ...] = ()
    """Additions beyond the paper (docs/extensions.md): entity-residual, salience, entity-nlm,
    unseen-pooling, pointer, naming, word-attention."""
    embedding_dim: int = 512
    """Size of the input embeddings x."""
    hidden_dim: int = 512
    """Size of the core's states h and of the output embeddings y."""
    core_dim: int | None = None
    """Size of the LSTM's own states, which are projected to h; if omitted, they are h."""
    encoder_dim: int = 512
    """Size of each of the context encoder's two LSTMs."""
    context_dim: int = 512
    """Size of the context vectors d' and of the dynamic representations d."""
    tied: bool = False
    """Share one table between input and output embeddings; no-tied: one table each."""
    dropout_embedding: float = 0.0
    """Dropout on x, the core's input."""
    dropout_hidden: float = 0.0
    """Dropout on h, the output layer's input."""
    dropout_context: float = 0.0
    """Dropout on d', the merging function's input, and on the output of each Transformer block."""
    layers: int = 2
    """Number of Transformer layers. With more layers, each layer is narrower, so the number of
    weights stays the same."""
    heads: int = 4
    """Number of attention heads per Transformer layer."""

    def __post_init__(self) -> None:
        settle(self)
        object.__setattr__(self, "variant", LETTERS.get(self.variant, self.variant))
        if len(set(self.extensions)) < len(self.extensions):
            raise ValueError(f"extensions {' '.join(self.extensions)}, expected each at most once")
        # The order is fixed, because each term sees what earlier terms added.
        in_order = tuple(name for name in get_args(Extension) if name in self.extensions)
        object.__setattr__(self, "extensions", in_order)
        require(self, _SIZES, lambda v: 1 <= v <= LARGEST_SIZE, f"1 to {LARGEST_SIZE:,}")
        require(self, _DROPOUTS, lambda v: 0 <= v < 1, "at least 0 and below 1")
        for problem in self._problems():
            raise ValueError(problem)

    def _problems(self) -> Iterator[str]:
        x, h, variant = self.embedding_dim, self.hidden_dim, self.variant
        if self.vocabulary <= entity_rows(self.entities).stop:
            special = f"{len(SPECIALS)} special and {self.entities} entity rows"
            yield f"vocabulary is {self.vocabulary}, expected more than its {special}"
        for name in self.extensions:
            given = f"extension {name} with variant {variant!r}"
            if name in NEED_MEMORY and variant == "baseline":
                yield f"{given}, expected a variant with a memory (B, C or D)"
            if name == "entity-nlm" and variant != "baseline":
                yield f"{given}, expected the baseline (A): EntityNLM has its own entity states"
            if name in _NEED_WORDS and self.is_pretrained:
                pieces = "it needs one row per word, and a pretrained core has pieces"
                yield f"extension {name} with core {self.core!r}: {pieces}"
        if self.tied and x != h:
            yield f"tied embeddings with embedding_dim {x} and hidden_dim {h}, expected equal sizes"
        if self.core_dim is not None and self.core != "lstm":
            yield f"core_dim {self.core_dim} with core {self.core!r}, expected lstm"
        if self.core == "transformer" and x != h:
            yield f"a Transformer with embedding_dim {x} and hidden_dim {h}, expected equal sizes"
        if self.core == "transformer" and x % (self.layers * 2 * self.heads):
            multiple = f"a multiple of {self.layers * 2 * self.heads} (2 * layers * heads)"
            yield f"embedding_dim {x} with {self.layers} layers, expected {multiple}"

    @property
    def is_pretrained(self) -> bool:
        """Whether the core is a pretrained language model."""
        return self.core not in CORES

    @property
    def dynamic_input(self) -> bool:
        """Whether x_e follows d_e (Eq. 9)."""
        return self.variant in ("input", "both")

    @property
    def dynamic_output(self) -> bool:
        """Whether y_e follows d_e (Eq. 10)."""
        return self.variant in ("output", "both")
