"""TrainingState: what a run carries from one update to the next.

It holds weights, Adam's moments, the EMA of the weights, the generator of dropout, the position in
the data and the sums not yet reported. A run that restores it continues as if never interrupted.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from dntm.settings import shown
from dntm.training.config import Optimisation

Model = TypeVar("Model", bound=nn.Module)
MAX_NATS = 700.0
"""A loss per token above this has a perplexity that overflows."""

EMBEDDINGS = ("x", "x.weight")
"""Names of the input embeddings, in pretraining and in the language model."""


@dataclass
class Position:
    """The position of a run."""

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
        """Check what was read from JSON; ValueError if it is not a position."""
        names = [field.name for field in fields(cls)]
        if odd := sorted(set(names) ^ set(numbers)):
            raise ValueError(f"missing or unknown numbers: {shown(', '.join(odd))}")
        for name in names:
            value, whole = numbers[name], name not in ("nats", "best")
            if type(value) is not int and (whole or type(value) is not float):
                raise ValueError(f"{name} is {shown(value)}, expected a number")
            if not value >= 0:
                raise ValueError(f"{name} is {shown(value)}, expected at least 0")
        if not numbers["nats"] <= MAX_NATS * numbers["tokens"]:
            nats = shown(numbers["nats"])
            raise ValueError(f"nats is {nats}, expected at most {MAX_NATS:g} per token")
        return cls(**numbers)


@dataclass
class TrainingState(Generic[Model]):
    """Weights, optimiser, EMA of the weights, generator and position."""

    model: Model
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    ema: dict[str, Tensor]
    """EMA of the weights by name; empty if the recipe has none."""
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
            # No weight decay: it would pull word vectors away from their initial values.
            groups.append({"params": slow, "weight_decay": 0.0, "rate": recipe.embedding_rate})
        kind = torch.optim.AdamW if recipe.weight_decay else torch.optim.Adam
        optimizer = kind(groups, lr=recipe.learning_rate, fused=True)
        ema = {}
        if recipe.average:
            ema = {name: p.detach().clone() for name, p in model.named_parameters()}
        generator = torch.Generator(learned[0].device).manual_seed(seed)
        return cls(model, optimizer, generator, ema)

    def reseed(self, *numbers: int) -> None:
        """Seed the generator of dropout with these numbers."""
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
        """Restore a saved state; ValueError if it belongs to another model or is damaged."""
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
        _check_like(tensors, expected)
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
    """Adam's state of a parameter."""
    like = parameter.detach()
    return {"step": torch.zeros(()), "exp_avg": like, "exp_avg_sq": like}


def _check_like(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """ValueError if names, shapes or types differ, or numbers are not finite."""
    if odd := sorted(expected.keys() ^ tensors.keys()):
        raise ValueError(f"the checkpoint is of another model: {odd[0]} is in only one of them")
    for name, value in expected.items():
        if (tensors[name].shape, tensors[name].dtype) != (value.shape, value.dtype):
            raise ValueError(
                f"{name} is {_kind(tensors[name])} in the checkpoint, expected {_kind(value)}"
            )
        if value.is_floating_point() and not bool(tensors[name].isfinite().all()):
            raise ValueError(f"{name} holds NaN or infinite numbers")


def _kind(value: Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"


class Diverged(ValueError):  # noqa: N818
    """The loss is not finite; nothing of it is saved."""


def check_loss(
    state: TrainingState[Model], recipe: Optimisation, loss: float, norm: Tensor | None = None
) -> None:
    """Raise Diverged if the loss per token or the norm of the gradient is not finite."""
    fine = loss < MAX_NATS and (norm is None or bool(norm.isfinite()))
    if not fine:
        what = f"the loss is {loss:.3g}" if not loss < MAX_NATS else f"the gradient is {norm:.3g}"
        raise Diverged(
            f"training diverged after {state.position.updates} updates: {what}. The last "
            f"checkpoint is kept; start again in another folder with a smaller learning rate (it "
            f"was {recipe.learning_rate:g}), a warmup, or a smaller clip"
        )


def set_learning_rate(optimizer: torch.optim.Optimizer, recipe: Optimisation, done: float) -> None:
    """Set the learning rate after a share `done` of the run."""
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
    """Update the EMA with the current weights; the decay is smaller at the beginning."""
    if state.ema:
        updates = state.position.updates
        decay = min(recipe.average, updates / (updates + 10))
        weights = dict(state.model.named_parameters())
        torch._foreach_lerp_(list(state.ema.values()), [weights[n] for n in state.ema], 1 - decay)


@contextmanager
def ema_weights(state: TrainingState[Model]) -> Iterator[None]:
    """Use the EMA as the model's weights inside the block, if there is one."""
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
