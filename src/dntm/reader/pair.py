"""ModelPair: a dynamic model and the static one it is compared with.

The static model is, in this order,

    a baseline whose checkpoint is given;
    a baseline in the folder `static` of the checkpoint;
    the same weights with d_e = 0 for ever: the model without its memory.

Both compute in double precision, so that no number depends on what else is read in the same batch:
single precision differs by 3e-6 nats between batches, double by 1e-14.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.scoring import TextModel
from dntm.model.checkpoint import best_of
from dntm.model.language_model import DynamicTextModel

SHIPPED = Path(__file__).parents[1] / "pretrained"
"""Where the model that comes with the package lies."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models over one vocabulary."""

    dynamic: DynamicTextModel
    static: DynamicTextModel
    vocabulary: Vocabulary
    static_is: str
    """What the static model is, in words."""

    @classmethod
    def load(cls, path: Path | str | None, static: Path | str | None) -> "ModelPair":
        """Load a run folder or a checkpoint, and the static model beside it."""
        if path is None and not (SHIPPED / "config.json").is_file():
            raise ValueError(
                "no model given, and none comes with this installation: "
                "pass the folder of a run or a checkpoint"
            )
        folder = SHIPPED if path is None else Path(path)
        inside = best_of(folder) / "static"
        model = TextModel.load(folder)
        if static is None and inside.is_dir():
            static = inside
        if static is None:
            twin, static_is = without_memory(model.model), "the same weights with d = 0"
        else:
            twin, static_is = baseline(Path(static), model.vocabulary), f"{static}"
        return cls(_ready(model.model), _ready(twin), model.vocabulary, static_is)


def without_memory(model: DynamicTextModel) -> DynamicTextModel:
    """The baseline with the model's weights: what the model is as long as every d_e is zero."""
    with torch.device("meta"):  # every one of its tensors is replaced
        static = DynamicTextModel(replace(model.config, variant="baseline"))
    static.lstm, static.output.b = model.lstm, model.output.b
    static.salience = model.salience
    static.x.weight, static.output.y.weight = model.x.weight, model.output.y.weight
    return static


def baseline(path: Path, vocabulary: Vocabulary) -> DynamicTextModel:
    """Load the static model of a pair; ValueError where it cannot be one."""
    static = TextModel.load(path)
    if static.model.config.variant != "baseline":
        raise ValueError(
            f"{path} is the variant {static.model.config.variant!r}, expected a baseline"
        )
    if static.vocabulary != vocabulary:
        raise ValueError(
            f"{path} has another vocabulary than the dynamic model, "
            "expected a baseline trained on the same dataset"
        )
    return static.model


def _ready(model: DynamicTextModel) -> DynamicTextModel:
    return model.double().eval().requires_grad_(requires_grad=False)
