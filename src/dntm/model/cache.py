"""The neural cache of Grave et al. (2017): what a document said in like moments, said again.

    p_cache(w_{t+1}) ~ sum over i < t with w_{i+1} = w of exp(theta h_t . h_i + kappa [w_i = w_t])
    p(w_{t+1})       = (1 - lambda) p_model(w_{t+1}) + lambda p_cache(w_{t+1})

Grave et al. have kappa = 0. With kappa > 0, the *own cache*, what followed the very token just read
counts exp(kappa) times as much: after an entity what was said of *this* entity before.

Both are distributions over the rows of the vocabulary, so their mixture is one. Every predicted
token so far takes part, <eos> too, up to the last `SIZE` of a document; each document begins with
an empty cache, and where it is empty p is p_model.

An entity is a row like any other, and what was said of it counts for it: where its row is lent to
another one (`corpus.rows`), its tokens are left out until it has a row again.

Departure: the paper has no cache. It is off unless asked for (`dntm evaluate --cache`).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dntm.corpus.vocabulary import row_of_entity
from dntm.files import write_text
from dntm.model.fast.window import Window
from dntm.settings import read_json

SIZE = 10_000
"""How many tokens of a document are remembered."""
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


class History(NamedTuple):
    """What one document has said: each predicted token with the h and the token before it."""

    parts: tuple[tuple[Float[Tensor, "_ hidden_dim"], Int[np.ndarray, "2 _"]], ...] = ()
    """A part a window, which later histories share: h, and the rows of the predicted token and of
    the one before it; -e for an entity e whose row another one has."""

    def and_then(
        self, h: Float[Tensor, "tokens hidden_dim"], rows: Int[np.ndarray, "2 tokens"]
    ) -> "History":
        """The history after these tokens; parts too long ago are forgotten."""
        parts = (*self.parts, (h, rows))
        sizes = [len(h) for h, _ in parts]
        later = np.cumsum(sizes[::-1])[::-1] - sizes
        return History(tuple(part for part, n in zip(parts, later, strict=True) if n < SIZE))


def remember(
    window: Window, before: Sequence[History], h: Float[Tensor, "places hidden_dim"]
) -> tuple[History, ...]:
    """The history of each document after a window."""
    found = []
    for number, history in enumerate(before):
        own, rows = _said(window, number)
        if not len(own):
            found.append(history)
            continue
        parts = history.parts
        if any(change.document == number for change in window.changes):
            *_, (_, labels) = _labels(window, number, history, own, rows)
            ends = np.cumsum([len(key) for key, _ in parts], dtype=np.int64)
            *earlier, rows = np.split(labels, ends, axis=1)
            parts = tuple((key, said) for (key, _), said in zip(parts, earlier, strict=True))
        keys = h.detach()[torch.from_numpy(window.layout.read[own]).to(h.device)]
        found.append(History(parts).and_then(keys, rows))
    return tuple(found)


def _said(
    window: Window, document: int
) -> tuple[Int[np.ndarray, " own"], Int[np.ndarray, "2 own"]]:
    """Positions before the tokens that a document predicts in a window; their rows and those of
    the tokens at these positions.
    """
    layout = window.layout
    inside = np.flatnonzero(layout.document[layout.sentence[layout.predicting]] == document)
    own = layout.predicting[inside]
    return own, np.stack([layout.targets[inside], layout.tokens[layout.read[own]]])


def _labels(
    window: Window,
    document: int,
    history: History,
    own: Int[np.ndarray, " own"],
    rows: Int[np.ndarray, "2 own"],
) -> Iterator[tuple[int, Int[np.ndarray, "2 said"]]]:
    """Whose is what was said: the rows from a position on, once more each time that one is lent.

    What the former owner said has no row from then on, what the new one said before has again.
    """
    labels = np.concatenate([*(part for _, part in history.parts), rows], axis=1)
    yield 0, labels
    for change in window.changes:
        if change.document == document:
            row = row_of_entity(change.row + 1)
            # Predicted tokens up to the change, and tokens up to it that were read.
            until = [[np.sum(own < change.token)], [np.sum(own <= change.token)]]
            past = np.arange(labels.shape[1]) < labels.shape[1] - len(own) + np.array(until)
            lost = np.where(past & (labels == row), -change.former, labels)
            labels = np.where(labels == -change.entity, row, lost)
            yield change.token, labels


class Recall(NamedTuple):
    """The cache at some positions of a window."""

    parts: tuple[tuple[Float[Tensor, "_ said"], Int[Tensor, " said"]], ...]
    """The share of every token said, and these tokens' rows; negative ones have no share."""
    said: Tensor
    """Whether anything was said before each position."""
    weight: float

    @classmethod
    def at(
        cls,
        cache: Cache,
        window: Window,
        before: Sequence[History],
        h: Float[Tensor, "places hidden_dim"],
        positions: Int[np.ndarray, " positions"],
    ) -> "Recall":
        """Look up what came after moments like these; positions are rising, in reading order."""
        found = tuple(_shares(cache, window, before, h, positions))
        said = torch.cat([shares.sum(1) > 0 for shares, _ in found])
        return cls(found, said, cache.weight)

    def score(
        self, log_p: Float[Tensor, " positions"], targets: Int[Tensor, " positions"]
    ) -> Float[Tensor, " positions"]:
        """The mixture's log-probability of each target, of which the model says log_p."""
        wanted = torch.split(targets, [len(shares) for shares, _ in self.parts])
        cached = [
            torch.where(rows == own.unsqueeze(1), shares, 0).sum(1)
            for (shares, rows), own in zip(self.parts, wanted, strict=True)
        ]
        return self._mixed(log_p, torch.cat(cached), self.said)

    def distribution(
        self, log_p: Float[Tensor, "positions vocabulary"]
    ) -> Float[Tensor, "positions vocabulary"]:
        """The mixture's log-probability of every row."""
        cached = [
            shares.new_zeros(len(shares), log_p.shape[1]).index_add(1, rows.clamp(min=0), shares)
            for shares, rows in self.parts
        ]
        return self._mixed(log_p, torch.cat(cached), self.said.unsqueeze(1))

    def _mixed(self, log_p: Tensor, cached: Tensor, said: Tensor) -> Tensor:
        weight = log_p.new_tensor(self.weight)
        both = torch.logaddexp(log_p + torch.log1p(-weight), cached.log() + weight.log())
        return torch.where(said, both, log_p)


