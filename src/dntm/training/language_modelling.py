"""Language modelling: truncated backpropagation through documents (Section 5.1).

Eight documents are read side by side. After every 20 sentences, and at their end, the mean
surprisal of the tokens predicted since then is backpropagated, the gradient's norm is cut to 1 and
Adam makes one update; the states of LSTM and memory are carried on without their gradients.
Twice an epoch the validation split is scored, and the best weights are kept.

`train_run` is a generator: it yields its progress and leaves showing it to the caller. Nothing
that it writes depends on when it was interrupted: a resumed run ends with the same bits.

Departure: the paper does not say how documents of a batch weigh that end earlier; here every token
predicted since the last update weighs the same.
"""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.groups import as_plain, score_groups
from dntm.evaluation.scoring import TextModel
from dntm.model.checkpoint import save_pretrained
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.reading_state import ReadingState
from dntm.schedule import Stretch
from dntm.training.batches import (
    EncodedDocument,
    epoch_batches,
    stretches,
    tokens_of_stretches,
)
from dntm.training.config import TrainConfig
from dntm.training.initial import initial_model
from dntm.training.processes import Processes, processes
from dntm.training.recipe import Recipe
from dntm.training.run_folder import RunFolder
from dntm.training.signals import CHECKPOINT_SECONDS, Interrupted, stop_signals
from dntm.training.state import TrainingState, average, averaged, set_learning_rate


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands."""

    batch: int
    """Batches done, of the whole run."""
    batches: int
    tokens: int = 0
    """Tokens predicted since the last progress."""
    nats: float = 0.0
    """Their surprisal."""
    validation: dict[str, float] | None = None
    """Perplexity of each token group on the dev split, right after a validation."""


def train_run(config: TrainConfig, *, resume: bool = False) -> Generator[Progress, None, None]:
    """Train as configured, into `config.output_dir`."""
    dataset = Dataset.open(config.dataset)
    config = config.for_vocabulary(dataset.vocabulary)
    texts = _Texts.of(dataset)
    with processes() as group:
        model = initial_model(config, dataset.vocabulary).to(group.device)
        state = TrainingState.start(model, config.training, config.seed)
        folder = RunFolder(config.output_dir)
        if group.is_first:
            folder = RunFolder.resume(config) if resume else RunFolder.begin(config)
            folder.restore(state)
        group.wait()
        if not group.is_first:
            folder.load(state)
        with stop_signals() as stopped:
            yield from _train(state, _Run(config, folder, texts, group), stopped)
        if group.is_first:
            folder.write_results(_results(folder, dataset))


@dataclass(frozen=True)
class _Texts:
    """What a run reads."""

    vocabulary: Vocabulary
    train: Sequence[EncodedDocument]
    dev: Sequence[AnonymizedDocument]

    @classmethod
    def of(cls, dataset: Dataset) -> "_Texts":
        vocabulary = dataset.vocabulary
        train = [
            [vocabulary.encode(sentence) for sentence in document.sentences]
            for document in dataset.documents("train")
        ]
        dev = list(dataset.documents("dev"))
        if not train or not dev:
            raise ValueError(f"{dataset.folder} has no documents in its train or dev split")
        return cls(vocabulary, train, dev)


@dataclass(frozen=True)
class _Run:
    """What stays the same through a run."""

    config: TrainConfig
    folder: RunFolder
    texts: _Texts
    group: Processes


def _train(
    state: TrainingState[DynamicTextModel], run: _Run, stopped: list[int]
) -> Iterator[Progress]:
    config, group, train = run.config, run.group, run.texts.train
    recipe, position = config.training, state.position
    step = group.share_gradients(StretchLoss(state.model))
    saved = time.monotonic()
    per_epoch = -(-len(train) // recipe.batch)
    due = {-(-per_epoch * (i + 1) // recipe.validations) for i in range(recipe.validations)}
    total = per_epoch * recipe.epochs
    while position.epoch < recipe.epochs:
        batches = epoch_batches(len(train), recipe.batch, seed=config.seed, epoch=position.epoch)
        while position.batch < len(batches):
            documents = [train[d] for d in batches[position.batch]]
            done = position.epoch * per_epoch + position.batch
            set_learning_rate(state.optimizer, recipe, done / total)
            state.draw_anew(config.seed, done, group.rank)
            tokens, nats = train_batch(state, documents, recipe, step, group)
            nats, stops = group.totals([nats, len(stopped)])
            position.batch += 1
            position.tokens += tokens
            position.nats += nats
            yield Progress(batch=done + 1, batches=total, tokens=tokens, nats=nats)
            if position.batch in due and group.is_first:
                perplexities = _validate(state, run.folder, run.texts)
                yield Progress(batch=done + 1, batches=total, validation=perplexities)
            if group.is_first and (stops or time.monotonic() - saved > CHECKPOINT_SECONDS):
                run.folder.save(state)
                saved = time.monotonic()
            if stops:
                raise Interrupted
        position.epoch, position.batch = position.epoch + 1, 0
    if group.is_first:
        run.folder.save(state)


class StretchLoss(nn.Module):
    """The loss of a stretch, as a module whose gradients processes can share."""

    def __init__(self, model: DynamicTextModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, stretch: Stretch | None, reading: ReadingState, generator: torch.Generator
    ) -> tuple[Tensor, ReadingState]:
        """Sum of nats and the state after the stretch; zero without a stretch."""
        if stretch is None:
            return self.model.x.weight.sum() * 0, reading
        nats, _, after = self.model.loss(stretch, reading, generator=generator)
        return nats, after.detach()


def train_batch(
    state: TrainingState[DynamicTextModel],
    documents: Sequence[EncodedDocument],
    recipe: Recipe,
    step: nn.Module,
    group: Processes,
) -> tuple[int, float]:
    """Read a batch of documents to their ends, with an update every few sentences.

    Returns how many tokens all processes predicted, and the surprisal of this one's.
    """
    model = state.model
    model.train()
    nats = 0.0
    counts = tokens_of_stretches(documents, recipe.truncation)
    mine = documents[group.rank :: group.count]
    pieces = stretches(mine, recipe.truncation)
    reading = model.initial_state(len(mine))
    for count in counts:
        piece = next(pieces, None)
        stretch = None
        if piece is not None:
            sentences, goes_on, kept = piece
            stretch, reading = model.plan(sentences, goes_on), reading.select(kept)
        loss, reading = step(stretch, reading, state.generator)
        state.optimizer.zero_grad()
        (loss * (group.count / count)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        state.optimizer.step()
        state.position.updates += 1
        average(state, recipe)
        nats += loss.item()
    return sum(counts), nats


def _validate(
    state: TrainingState[DynamicTextModel], folder: RunFolder, texts: _Texts
) -> dict[str, float]:
    """Score the dev split, note it, and keep the weights if they are the best so far."""
    position = state.position
    position.validations += 1
    with averaged(state):
        records = TextModel(state.model, texts.vocabulary).records(texts.dev)
        perplexities = {g: score.perplexity for g, score in score_groups(records).items()}
        is_best = perplexities["all"] < position.best
        if is_best:
            position.best = perplexities["all"]
            save_pretrained(state.model, texts.vocabulary, folder.best)
    folder.append(
        {
            "validation": position.validations,
            "epoch": position.epoch,
            "batch": position.batch,
            "updates": position.updates,
            "train": math.exp(position.nats / position.tokens),
            "dev": perplexities,
            "best": is_best,
        }
    )
    position.nats, position.tokens = 0.0, 0
    return perplexities


def _results(folder: RunFolder, dataset: Dataset) -> dict[str, Any]:
    """The best weights' perplexities on the dev and test splits, and the model's size."""
    best = TextModel.load(folder.best)
    config = best.model.config
    return {
        "parameters": {
            "total": parameter_count(config),
            "finetuned": parameter_count(config, finetuned=True),
        },
        "splits": {
            split: as_plain(score_groups(best.records(list(dataset.documents(split)))))
            for split in dataset.splits
            if split != "train"
        },
    }
