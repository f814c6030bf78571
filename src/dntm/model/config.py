"""ModelConfig: which of the paper's models to build, and how large (Sections 3 and 5.1).

The defaults are the paper's model D with GRU-ReLU merging. Torch is not imported here, so that
the command line can show its help at once.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from dntm.corpus.vocabulary import SPECIALS, entity_rows
from dntm.settings import settle

Variant = Literal["baseline", "input", "output", "both"]
Merging = Literal["gru-relu", "gru", "max", "latest", "mean", "attention"]
Kind = Literal["dntm", "transformer", "entity-nlm", "kneser-ney"]
LETTERS: dict[str, Variant] = {"A": "baseline", "B": "input", "C": "output", "D": "both"}
"""The paper's names of the variants, which every setting takes, too."""

LARGEST_SIZE = 10_000_000
"""Of any dimension: what is larger is a mistake, and its products would overflow."""
_SIZES = (
    *("vocabulary", "entities", "embedding_dim", "hidden_dim", "encoder_dim", "context_dim"),
    *("layers", "heads"),
)
_DROPOUTS = ("dropout_embedding", "dropout_hidden", "dropout_context")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a Dynamic Neural Text Model."""

    kind: Kind = "dntm"
    """The paper's model in its variants, or a peer to compare it with, which has no dynamic
    embeddings and is a baseline whatever the variant: a Transformer over the whole document
    (model/transformer.py), one after EntityNLM (model/entity_nlm.py), or a 5-gram model with
    modified Kneser-Ney smoothing (model/kneser_ney.py)."""
    vocabulary: int = 10_000
    """Rows of the embedding tables: special tokens, entities and words together."""
    entities: int = 50
    """How many of these rows belong to entities."""
    variant: Variant = "both"
    """Where entities have dynamic embeddings: nowhere (A), input (B), output (C) or both (D)."""
    merging: Merging = "gru-relu"
    """How an entity's contexts become one representation."""
    embedding_dim: int = 512
    """Size of the input embeddings x."""
    hidden_dim: int = 512
    """Size of the language model's LSTM, and of the output embeddings y."""
    encoder_dim: int = 512
    """Size of each of the context encoder's two LSTMs."""
    context_dim: int = 512
    """Size of the context vectors d' and of the dynamic representations d."""
    salience: bool = False
    """Beyond the paper: let the output layer know how recently and how often each entity was
    mentioned."""
    newcomer: bool = False
    """Beyond the paper: a new entity has the next number, so let all numbers that nobody has yet
    stand for that one together."""
    direct: bool = False
    """Beyond the paper, in variants with dynamic input: after a mention the output layer reads d_e
    itself, too, and not only what the LSTM makes of x_e."""
    pointer: bool = False
    """Beyond the paper: let the output layer point at what the document has said in like moments,
    too; a cache that is learned with the model."""
    naming: bool = False
    """Beyond the paper: name hidden words by what their embeddings are near to."""
    tied: bool = False
    """Share one table between the input and output embeddings."""
    dropout_embedding: float = 0.0
    """Dropout on x, the LSTM's input."""
    dropout_hidden: float = 0.0
    """Dropout on h, the output layer's input."""
    dropout_context: float = 0.0
    """Dropout on d', the merging function's input; in a Transformer on what each layer adds."""
    layers: int = 2
    """Layers of a Transformer; the more, the narrower: its weights are as many as the LSTM's."""
    heads: int = 4
    """Attention heads of each."""

    ABBREVIATIONS: ClassVar = {"variant": LETTERS}

    def __post_init__(self) -> None:
        settle(self)
        for name in _SIZES:
            if not 1 <= (size := getattr(self, name)) <= LARGEST_SIZE:
                raise ValueError(f"{name} is {size!r:.40}, expected 1 to {LARGEST_SIZE:,}")
        for name in _DROPOUTS:
            if not 0 <= (share := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {share!r}, expected at least 0 and below 1")
        if self.vocabulary <= entity_rows(self.entities).stop:
            raise ValueError(
                f"vocabulary is {self.vocabulary}, expected more than the {len(SPECIALS)} special "
                f"and {self.entities} entity rows it holds"
            )
        if self.kind != "dntm":
            object.__setattr__(self, "variant", "baseline")
        if self.kind == "transformer":
            self._check_transformer()
        if self.naming and not self.dynamic_input:
            raise ValueError(
                f"naming with variant {self.variant!r}, expected one with dynamic input: there is "
                "no embedding that could be named"
            )
        if self.tied and self.embedding_dim != self.hidden_dim:
            raise ValueError(
                f"tied embeddings with embedding_dim {self.embedding_dim} and hidden_dim "
                f"{self.hidden_dim}, expected the same size for both"
            )

    def _check_transformer(self) -> None:
        if self.embedding_dim != self.hidden_dim:
            raise ValueError(
                f"a Transformer with embedding_dim {self.embedding_dim} and hidden_dim "
                f"{self.hidden_dim}, expected the same size for both"
            )
        if self.embedding_dim % self.layers or self.embedding_dim // self.layers % (2 * self.heads):
            raise ValueError(
                f"embedding_dim {self.embedding_dim} over layers {self.layers}, expected a "
                f"multiple of twice the {self.heads} heads for each layer"
            )

    @property
    def dynamic_input(self) -> bool:
        """Whether x_e follows d_e (Eq. 9)."""
        return self.variant in ("input", "both")

    @property
    def dynamic_output(self) -> bool:
        """Whether y_e follows d_e (Eq. 10)."""
        return self.variant in ("output", "both")
