"""Language modeling: truncated backpropagation through documents (Section 5.1).

A batch of documents is read in parallel. After every 20 sentences, and at the end of the documents,
the mean surprisal of the tokens predicted since the last update is backpropagated, the gradient's
norm is clipped to 1 and Adam makes one update; the states of LSTM and memory are detached and
carried on. The dev split is scored twice per epoch, and the best weights are kept.

`train_run` is a generator that yields its progress. A resumed run ends with the same bits as one
that was never interrupted.

Departure: the paper does not say how documents that end early are weighted. Here, every token
predicted since the last update has the same weight.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.entity_slots import DocumentRows
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import records_of
from dntm.model.checkpoint import save_pretrained
from dntm.model.fast.window import Window, windows
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.parameters import State
from dntm.model.scorer import Scorer
from dntm.model.spelling import Spelling
from dntm.model.strings import fit_pieces
from dntm.training.batches import Hiding, epoch_batches
from dntm.training.config import Recipe, TrainConfig
from dntm.training.initial_weights import fit_to_base, initial_model, with_source_counts
from dntm.training.processes import Device, Processes, matmul_precision, processes, stop_signals
from dntm.training.run_folder import RunFolder
from dntm.training.state import Progress, TrainingState


@dataclass(frozen=True)
class _Run:
    """What stays the same through a run."""

    config: TrainConfig
    folder: RunFolder
    vocabulary: Vocabulary
    train: Sequence[AnonymizedDocument]
    dev: Sequence[AnonymizedDocument]
    group: Processes


def train_run(
    config: TrainConfig, *, resume: bool = False, device: Device = "auto"
) -> Generator[Progress, None, None]:
    """Train as configured, into `config.output_dir`; the test split is not read."""
    dataset = Dataset.open(config.dataset).check_content()
    config, vocabulary = fit_to_base(config, dataset.vocabulary)
    config = config.for_vocabulary(vocabulary)
    train, dev = (list(dataset.documents(split)) for split in ("train", "dev"))
    if not train or not dev:
        raise ValueError(f"{dataset.folder} has no documents in its train or dev split")
    with processes(device) as group, RunFolder.exclusive(config.output_dir, group) as folder:
        model = initial_model(config, vocabulary).to(group.device)
        model.exchange_memories = config.training.exchange_memories
        vocabulary = with_source_counts(config, model, vocabulary)
        state = TrainingState.start(model, config.training, config.seed, config.training.freeze)
        if group.is_first:
            folder.begin(config, resume=resume)
        group.wait()
        folder.restore(state)
        run = _Run(config, folder, vocabulary, train, dev, group)
        with stop_signals() as stopped:
            yield from _train(state, run, stopped)
        if group.is_first:
            _write_results(model, run)


def _train(
    state: TrainingState[DynamicTextModel], run: _Run, stopped: list[int]
) -> Iterator[Progress]:
    config, group, position = run.config, run.group, state.position
    recipe, seed = config.training, config.seed
    step = group.share_gradients(WindowLoss(state.model, recipe))
    hiding = Hiding(recipe, run.vocabulary)
    per_epoch = -(-len(run.train) // recipe.batch)
    due = {-(-per_epoch * (i + 1) // recipe.validations) for i in range(recipe.validations)}
    total = per_epoch * recipe.epochs
    while position.epoch < recipe.epochs:
        batches = epoch_batches(len(run.train), recipe.batch, seed=seed, epoch=position.epoch)
        while position.batch < len(batches):
            documents = [
                hiding(run.train[number], np.random.default_rng([seed, position.epoch, number]))
                for number in batches[position.batch]
            ]
            done = position.epoch * per_epoch + position.batch
            state.set_learning_rate(done / total)
            state.reseed(seed, done, group.rank)
            with matmul_precision(recipe.matmul_precision):
                tokens, nats = train_batch(state, documents, recipe, step, group)
            nats, stops = group.totals([nats, len(stopped)])
            position.batch += 1
            position.tokens += tokens
            position.nats += nats
            yield Progress(done=done + 1, total=total, tokens=tokens, loss=nats)
            if position.batch in due and group.is_first:
                perplexities = _validate(state, run)
                yield Progress(done=done + 1, total=total, validation=perplexities)
            run.folder.save_if_due(state, stop=stops > 0)
        position.epoch, position.batch = position.epoch + 1, 0
    run.folder.save(state)


class WindowLoss(nn.Module):
    """The loss of a BPTT window, as a module that DDP can wrap."""

    def __init__(self, model: DynamicTextModel, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe

    def forward(
        self, window: Window | None, reading: State, generator: torch.Generator
    ) -> tuple[Tensor, State]:
        """Return the sum of nats and the next state; without a window the loss is 0."""
        if window is None:
            return self._zero(), reading
        nats, read = self.model.loss(window, reading, generator, sample=self.recipe.output_sample)
        # A window may not depend on what is trained, such as a merging function without mentions.
        return nats if nats.requires_grad else nats + self._zero(), read.after.detach()

    def _zero(self) -> Tensor:
        """Zero, with gradients of zero for every trained parameter."""
        learned = [p.sum() for p in self.model.parameters() if p.requires_grad]
        return torch.stack(learned).sum() * 0


def train_batch(
    state: TrainingState[DynamicTextModel],
    documents: Sequence[DocumentRows],
    recipe: Recipe,
    step: nn.Module,
    group: Processes,
) -> tuple[int, float]:
    """Read a batch of documents to their ends, with one update per BPTT window.

    Returns the number of tokens that all processes predicted, and the surprisal of this one's.
    """
    model = state.model
    model.train()
    nats = 0.0
    counts = [
        sum(len(sentence) - 1 for document in text.sentences for sentence in document)
        for text in windows([document.sentences for document in documents], recipe.truncation)
    ]
    mine = documents[group.rank :: group.count]
    texts = windows(
        [document.sentences for document in mine],
        recipe.truncation,
        [document.evictions for document in mine],
    )
    reading = model.initial_state(len(mine))
    for count in counts:
        window = None
        if (text := next(texts, None)) is not None:
            window = model.plan(text.sentences, text.continues, evictions=text.evictions)
            reading = reading.select(text.kept)
        loss, reading = step(window, reading, state.generator)
        nats += state.update(loss, count, processes=group.count)
    return sum(counts), nats


def _validate(state: TrainingState[DynamicTextModel], run: _Run) -> dict[str, float]:
    """Score the dev split, append the metrics, and keep the weights if they are the best."""
    position = state.position
    position.validations += 1
    with state.ema_weights(), matmul_precision(run.config.training.matmul_precision):
        scores = score_groups(records_of(Scorer(state.model, run.vocabulary), run.dev))
        state.check_loss(scores["all"]["nats"] / scores["all"]["tokens"])
        perplexities = {g: score["perplexity"] for g, score in scores.items()}
        is_best = perplexities["all"] < position.best
        if is_best:
            position.best = perplexities["all"]
            save_pretrained(state.model, run.vocabulary, run.folder.best)
    run.folder.append(
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


def _write_results(trained: DynamicTextModel, run: _Run) -> None:
    """Write the scores of the best weights on dev, the number of parameters, and the spelling."""
    best = Scorer.load(run.folder.best)
    best.model.to(run.group.device)
    if run.vocabulary.ends:
        spelling = Spelling.fit(run.train, run.dev, run.vocabulary)
    else:
        spelling = fit_pieces(best.model, run.vocabulary, run.dev)
    spelling.save(run.folder.best)
    best.model.exchange_memories = trained.exchange_memories
    sizes = {
        "total": parameter_count(best.model.config),
        "finetuned": sum(p.numel() for p in trained.parameters() if p.requires_grad),
    }
    with matmul_precision(run.config.training.matmul_precision):
        dev = score_groups(records_of(best, run.dev))
    run.folder.write_results({"parameters": sizes, "splits": {"dev": dev}})
