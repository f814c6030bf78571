"""Language modelling: truncated backpropagation through documents (Section 5.1).

Eight documents are read side by side. After every 20 sentences, and at their end, the mean
surprisal of the tokens predicted since then is backpropagated, the gradient's norm is cut to 1 and
Adam makes one update; the states of LSTM and memory are carried on without their gradients.
Twice an epoch the validation split is scored, and the best weights are kept.

`train_run` is a generator: it yields its progress and leaves showing it to the caller. Nothing
that it writes depends on when it was interrupted: a resumed run ends with the same bits.
"""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.groups import as_plain, score_groups
from dntm.evaluation.scoring import TextModel
from dntm.model.checkpoint import save_pretrained
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.training.batches import EncodedDocument, epoch_batches, stretches
from dntm.training.config import TrainConfig
from dntm.training.initial import initial_model
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
    model = initial_model(config, dataset.vocabulary)
    state = TrainingState.start(model, config.training, config.seed)
    folder = RunFolder.resume(config) if resume else RunFolder.begin(config)
    folder.restore(state)
    with stop_signals() as stopped:
        yield from _train(state, folder, config, texts, stopped)
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


def _train(
    state: TrainingState[DynamicTextModel],
    folder: RunFolder,
    config: TrainConfig,
    texts: _Texts,
    stopped: list[int],
) -> Iterator[Progress]:
    recipe, position, train = config.training, state.position, texts.train
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
            tokens, nats = train_batch(state, documents, recipe)
            position.batch += 1
            position.tokens += tokens
            position.nats += nats
            yield Progress(batch=done + 1, batches=total, tokens=tokens, nats=nats)
            if position.batch in due:
                perplexities = _validate(state, folder, texts)
                yield Progress(batch=done + 1, batches=total, validation=perplexities)
            if stopped or time.monotonic() - saved > CHECKPOINT_SECONDS:
                folder.save(state)
                saved = time.monotonic()
            if stopped:
                raise Interrupted
        position.epoch, position.batch = position.epoch + 1, 0
    folder.save(state)


def train_batch(
    state: TrainingState[DynamicTextModel], documents: Sequence[EncodedDocument], recipe: Recipe
) -> tuple[int, float]:
    """Read a batch of documents to their ends, with an update every few sentences.

    Returns how many tokens were predicted and their surprisal.
    """
    model = state.model
    model.train()
    tokens, nats = 0, 0.0
    reading = model.initial_state(len(documents))
    for sentences, goes_on, kept in stretches(documents, recipe.truncation):
        reading = reading.detach().select(kept)
        loss, count, reading = model.loss(
            model.plan(sentences, goes_on), reading, generator=state.generator
        )
        state.optimizer.zero_grad()
        (loss / count).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        state.optimizer.step()
        state.position.updates += 1
        average(state, recipe)
        tokens += count
        nats += loss.item()
    return tokens, nats


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
