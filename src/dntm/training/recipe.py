"""Recipe: how the weights are learned (Section 5.1). No torch in here."""

from dataclasses import dataclass
from typing import Literal

from dntm.settings import settle


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
    """Fix the context encoder where it comes from pretraining."""

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
