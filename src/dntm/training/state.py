"""TrainingState: all that a run carries from one update to the next.

Saved and restored, it makes the run go on as if it had never stopped: weights, Adam's moments,
the EMA of the weights, the generator of dropout, the position in the data, sums not yet reported.
`initial_model` gives the weights that it begins with.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from dntm.corpus.vectors import WordVectors
from dntm.corpus.vocabulary import Vocabulary
from dntm.model.checkpoint import VOCABULARY, best_of, folder_of, from_pretrained
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.pretrained_encoder import PretrainedEncoder, begin_with
from dntm.settings import shown
from dntm.training.config import Optimisation, TrainConfig

Model = TypeVar("Model", bound=nn.Module)
MOST_NATS = 700.0
"""A loss a token above it has a perplexity that no number holds."""

EMBEDDINGS = ("x", "x.weight")
"""What the input embeddings are called, in pretraining and in the language model."""


@dataclass
class Position:
    """How far a run has come."""

    epoch: int = 0
    batch: int = 0
    """The next batch of the epoch."""
    updates: int = 0
    nats: float = 0.0
    """Sum over the training tokens since the last validation."""
    tokens: int = 0
    best: float = float("inf")
    """The lowest validation perplexity so far."""
    validations: int = 0

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> "Position":
        """From what JSON holds; ValueError where that is none."""
        names = [field.name for field in fields(cls)]
        if odd := sorted(set(names) ^ set(numbers)):
            raise ValueError(f"missing or unknown numbers: {shown(', '.join(odd))}")
        for name in names:
            value, whole = numbers[name], name not in ("nats", "best")
            if type(value) is not int and (whole or type(value) is not float):
                raise ValueError(f"{name} is {shown(value)}, expected a number")
            if not value >= 0:
                raise ValueError(f"{name} is {shown(value)}, expected at least 0")
        if not numbers["nats"] <= MOST_NATS * numbers["tokens"]:
            raise ValueError(f"nats is {shown(numbers['nats'])}, expected those of the tokens")
        return cls(**numbers)


@dataclass
class TrainingState(Generic[Model]):
    """Weights, optimiser, EMA of the weights, generator and position."""

    model: Model
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    ema: dict[str, Tensor]
    """EMA of the weights by name; empty where the recipe keeps none."""
    position: Position = field(default_factory=Position)

    @classmethod
    def start(cls, model: Model, recipe: Optimisation, seed: int) -> Self:
        """The state before the first update."""
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        learned = [p for _, p in named]
        own_rate = recipe.embedding_rate != 1
        slow = [p for name, p in named if own_rate and name in EMBEDDINGS]
        rest = [p for name, p in named if not (own_rate and name in EMBEDDINGS)]
        groups: list[dict[str, Any]] = [{"params": rest}]
        if recipe.weight_decay:
            groups = [
                {"params": [p for p in rest if p.dim() > 1], "weight_decay": recipe.weight_decay},
                {"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0},
            ]
        if slow:
            # No decay either: the word vectors they began with are worth keeping.
            groups.append({"params": slow, "weight_decay": 0.0, "rate": recipe.embedding_rate})
        kind = torch.optim.AdamW if recipe.weight_decay else torch.optim.Adam
        optimizer = kind(groups, lr=recipe.learning_rate, fused=True)
        ema = {}
        if recipe.average:
            ema = {name: p.detach().clone() for name, p in model.named_parameters()}
        generator = torch.Generator(learned[0].device).manual_seed(seed)
        return cls(model, optimizer, generator, ema)

    def draw_anew(self, *numbers: int) -> None:
        """Let dropout follow from these numbers alone, whatever was drawn before."""
        seed = np.random.SeedSequence(numbers).generate_state(1, np.uint64)
        self.generator.manual_seed(int(seed[0]) >> 1)

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name."""
        found = {f"model.{name}": p.detach() for name, p in self.model.named_parameters()}
        found |= {f"average.{name}": value for name, value in self.ema.items()}
        for number, values in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{number}.{name}": value for name, value in values.items()}
        found["generator"] = self.generator.get_state()
        return found

    def numbers(self) -> dict[str, Any]:
        """The position."""
        return asdict(self.position)

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Take on a saved state; ValueError where it is of another model, or none."""
        position = Position.of(numbers)
        parameters = dict(self.model.named_parameters())
        learned = [p for group in self.optimizer.param_groups for p in group["params"]]
        expected = {f"model.{name}": p.detach() for name, p in parameters.items()}
        expected |= {f"average.{name}": value for name, value in self.ema.items()}
        expected["generator"] = self.generator.get_state()
        for number in {key.split(".")[1] for key in tensors if key.startswith("optimizer.")}:
            if not (number.isdecimal() and int(number) < len(learned)):
                raise ValueError(f"moments of parameter {shown(number)} of {len(learned)}")
            moments = _moments(learned[int(number)])
            expected |= {f"optimizer.{number}.{name}": value for name, value in moments.items()}
        if odd := sorted(expected.keys() ^ tensors.keys()):
            raise ValueError(f"the checkpoint is of another model: {odd[0]} is in only one of them")
        for name, value in expected.items():
            if (tensors[name].shape, tensors[name].dtype) != (value.shape, value.dtype):
                raise ValueError(
                    f"{name} is {_kind(tensors[name])} in the checkpoint, expected {_kind(value)}"
                )
            if value.is_floating_point() and not bool(tensors[name].isfinite().all()):
                raise ValueError(f"{name} holds NaN or infinite numbers")
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, number, name = key.split(".")
                state.setdefault(int(number), {})[name] = value
        try:
            self.generator.set_state(tensors["generator"])
        except RuntimeError as error:
            raise ValueError(f"generator: {shown(str(error))}") from None
        saved = self.optimizer.state_dict()
        self.optimizer.load_state_dict({**saved, "state": state})
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(tensors[f"model.{name}"])
            for name, value in self.ema.items():
                value.copy_(tensors[f"average.{name}"])
        self.position = position


def _moments(parameter: Tensor) -> dict[str, Tensor]:
    """What Adam keeps of a parameter."""
    like = parameter.detach()
    return {"step": torch.zeros(()), "exp_avg": like, "exp_avg_sq": like}


def _kind(value: Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"


class Diverged(ValueError):  # noqa: N818
    """The loss is no number any more; nothing of it is saved."""


def check_loss(
    state: TrainingState[Model], recipe: Optimisation, loss: float, norm: Tensor | None = None
) -> None:
    """Raise Diverged where the loss a token, or the gradient's norm, has left the numbers."""
    fine = loss < MOST_NATS and (norm is None or bool(norm.isfinite()))
    if not fine:
        what = f"the loss is {loss:.3g}" if not loss < MOST_NATS else f"the gradient is {norm:.3g}"
        raise Diverged(
            f"training diverged after {state.position.updates} updates: {what}. The last "
            f"checkpoint is kept; begin again in another folder with a smaller learning rate (it "
            f"was {recipe.learning_rate:g}), a warmup, or a smaller clip"
        )


