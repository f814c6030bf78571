"""The neural cache of Grave et al. (2017): what a document said in like moments, said again.

    p_cache(w_{t+1}) ~ sum over i < t with w_{i+1} = w of exp(theta h_t . h_i + kappa [w_i = w_t])
    p(w_{t+1})       = (1 - lambda) p_model(w_{t+1}) + lambda p_cache(w_{t+1})

Grave et al. have kappa = 0. With kappa > 0, the *own cache*, what followed the very token just read
counts exp(kappa) times as much: after an entity what was said of *this* entity before.

Both are distributions over the rows of the vocabulary, so their mixture is one. `history` says
which tokens take part; where there are none p is p_model.

Departure: the paper has no cache. It is off unless asked for (`dntm evaluate --cache`).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.files import write_text
from dntm.model.fast.window import Window
from dntm.model.history import History, Mixture, look_back
from dntm.settings import read_json

THETAS = (0.0, *(2.0 ** (k / 2) for k in range(-10, 13)))
"""Among which `tune` looks for theta, from flat to sharp."""
KAPPAS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
"""The same for kappa."""


T = TypeVar("T", bound="Tuned")
C = TypeVar("C", bound="Cache")


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """Numbers that are tuned for a trained model, and lie beside its weights."""

    FILE: ClassVar[str]

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
                raise ValueError(f"{name} is {value!r}, expected at least 0")

    def save(self, folder: Path) -> None:
        """Write it beside the checkpoint in this folder."""
        write_text(folder / self.FILE, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls: type[T], folder: Path) -> T | None:
        """What a checkpoint carries; None where it has none."""
        path = folder / cls.FILE
        if not path.is_file():
            return None
        try:
            return cls(**read_json(path))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} does not hold what was tuned: {error}") from None

    @classmethod
    def ready(cls: type[T], folder: Path, tune: Callable[[], T]) -> T:
        """What a checkpoint carries, tuned and put there first where it has none."""
        found = cls.load(folder)
        if found is None:
            found = tune()
            found.save(folder)
        return found


@dataclass(frozen=True, kw_only=True)
class Cache(Tuned):
    """How the cache is mixed in."""

    FILE = "cache.json"
    theta: float
    """How much likelier the words of like moments are; 0: all words that were said count alike."""
    weight: float
    """lambda: the share of the cache."""
    kappa: float = 0.0
    """How much likelier, in nats, is what followed the very token just read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight > 1:
            raise ValueError(f"weight is {self.weight}, expected at most 1")


@dataclass(frozen=True, kw_only=True)
class OwnCache(Cache):
    """The cache in which each token has its own: kappa is tuned, too."""

    FILE = "own_cache.json"


CACHES: dict[str, type[Cache]] = {"cache": Cache, "own cache": OwnCache}
"""By what tables call them."""


def mixture(
    cache: Cache,
    window: Window,
    before: Sequence[History],
    h: Float[Tensor, "places hidden_dim"],
    positions: Int[np.ndarray, " positions"],
) -> Mixture:
    """Look up what came after moments like these; positions are rising, in reading order."""
    parts = []
    for found in look_back(window, before, h, positions):
        at = torch.from_numpy(window.layout.read[positions[found.chosen]]).to(h.device)
        likely = found.likeness(cache.theta * h[at])
        if cache.kappa:
            likely.index_put_(found.same(), likely.new_tensor(cache.kappa), accumulate=True)
        # Where nothing was said no token has a share.
        shares = likely.masked_fill(found.hidden, -torch.inf).softmax(1).nan_to_num(0.0)
        parts.append((shares, found.said))
    said = torch.cat([shares.sum(1) > 0 for shares, _ in parts])
    weight = torch.where(said, h.new_tensor(cache.weight), 0)
    return Mixture(tuple(parts), weight.log(), torch.log1p(-weight))


def tune(
    scores: Sequence[Float[np.ndarray, " _"]], histories: Sequence[History], kind: type[C]
) -> C:
    """The setting under which some documents are likeliest, from the model's log-probability of
    each of their tokens and what they have said by their ends.

    Each theta and kappa have one best weight, since the likelihood is concave in it; kappa rises
    until the likelihood falls, and for each kappa theta moves from where it was best before as long
    as the likelihood rises.
    """
    model = np.concatenate([found[1:] for found in scores])  # of the first token nothing is said

    def tried(number: int, kappa: float) -> tuple[float, C]:
        theta = THETAS[number]
        cached = np.concatenate([_recalled(history, theta, kappa) for history in histories])
        weight = best_weight(model, cached)
        likelihood = np.log((1 - weight) * np.exp(model) + weight * cached).sum()
        numbers = {"theta": theta, "weight": weight, "kappa": kappa}
        return float(likelihood), kind(**{name: round(n, 4) for name, n in numbers.items()})

    number, (most, best) = 0, tried(0, 0.0)
    for kappa in KAPPAS if kind is OwnCache else (0.0,):
        here, setting = (most, best) if kappa == 0 else tried(number, kappa)
        for step in (1, -1):
            while 0 <= number + step < len(THETAS):
                there, other = tried(number + step, kappa)
                if there <= here:
                    break
                here, setting, number = there, other, number + step
        if kappa and here <= most:
            break
        most, best = here, setting
    return best


def best_weight(model: Float[np.ndarray, " tokens"], cached: Float[np.ndarray, " tokens"]) -> float:
    """The weight of the likeliest mixture, of the model's log-probabilities and the cache's
    probabilities, by bisection.
    """
    ratio = cached * np.exp(-model)
    low, high = 0.0, 1.0
    for _ in range(40):
        weight = (low + high) / 2
        if ((ratio - 1) / (1 - weight + weight * ratio)).sum() > 0:
            low = weight
        else:
            high = weight
    return low


def _recalled(history: History, theta: float, kappa: float) -> Float[np.ndarray, " _"]:
    """p_cache of every token of a document but its first."""
    keys = torch.cat([h for h, _ in history.parts]).double()
    labels = np.concatenate([rows for _, rows in history.parts], axis=1)
    said, read = torch.from_numpy(labels).to(keys.device)
    later = torch.ones(len(said), len(said), dtype=torch.bool, device=keys.device).triu()
    logits = theta * keys @ keys.t()
    if kappa:
        logits.add_(read == read.unsqueeze(1), alpha=kappa)
    shares = logits.masked_fill_(later, -torch.inf)[1:].softmax(1)
    found: Float[np.ndarray, " _"] = (
        torch.where(said == said[1:].unsqueeze(1), shares, 0).sum(1).cpu().numpy()
    )
    return found
