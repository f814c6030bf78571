"""ModelConfig: which model to build and its sizes (Sections 3 and 5.1).

The defaults are the paper's model D with GRU-ReLU merging. This module does not import torch, so
that the command line can show its help at once.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from dntm.corpus.vocabulary import SPECIALS, entity_rows
from dntm.settings import settle

CORES = ("lstm", "transformer")
"""Cores that are trained from the beginning."""
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
NEED_DYNAMIC_INPUT: tuple[Extension, ...] = ("entity-residual", "naming")
"""Extensions that only work with dynamic input embeddings."""
NEED_MEMORY: tuple[Extension, ...] = (*NEED_DYNAMIC_INPUT, "word-attention")
"""Extensions that the baseline cannot have."""
_NEED_WORDS: tuple[Extension, ...] = ("naming", "word-attention")
"""Extensions that need one row per word."""
LETTERS: dict[str, Variant] = {"A": "baseline", "B": "input", "C": "output", "D": "both"}
"""The paper's names of the variants; a config always has the long name."""

LARGEST_SIZE = 10_000_000
"""Of any dimension; a larger number is a mistake, and products of such sizes would overflow."""
_SIZES = (
    *("vocabulary", "entities", "embedding_dim", "hidden_dim", "core_dim"),
    *("encoder_dim", "context_dim", "layers", "heads"),
)
_DROPOUTS = ("dropout_embedding", "dropout_hidden", "dropout_context")


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
    """Share one table between input and output embeddings."""
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
        # One order, whatever order they are named in: each term sees what earlier ones added.
        in_order = tuple(name for name in get_args(Extension) if name in self.extensions)
        object.__setattr__(self, "extensions", in_order)
        for name in _SIZES:
            size = getattr(self, name)
            if not (name == "core_dim" and size is None) and not 1 <= size <= LARGEST_SIZE:
                raise ValueError(f"{name} is {size!r:.40}, expected 1 to {LARGEST_SIZE:,}")
        for name in _DROPOUTS:
            if not 0 <= (share := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {share!r}, expected at least 0 and below 1")
        if self.vocabulary <= entity_rows(self.entities).stop:
            raise ValueError(
                f"vocabulary is {self.vocabulary}, expected more than its {len(SPECIALS)} special "
                f"and {self.entities} entity rows"
            )
        for name in NEED_DYNAMIC_INPUT:
            if name in self.extensions and not self.dynamic_input:
                raise ValueError(
                    f"extension {name} with variant {self.variant!r}, expected a variant with "
                    "dynamic input (B or D)"
                )
        if "word-attention" in self.extensions and self.variant == "baseline":
            raise ValueError(
                "extension word-attention with variant 'baseline', which has no context encoder"
            )
        if "entity-nlm" in self.extensions and self.variant != "baseline":
            raise ValueError(
                f"extension entity-nlm with variant {self.variant!r}, expected the baseline "
                "(A): it has entity states of its own"
            )
        if self.tied and self.embedding_dim != self.hidden_dim:
            raise ValueError(
                f"tied embeddings with embedding_dim {self.embedding_dim} and hidden_dim "
                f"{self.hidden_dim}, expected equal sizes"
            )
        if self.is_pretrained and (odd := {*_NEED_WORDS} & {*self.extensions}):
            raise ValueError(
                f"extension {min(odd)} with core {self.core!r}: it needs one row per word, and a "
                "pretrained core has pieces"
            )
        if self.core_dim is not None and self.core != "lstm":
            raise ValueError(f"core_dim {self.core_dim} with core {self.core!r}, expected lstm")
        if self.core == "transformer":
            self._check_transformer()

    def _check_transformer(self) -> None:
        if self.embedding_dim != self.hidden_dim:
            raise ValueError(
                f"a Transformer with embedding_dim {self.embedding_dim} and hidden_dim "
                f"{self.hidden_dim}, expected equal sizes"
            )
        if self.embedding_dim % self.layers or self.embedding_dim // self.layers % (2 * self.heads):
            raise ValueError(
                f"embedding_dim {self.embedding_dim} over layers {self.layers}, expected a "
                f"multiple of twice the {self.heads} heads for each layer"
            )

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
