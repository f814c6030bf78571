"""TrainConfig: everything that a training run depends on. No torch in here."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from dntm.corpus.vocabulary import Vocabulary
from dntm.files import resolved
from dntm.model.config import ModelConfig
from dntm.settings import settle, to_yaml
from dntm.training.recipe import Recipe

RUN = Path("runs/DATASET-VARIANT-SEED")
"""Where a run goes that is not told."""


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
    """A run or checkpoint whose weights to begin with, where they fit; e.g. a trained baseline."""
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
