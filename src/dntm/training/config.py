"""TrainConfig: everything that a training run depends on. No torch in here."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args

import yaml

from dntm.corpus.vocabulary import Vocabulary
from dntm.model.config import ModelConfig
from dntm.training.recipe import Recipe

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run."""

    dataset: Path
    """The dataset folder (dntm data build)."""
    output_dir: Path
    """The run folder to make."""
    seed: int = 1
    """Seed of the initial weights, the order of documents and dropout."""
    start_from: Path | None = None
    """A run or checkpoint whose weights to begin with, where they fit; e.g. a trained baseline."""
    pretrained: Path | None = None
    """A pretraining run: its embeddings and context encoder to begin with."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model; its vocabulary and entities are taken from the dataset."""
    training: Recipe = field(default_factory=Recipe)
    """How to train it."""

    def for_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """The same run with the sizes that the dataset asks for."""
        model = dataclasses.replace(
            self.model, vocabulary=len(vocabulary), entities=vocabulary.entities
        )
        return dataclasses.replace(self, model=model)

    def to_yaml(self) -> str:
        """All settings, resolved."""
        plain = dataclasses.asdict(self)
        for name in ("dataset", "output_dir", "start_from", "pretrained"):
            plain[name] = None if plain[name] is None else str(plain[name])
        return yaml.safe_dump(plain, sort_keys=False)


def merged(config: T, values: dict[str, Any], source: str, prefix: str = "") -> T:
    """The configuration with the values of a YAML file in place of its own."""
    known = {item.name: item for item in dataclasses.fields(config)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise ValueError(
                f"{source}: unknown setting {prefix + name!r}, expected one of {', '.join(known)}"
            )
        old: Any = getattr(config, name)
        kind = known[name].type
        if dataclasses.is_dataclass(old) and not isinstance(old, type):
            if not isinstance(value, dict):
                raise ValueError(f"{source}: {prefix + name} is {value!r}, expected settings")
            changes[name] = merged(old, value, source, f"{prefix}{name}.")
        elif value is None and NoneType in get_args(kind):
            changes[name] = None
        elif kind in (Path, Path | None) and value is not None:
            changes[name] = Path(value)
        elif kind == tuple[Path, ...] and isinstance(value, list):
            changes[name] = tuple(Path(path) for path in value)
        elif isinstance(value, list) and (old is None or isinstance(old, tuple)):
            changes[name] = tuple(value)
        else:
            changes[name] = _typed(value, old, f"{source}: {prefix + name}")
    return dataclasses.replace(config, **changes)


def _typed(value: Any, old: Any, where: str) -> Any:
    if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if old is not None and type(value) is not type(old):
        raise ValueError(f"{where} is {value!r}, expected {type(old).__name__}")
    return value
