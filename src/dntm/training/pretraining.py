"""Pretraining: embeddings and context encoder by filling gaps (Section 5.1).

Every update reads a batch of sentences, hides each of their words in turn and learns to
distinguish it from words drawn at random; see `dntm.model.sentence_completion`. Held-out sentences
are scored at intervals; `dntm train --pretrained` uses the weights at the end.

`pretrain_run` is a generator like `train_run`, and resumes with identical bits. The text is
encoded once, into the run folder.

Departure: the paper names an optimizer only for the language model; here pretraining uses the same
Adam and the same gradient clipping.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import files_below
from dntm.corpus.token_store import TokenStore, build_store
from dntm.corpus.vectors import WordVectors
from dntm.evaluation.ranks import recover
from dntm.model.extensions.naming import held_out_types, nameable
from dntm.model.pretrained_encoder import PretrainedEncoder
from dntm.model.sentence_completion import GapNaming, SentenceCompletion
from dntm.training import batches
from dntm.training.config import PretrainConfig
from dntm.training.initial_weights import initial_encoder
from dntm.training.processes import Device, Processes, matmul_precision, processes, stop_signals
from dntm.training.run_folder import RunFolder
from dntm.training.state import Progress, TrainingState

VALIDATION_SENTENCES = 1000


def pretrain_run(
    config: PretrainConfig,
    *,
    resume: bool = False,
    device: Device = "auto",
    reading: Callable[[int], object] = lambda _: None,
) -> Generator[Progress, None, None]:
    """Pretrain as configured, into `config.output_dir`.

    `reading` is called with the number of words while the text is read.
    """
    with processes(device) as group, RunFolder.exclusive(config.output_dir, group) as folder:
        if group.is_first:
            _begin(config, folder, resume=resume, progress=reading)
        group.wait()
        store = TokenStore.open(folder.path / "text")
        model = initial_encoder(config, store).to(group.device)
        state = TrainingState.start(model, config.training, config.seed)
        folder.restore(state)
        run = _Run(config, folder, store, group)
        with stop_signals() as stopped:
            yield from _train(state, run, stopped)
        if group.is_first:
            with state.ema_weights():
                PretrainedEncoder(store.vocabulary, state.model).save(folder.best)
            settings = asdict(config.training)
            folder.write_results({"settings": settings, "validations": state.position.validations})


def _begin(
    config: PretrainConfig, folder: RunFolder, *, resume: bool, progress: Callable[[int], object]
) -> None:
    """Begin the run and encode the text, unless an interrupted run has done so."""
    words = Dataset.open(config.dataset).vocabulary.words if config.dataset else ()
    files = [
        file
        for source in config.text
        for file in ([Path("/dev/stdin")] if str(source) == "-" else files_below(source))
    ]
    folder.begin(config, resume=resume)
    target = folder.path / "text"
    if not (target / "text.json").exists():
        vectors = WordVectors.read(config.vectors) if config.vectors else None
        build_store(files, target, config.store, words=words, vectors=vectors, progress=progress)


@dataclass(frozen=True)
class _Run:
    """What stays the same through a run."""

    config: PretrainConfig
    folder: RunFolder
    store: TokenStore
    group: Processes


def _train(
    state: TrainingState[SentenceCompletion], run: _Run, stopped: list[int]
) -> Iterator[Progress]:
    config, store, group = run.config, run.store, run.group
    recipe, position = config.training, state.position
    step = group.share_gradients(state.model)
    batch_of = _batches(config, store, position.updates)
    due = {-(-recipe.iterations * (i + 1) // recipe.validations) for i in range(recipe.validations)}
    while position.updates < recipe.iterations:
        random = np.random.default_rng([config.seed, position.updates, recipe.negatives])
        batch = batch_of(random)
        state.set_learning_rate(position.updates / recipe.iterations)
        with matmul_precision(recipe.matmul_precision):
            loss = step(*batch.share(group.rank, group.count))
            own = state.update(loss, max(batch.words, 1), processes=group.count)
        total, stops = group.totals([own, len(stopped)])
        position.tokens += batch.words
        position.nats += total
        done, count = position.updates, recipe.iterations
        yield Progress(done=done, total=count, tokens=batch.words, loss=total)
        if done in due and group.is_first and (found := _validate(state, run)):
            yield Progress(done=done, total=count, validation=found)
        run.folder.save_if_due(state, stop=stops > 0)
    run.folder.save(state)


def _batches(
    config: PretrainConfig, store: TokenStore, start: int
) -> Callable[[np.random.Generator], batches.SentenceBatch | batches.NamingBatch]:
    """A function that makes the next batch of the objective, from batch `start` on."""
    recipe = config.training
    to_name = nameable(store.vocabulary) & ~held_out_types(store.vocabulary)
    if recipe.objective == "naming" and recipe.mentions:
        return batches.WordsByType(store, to_name, recipe).batch
    numbers = batches.SentenceBatches(store, recipe.batch, seed=config.seed).numbers(start)
    if recipe.objective == "naming":
        words = batches.WordsToName(store.counts, to_name, recipe.subsample)
        return lambda random: words.batch(
            store.sentences(next(numbers)), recipe.candidates, random, hide=recipe.hide
        )
    negatives = batches.Negatives.smoothed(store.counts, recipe.smoothing)

    def batch(random: np.random.Generator) -> batches.SentenceBatch:
        sentences = store.sentences(next(numbers))
        drawn = negatives.draw(sum(map(len, sentences)), recipe.negatives, random)
        return batches.SentenceBatch(sentences, drawn)

    return batch


def _validate(state: TrainingState[SentenceCompletion], run: _Run) -> dict[str, Any] | None:
    """Score held-out sentences and append the metrics; None if no word is held out."""
    position, store = state.position, run.store
    position.validations += 1
    share = batches.Negatives.smoothed(store.counts, run.config.training.smoothing).share
    # Words that are never drawn rank last, with a finite value.
    bias = (torch.from_numpy(share) + 1e-12).log().float()
    sentences = store.sample_held_out(VALIDATION_SENTENCES)
    answers = None
    if isinstance(state.model, GapNaming):
        bias, answers = torch.zeros_like(bias), nameable(store.vocabulary)
    with state.ema_weights():
        model = state.model
        recovery = recover(sentences, model.contexts, model.compared(), bias, answers)
    found = asdict(recovery) if recovery.cases else None
    run.folder.append(
        {
            "validation": position.validations,
            "updates": position.updates,
            "loss": position.nats / position.tokens if position.tokens else None,
            "held_out": found,
        }
    )
    position.nats, position.tokens = 0.0, 0
    return found
