"""TrainingState: what a run carries from one update to the next.

It holds weights, Adam's moments, the EMA of the weights, the position in the data and the sums not
yet reported. A run that restores it continues as if never interrupted.
"""

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from dntm.training.config import Optimization

Model = TypeVar("Model", bound=nn.Module)
MAX_NATS = 700.0
"""A loss per token above this has a perplexity that overflows."""

EMBEDDINGS = ("x", "x.weight")
"""Names of the input embeddings, in pretraining and in the language model."""
WORDS = "x.words"
"""The input embeddings of words, as a part to freeze: those of entities are trained."""


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


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a run yields after every batch, and after every validation."""

    done: int
    """Batches done."""
    total: int
    """Batches of the whole run."""
    tokens: int = 0
    """Tokens predicted, or words hidden, since the last progress."""
    loss: float = 0.0
    """The loss (nats) summed over them."""
    validation: dict[str, Any] | None = None


@dataclass
class TrainingState(Generic[Model]):
    """Weights, optimizer, EMA of the weights, generator of dropout and position."""

    model: Model
    recipe: Optimization
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    """Not saved: `reseed` sets it before every batch."""
    ema: dict[str, Tensor]
    """EMA of the weights by name; empty if the recipe has none."""
    position: Position = field(default_factory=Position)

    @classmethod
    def start(
        cls, model: Model, recipe: Optimization, seed: int, frozen: Collection[str] = ()
    ) -> Self:
        """The state before the first update; parts in `frozen` may still have learned rows."""
        weights = dict(model.named_parameters())
        learned = {name: p for name, p in weights.items() if p.requires_grad}
        own_rate = EMBEDDINGS if recipe.embedding_rate != 1 or WORDS in frozen else ()
        slow = [p for name, p in learned.items() if name in own_rate]
        rest = [p for name, p in learned.items() if name not in own_rate]
        groups: list[dict[str, Any]] = [{"params": rest}]
        if recipe.weight_decay:
            groups = [
                {"params": [p for p in rest if p.dim() > 1], "weight_decay": recipe.weight_decay},
                {"params": [p for p in rest if p.dim() <= 1], "weight_decay": 0.0},
            ]
        if slow:
            # Weight decay would pull word vectors, even frozen ones, from their initial values.
            groups.append({"params": slow, "weight_decay": 0.0, "rate": recipe.embedding_rate})
        kind = torch.optim.AdamW if recipe.weight_decay else torch.optim.Adam
        optimizer = kind(groups, lr=recipe.learning_rate, fused=True)
        device = next(iter(learned.values())).device
        generator = torch.Generator(device).manual_seed(seed)
        ema = {name: p.detach().clone() for name, p in weights.items()} if recipe.average else {}
        return cls(model, recipe, optimizer, generator, ema)

    def reseed(self, *numbers: int) -> None:
        """Seed the generator of dropout with these numbers."""
        seed = np.random.SeedSequence(numbers).generate_state(1, np.uint64)
        self.generator.manual_seed(int(seed[0]) >> 1)

    def set_learning_rate(self, done: float) -> None:
        """Set the learning rate after a share `done` of the run."""
        recipe, factor = self.recipe, 1.0
        if done < recipe.warmup:
            factor = (done + 1e-3) / (recipe.warmup + 1e-3)
        elif recipe.schedule == "cosine":
            left = (done - recipe.warmup) / (1 - recipe.warmup)
            factor = 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * left))
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.learning_rate * factor * group.get("rate", 1.0)

    def update(self, loss: Tensor, tokens: int, *, processes: int) -> float:
        """Make one update with the loss summed over the `tokens` of all processes; return it."""
        self.optimizer.zero_grad()
        # DDP averages the gradients of the processes.
        (loss * (processes / tokens)).backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        total = float(loss.item())
        self.check_loss(total / tokens, norm)
        self.optimizer.step()
        self.position.updates += 1
        if self.ema:
            updates = self.position.updates
            decay = min(self.recipe.average, updates / (updates + 10))  # smaller at the beginning
            weights = dict(self.model.named_parameters())
            with torch.no_grad():
                new = tuple(weights[name] for name in self.ema)
                torch._foreach_lerp_(list(self.ema.values()), new, 1 - decay)
        return total

    def check_loss(self, loss: float, norm: Tensor | None = None) -> None:
        """Raise ValueError if the loss per token or the norm of the gradient is not finite."""
        if loss < MAX_NATS and (norm is None or bool(norm.isfinite())):
            return
        what = f"the loss is {loss:.3g}" if not loss < MAX_NATS else f"the gradient is {norm:.3g}"
        raise ValueError(
            f"training diverged after {self.position.updates} updates: {what}. The last "
            f"checkpoint is kept; start again in another folder with a smaller learning rate (it "
            f"was {self.recipe.learning_rate:g}), a warmup, or a smaller clip"
        )

    @contextmanager
    def ema_weights(self) -> Iterator[None]:
        """Use the EMA as the model's weights inside the block, if there is one."""
        if not self.ema:
            yield
            return
        weights = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        _copy(self.ema, dict(self.model.named_parameters()))
        try:
            yield
        finally:
            _copy(weights, dict(self.model.named_parameters()))

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name."""
        found = self._weights()
        for number, values in self.optimizer.state_dict()["state"].items():
            found |= {f"optimizer.{number}.{name}": value for name, value in values.items()}
        return found

    def _weights(self) -> dict[str, Tensor]:
        found = {f"model.{name}": p.detach() for name, p in self.model.named_parameters()}
        return found | {f"average.{name}": value for name, value in self.ema.items()}

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Restore a saved state; ValueError if it belongs to another model."""
        weights = self._weights()
        moments: dict[int, dict[str, Tensor]] = {}
        found: dict[str, Tensor] = {}
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, number, name = key.split(".")
                moments.setdefault(int(number), {})[name] = value
            else:
                found[key] = value
        shapes = [{(key, value.shape) for key, value in of.items()} for of in (weights, found)]
        if odd := sorted(shapes[0] ^ shapes[1]):
            raise ValueError(f"the checkpoint is of another model: {odd[0][0]} differs")
        trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        for index, values in moments.items():
            shape = trained[index].shape if index < len(trained) else None
            expected = {"step": torch.Size(()), "exp_avg": shape, "exp_avg_sq": shape}
            if {name: value.shape for name, value in values.items()} != expected:
                raise ValueError(f"the checkpoint is of another model: optimizer.{index} differs")
        _copy(found, weights)
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        self.position = Position(**numbers)


@torch.no_grad()
def _copy(source: dict[str, Tensor], target: dict[str, Tensor]) -> None:
    for name, value in source.items():
        target[name].copy_(value)