def _shares(
    cache: Cache,
    window: Window,
    before: Sequence[History],
    h: Float[Tensor, "places hidden_dim"],
    positions: Int[np.ndarray, " positions"],
) -> Iterator[tuple[Float[Tensor, "_ said"], Int[Tensor, " said"]]]:
    """p_cache of every token said: one document after the other, cut where rows are lent."""
    layout = window.layout
    document = layout.document[layout.sentence[positions]]
    for number in np.unique(document).tolist():
        own, rows = _said(window, number)
        at, history = positions[document == number], before[number]
        queries, said = (h[torch.from_numpy(layout.read[p]).to(h.device)] for p in (at, own))
        logits = cache.theta * queries @ torch.cat([*(key for key, _ in history.parts), said]).t()
        # A token may be recalled from the moment on at which it has been read itself.
        seen = logits.shape[1] - len(own) + np.searchsorted(own + 1, at, side="right")[:, None]
        place = np.arange(logits.shape[1])
        out = (place >= seen) | (place < seen - SIZE)
        found = list(_labels(window, number, history, own, rows))
        cuts = np.searchsorted(at, [start for start, _ in found[1:]])
        for (_, labels), part in zip(found, np.split(np.arange(len(at)), cuts), strict=True):
            said, read = labels
            likely = logits[part]
            if cache.kappa:
                now = layout.tokens[layout.read[at[part]]]
                likely = likely + cache.kappa * torch.from_numpy(read == now[:, None]).to(likely)
            hidden = torch.from_numpy(out[part] | (said < 0)).to(h.device)
            # Where nothing was said no token has a share.
            shares = likely.masked_fill(hidden, -torch.inf).softmax(1).nan_to_num(0.0)
            yield shares, torch.from_numpy(said).to(h.device)


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