def set_learning_rate(optimizer: torch.optim.Optimizer, recipe: Optimisation, done: float) -> None:
    """The learning rate after a share of the run."""
    factor = 1.0
    if done < recipe.warmup:
        factor = (done + 1e-3) / (recipe.warmup + 1e-3)
    elif recipe.schedule == "cosine":
        left = (done - recipe.warmup) / (1 - recipe.warmup)
        factor = 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * left))
    for group in optimizer.param_groups:
        group["lr"] = recipe.learning_rate * factor * group.get("rate", 1.0)


@torch.no_grad()
def update_ema(state: TrainingState[Model], recipe: Optimisation) -> None:
    """Move the EMA toward the current weights, with a smaller decay at the beginning."""
    if state.ema:
        updates = state.position.updates
        decay = min(recipe.average, updates / (updates + 10))
        weights = dict(state.model.named_parameters())
        torch._foreach_lerp_(list(state.ema.values()), [weights[n] for n in state.ema], 1 - decay)


@contextmanager
def ema_weights(state: TrainingState[Model]) -> Iterator[None]:
    """The EMA in the place of the model's weights, where the recipe keeps one."""
    if not state.ema:
        yield
        return
    weights = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    _set_weights(state, state.ema)
    try:
        yield
    finally:
        _set_weights(state, weights)


