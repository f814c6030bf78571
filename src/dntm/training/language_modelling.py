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
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.vocabulary import Vocabulary
from dntm.evaluation.groups import as_plain, score_groups
from dntm.model.checkpoint import save_pretrained
from dntm.model.fast.window import Window, windows
from dntm.model.kneser_ney import KneserNey
from dntm.model.language_model import DynamicTextModel, parameter_count
from dntm.model.naming import nameable
from dntm.model.reading_state import ReadingState
from dntm.model.text_model import TextModel
from dntm.training.batches import epoch_batches, tokens_of_windows
from dntm.training.config import Recipe, TrainConfig
from dntm.training.hidden_words import HiddenDocument, Hiding, TrainingDocument, answers_of
from dntm.training.processes import (
    CHECKPOINT_SECONDS,
    Device,
    Interrupted,
    Processes,
    processes,
    stop_signals,
)
from dntm.training.run_folder import RunFolder
from dntm.training.state import (
    TrainingState,
    check_loss,
    ema_weights,
    initial_model,
    set_learning_rate,
    update_ema,
    with_source_counts,
)


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


def train_run(
    config: TrainConfig,
    *,
    resume: bool = False,
    device: Device = "auto",
    keep_records: Sequence[str] = (),
) -> Generator[Progress, None, None]:
    """Train as configured, into `config.output_dir`.

    The best weights are scored at the end; of the splits in `keep_records` the record of every
    predicted token stays in the run folder, as records-SPLIT.csv.
    """
    dataset = Dataset.open(config.dataset).check_content()
    config = config.for_vocabulary(dataset.vocabulary)
    if config.model.kind == "kneser-ney":
        _count(config, dataset, keep_records, resume=resume)
        return
    texts = _Texts.of(dataset)
    with processes(device) as group, RunFolder.of_one(config.output_dir, group) as folder:
        model = initial_model(config, dataset.vocabulary).to(group.device)
        words = with_source_counts(config, model, texts.vocabulary)
        state = TrainingState.start(model, config.training, config.seed)
        if group.is_first:
            folder.begin(config, resume=resume)
            folder.restore(state)
        group.wait()
        if not group.is_first:
            folder.load(state)
        with stop_signals() as stopped:
            yield from _train(
                state, _Run(config, folder, replace(texts, vocabulary=words), group), stopped
            )
        if group.is_first:
            _hand_in(folder, dataset, model, keep_records)


def _count(
    config: TrainConfig, dataset: Dataset, keep_records: Sequence[str], *, resume: bool
) -> None:
    """Make an n-gram model, which learns by counting."""
    with processes("cpu") as group, RunFolder.of_one(config.output_dir, group) as folder:
        if group.is_first:
            folder.begin(config, resume=resume)
            model = KneserNey.of(dataset.documents("train"), dataset.vocabulary)
            model.save(folder.best)
            sizes = {"total": model.parameters, "finetuned": model.parameters}
            _write_results(folder, dataset, model, sizes, keep_records)