@torch.no_grad()
def _set_weights(state: TrainingState[Model], weights: dict[str, Tensor]) -> None:
    parameters = dict(state.model.named_parameters())
    for name, value in weights.items():
        parameters[name].copy_(value)


def initial_model(config: TrainConfig, vocabulary: Vocabulary) -> DynamicTextModel:
    """A new model, with what pretraining hands over and the weights of `start_from` it shares.

    What pretraining hands over to stay as it is, `start_from` does not change.
    """
    generator = torch.Generator().manual_seed(config.seed)
    try:
        model = DynamicTextModel(config.model, generator)
    except RuntimeError as error:
        if "alloc" not in str(error):
            raise
        count = parameter_count(config.model)
        raise ValueError(f"a model of {count:,} numbers does not fit into memory") from None
    if config.pretrained:
        pretrained = PretrainedEncoder.load(best_of(config.pretrained))
        pretrained.hand_over(model, vocabulary)
        if config.training.freeze_encoder:
            model.freeze_encoder(merging=pretrained.merging == config.model.merging)
    if config.vectors:
        vectors = WordVectors.read(config.vectors, vocabulary)
        begin_with(model.x.weight, vectors, vocabulary)
        # Logits that begin small, as after pretraining; a tied table too is an output layer
        begin_with(model.output.y.weight, vectors, vocabulary, length=1.0)
    if config.start_from:
        _copy(model, vocabulary, config.start_from)
    _freeze(model, config.training.freeze)
    return model


def with_source_counts(
    config: TrainConfig, model: DynamicTextModel, vocabulary: Vocabulary
) -> Vocabulary:
    """The vocabulary with the counts of the text from which its words have their embeddings.

    That is the dataset's, or where the words are frozen the text of the model they come from.
    """
    if config.start_from is None or model.x.weight.requires_grad:
        return vocabulary
    path = best_of(folder_of(config.start_from)) / VOCABULARY
    source = Vocabulary.load(path, entities=vocabulary.entities)
    return vocabulary if source.counts is None else replace(vocabulary, counts=source.counts)


def _freeze(model: DynamicTextModel, parts: Sequence[str]) -> None:
    """Freeze the parameters of these parts; ValueError where there is none, or nothing is left."""
    # A tied table has two names.
    named = dict(model.named_parameters(remove_duplicate=False))
    for part in parts:
        own = [p for name, p in named.items() if name == part or name.startswith(f"{part}.")]
        if not own:
            known = ", ".join(sorted({name.split(".")[0] for name in named}))
            raise ValueError(
                f"freeze is {part!r}, which this model does not have: expected {known}"
            )
        for parameter in own:
            parameter.requires_grad = False
    if not any(parameter.requires_grad for parameter in named.values()):
        raise ValueError(f"freeze is {', '.join(parts)}: nothing is left to train")


def _copy(model: DynamicTextModel, vocabulary: Vocabulary, source: Path) -> None:
    folder = best_of(folder_of(source))
    trained, words = from_pretrained(folder)
    if words != vocabulary:
        raise ValueError(f"{folder} has another vocabulary than the dataset: cannot start from it")
    # Unlike `named_parameters` this names a tied table twice, as x and as y.
    weights = trained.state_dict()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in weights or not parameter.requires_grad:
                continue
            if weights[name].shape != parameter.shape:
                raise ValueError(
                    f"{folder}: {name} has shape {tuple(weights[name].shape)}, "
                    f"expected {tuple(parameter.shape)}"
                )
            parameter.copy_(weights[name])