@dataclass(frozen=True)
class _Texts:
    """What a run reads."""

    vocabulary: Vocabulary
    train: Sequence[TrainingDocument]
    dev: Sequence[AnonymizedDocument]

    @classmethod
    def of(cls, dataset: Dataset) -> "_Texts":
        vocabulary = dataset.vocabulary
        answers = nameable(vocabulary)
        train = [
            TrainingDocument.of(document, vocabulary, answers)
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
    step = group.share_gradients(WindowLoss(state.model, recipe))
    hiding = Hiding.of(recipe, run.texts.vocabulary)
    saved = time.monotonic()
    per_epoch = -(-len(train) // recipe.batch)
    due = {-(-per_epoch * (i + 1) // recipe.validations) for i in range(recipe.validations)}
    total = per_epoch * recipe.epochs
    while position.epoch < recipe.epochs:
        batches = epoch_batches(len(train), recipe.batch, seed=config.seed, epoch=position.epoch)
        while position.batch < len(batches):
            documents = [
                hiding(train[d], np.random.default_rng([config.seed, position.epoch, d]))
                for d in batches[position.batch]
            ]
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
                perplexities = _validate(state, recipe, run.folder, run.texts)
                yield Progress(batch=done + 1, batches=total, validation=perplexities)
            if group.is_first and (stops or time.monotonic() - saved > CHECKPOINT_SECONDS):
                run.folder.save(state)
                saved = time.monotonic()
            if stops:
                raise Interrupted
        position.epoch, position.batch = position.epoch + 1, 0
    if group.is_first:
        run.folder.save(state)


class WindowLoss(nn.Module):
    """The loss of a BPTT window, as a module whose gradients processes can share."""

    def __init__(self, model: DynamicTextModel, recipe: Recipe) -> None:
        super().__init__()
        self.model, self.recipe = model, recipe

    def forward(
        self,
        window: Window | None,
        reading: ReadingState,
        generator: torch.Generator,
        answers: Int[np.ndarray, " merges"] | None = None,
    ) -> tuple[Tensor, Tensor, ReadingState]:
        """What to minimise, the sum of nats, and the state after the window; 0 without one."""
        if window is None:
            zero = self._zero()
            return zero, zero.detach(), reading
        nats, named, after = self.model.losses(
            window, reading, generator, sample=self.recipe.output_sample, answers=answers
        )
        loss = nats + self.recipe.naming_weight * named
        # What learns may have no part in a window, such as a merging function where nobody is met.
        loss = loss if loss.requires_grad else loss + self._zero()
        return loss, nats.detach(), after.detach()

    def _zero(self) -> Tensor:
        """Nothing, with the gradient of nothing for whatever learns."""
        learned = [p.sum() for p in self.model.parameters() if p.requires_grad]
        return torch.stack(learned).sum() * 0


def train_batch(
    state: TrainingState[DynamicTextModel],
    documents: Sequence[HiddenDocument],
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
    counts = tokens_of_windows([document.sentences for document in documents], recipe.truncation)
    mine = documents[group.rank :: group.count]
    texts = windows(
        [document.sentences for document in mine],
        recipe.truncation,
        [document.loans for document in mine],
    )
    reading = model.initial_state(len(mine))
    for number, count in enumerate(counts):
        window = answers = None
        if (text := next(texts, None)) is not None:
            window = model.plan(
                text.sentences,
                text.continues,
                loans=text.loans,
                every_context=model.naming is not None,
            )
            reading = reading.select(text.kept)
            start = number * recipe.truncation
            beside = [mine[d].answers[start : start + recipe.truncation] for d in text.documents]
            answers = answers_of(window.merges, beside)
        loss, surprisal, reading = step(window, reading, state.generator, answers)
        state.optimizer.zero_grad()
        (loss * (group.count / count)).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        check_loss(state, recipe, loss.item() / count, norm)
        state.optimizer.step()
        state.position.updates += 1
        update_ema(state, recipe)
        nats += surprisal.item()
    return sum(counts), nats


def _validate(
    state: TrainingState[DynamicTextModel], recipe: Recipe, folder: RunFolder, texts: _Texts
) -> dict[str, float]:
    """Score the dev split, note it, and keep the weights if they are the best so far."""
    position = state.position
    position.validations += 1
    with ema_weights(state):
        records = TextModel(state.model, texts.vocabulary).records(texts.dev)
        scores = score_groups(records)
        check_loss(state, recipe, scores["all"].nats / scores["all"].tokens)
        perplexities = {g: score.perplexity for g, score in scores.items()}
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


def _hand_in(
    folder: RunFolder, dataset: Dataset, trained: DynamicTextModel, keep_records: Sequence[str]
) -> None:
    """Write the best weights' perplexities on the dev and test splits, and the model's size."""
    best = TextModel.load(folder.best)
    best.model.to(next(trained.parameters()).device)
    sizes = {
        "total": parameter_count(best.model.config),
        "finetuned": sum(p.numel() for p in trained.parameters() if p.requires_grad),
    }
    _write_results(folder, dataset, best, sizes, keep_records)


def _write_results(
    folder: RunFolder,
    dataset: Dataset,
    best: TextModel | KneserNey,
    sizes: dict[str, int],
    keep_records: Sequence[str],
) -> None:
    kept, splits = [], {}
    for split in (split for split in dataset.splits if split != "train"):
        records = best.records(list(dataset.documents(split)))
        splits[split] = as_plain(score_groups(records))
        if split in keep_records:
            kept.append(folder.path / f"records-{split}.csv")
            records.write(kept[-1])
    folder.write_results({"parameters": sizes, "splits": splits}, keep=kept)
