"""Pretraining: embeddings and context encoder by filling gaps (Section 5.1).

Every update reads a batch of sentences, hides each of their words in turn and tells it from words
drawn at random; see `dntm.model.sentence_completion`. Held-out sentences are scored at intervals;
`dntm train --pretrained` uses the weights at the end.

`pretrain_run` is a generator like `train_run`, and resumes with identical bits. The text is
encoded once, into the run folder. `fit_bag` fits a baseline of the encoder.

Departure: the paper names an optimiser only for the language model; here pretraining uses the same
Adam and the same gradient clipping.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import files_below
from dntm.corpus.token_store import TokenStore, build_store
from dntm.corpus.vectors import WordVectors
from dntm.corpus.vocabulary import entity_rows
from dntm.evaluation.ranks import recover
from dntm.model.checkpoint import best_of, from_pretrained, is_language_model
from dntm.model.extensions.naming import nameable, naming_term
from dntm.model.pretrained_encoder import NAMING, PretrainedEncoder, begin_with, log_share
from dntm.model.sentence_completion import GapNaming, SentenceCompletion
from dntm.training.batches import (
    NamingBatch,
    Negatives,
    SentenceBatch,
    SentenceBatches,
    WordsToName,
    sentence_batch,
)
from dntm.training.config import PretrainConfig, PretrainRecipe
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
    set_learning_rate,
    update_ema,
)

VALIDATION_SENTENCES = 1000
BAG_UPDATES, BAG_BATCH, BAG_NEGATIVES, BAG_RATE = 2000, 128, 5, 3e-3
"""How the bag of context is fitted; with 256 units it takes about two minutes on one core."""


@dataclass(frozen=True, kw_only=True)
class PretrainProgress:
    """The position of a run."""

    iteration: int
    """Updates done."""
    words: int = 0
    """Words hidden since the last progress."""
    loss: float = 0.0
    """The objective summed over them."""
    validation: dict[str, Any] | None = None
    """After a validation, recall and mean reciprocal rank on held-out sentences."""


def pretrain_run(
    config: PretrainConfig,
    *,
    resume: bool = False,
    device: Device = "auto",
    reading: Callable[[int], object] = lambda _: None,
) -> Generator[PretrainProgress, None, None]:
    """Pretrain as configured, into `config.output_dir`.

    `reading` is called with the number of words while the text is read.
    """
    with processes(device) as group, RunFolder.exclusive(config.output_dir, group) as folder:
        if group.is_first:
            _begin(config, folder, resume=resume, progress=reading)
        group.wait()
        store = TokenStore.open(folder.path / "text")
        state = _start(config, store, group)
        if group.is_first:
            folder.restore(state)
        else:
            folder.load(state)
        with stop_signals() as stopped:
            yield from _train(state, _Run(config, folder, store, group), stopped)
        if group.is_first:
            _export(state, folder, config, store)


def _start(
    config: PretrainConfig, store: TokenStore, group: Processes
) -> TrainingState[SentenceCompletion]:
    generator = torch.Generator().manual_seed(config.seed)
    sizes = config.model
    shape = (len(store.vocabulary), sizes.embedding_dim, sizes.encoder_dim, generator)
    model = (
        GapNaming(*shape, context_dim=sizes.context_dim, merging=sizes.merging)
        if config.training.objective == "naming"
        else SentenceCompletion(*shape)
    )
    if config.start_from:
        _copy_weights(model, store, config.start_from)
    elif config.vectors:
        begin_with(model.x, WordVectors.read(config.vectors, store.vocabulary), store.vocabulary)
    return TrainingState.start(model.to(group.device), config.training, config.seed)


def _copy_weights(model: SentenceCompletion, store: TokenStore, source: Path) -> None:
    """Start from another pretraining, or from a language model that names hidden words.

    Of a language model only the encoder is trained, so that the model can use it again.
    """
    folder = best_of(source)
    if is_language_model(folder):
        if getattr(model, "merging", None) is not None:
            raise ValueError(
                f"{source} has a merging function of its own: expected no model.merging"
            )
        weights, words = _of_language_model(folder)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith("encoder."))
    else:
        given = PretrainedEncoder.load(folder)
        weights, words = SentenceCompletion.of(given).state_dict(), given.vocabulary.words
    if words != store.vocabulary.words:
        raise ValueError(f"{source} has other words than the text: cannot start from it")
    found = {name: value.shape for name, value in weights.items()}
    expected = {name: value.shape for name, value in model.state_dict().items()}
    if found != expected:
        odd = sorted(set(found.items()) ^ set(expected.items()))[0][0]
        raise ValueError(f"{source} has another objective or size: {odd} differs")
    model.load_state_dict(weights)


def _of_language_model(folder: Path) -> tuple[dict[str, Tensor], Sequence[str]]:
    """The weights of a language model, as a model that names gaps has them, and its words."""
    trained, vocabulary = from_pretrained(folder)
    encoder, naming = trained.memory.encoder, naming_term(trained.terms)
    if encoder is None or naming is None or trained.x.W_dx is None:
        raise ValueError(f"{folder} does not name hidden words: cannot start from it")
    x, entities = trained.x.weight.detach(), entity_rows(vocabulary.entities)
    weights = {f"encoder.{n}": v for n, v in encoder.state_dict().items()}
    weights["x"] = torch.cat((x[: entities.start], x[entities.stop :]))
    weights |= {"W_dx": trained.x.W_dx.detach(), "b": x[entities].mean(0)}
    return weights | {"naming.s": naming.s.detach()}, vocabulary.words


def _export(
    state: TrainingState[SentenceCompletion],
    folder: RunFolder,
    config: PretrainConfig,
    store: TokenStore,
) -> None:
    """Write the encoder and the embeddings for `dntm train`, and the results."""
    model = state.model
    with ema_weights(state):
        encoder = {n: p.detach().clone() for n, p in model.encoder.named_parameters()}
        x = model.x.detach().clone()
        learned = dict(model.named_parameters())
        naming = {name: learned[name].detach().clone() for name in NAMING if name in learned}
        merging = {n: p.detach().clone() for n, p in learned.items() if n.startswith("merging.")}
    share = Negatives.smoothed(store.counts, config.training.smoothing).share
    drawn = torch.from_numpy(share).float()
    PretrainedEncoder(
        store.vocabulary, x, encoder, drawn, naming | merging, config.model.merging
    ).save(folder.best)
    metrics = folder.metrics.read_text(encoding="utf-8").splitlines()
    folder.write_results({"settings": asdict(config.training), "validations": len(metrics)})


def _begin(
    config: PretrainConfig,
    folder: RunFolder,
    *,
    resume: bool,
    progress: Callable[[int], object],
) -> None:
    """Begin the run and encode the text, unless an interrupted run has done so."""
    words = Dataset.open(config.dataset).vocabulary.words if config.dataset else ()
    files = [f for source in config.text for f in _files(source)]
    folder.begin(config, resume=resume)
    target = folder.path / "text"
    if not (target / "text.json").exists():
        vectors = WordVectors.read(config.vectors) if config.vectors else None
        build_store(files, target, config.store, words=words, vectors=vectors, progress=progress)


def _files(source: Path) -> list[Path]:
    return [Path("/dev/stdin")] if str(source) == "-" else files_below(source)


@dataclass(frozen=True)
class _Run:
    """What stays the same through a run."""

    config: PretrainConfig
    folder: RunFolder
    store: TokenStore
    group: Processes


def _train(
    state: TrainingState[SentenceCompletion], run: _Run, stopped: list[int]
) -> Iterator[PretrainProgress]:
    config, store, group = run.config, run.store, run.group
    recipe, position = config.training, state.position
    step = group.share_gradients(state.model)
    batches = SentenceBatches(store, recipe.batch, seed=config.seed).numbers(position.updates)
    batch_of = _batches(recipe, store)
    due = {-(-recipe.iterations * (i + 1) // recipe.validations) for i in range(recipe.validations)}
    saved = time.monotonic()
    while position.updates < recipe.iterations:
        random = np.random.default_rng([config.seed, position.updates, recipe.negatives])
        batch = batch_of(next(batches), random)
        set_learning_rate(state.optimizer, recipe, position.updates / recipe.iterations)
        loss = pretrain_batch(state, batch, recipe, step, group)
        total, stops = group.totals([loss, len(stopped)])
        position.tokens += batch.words
        position.nats += total
        yield PretrainProgress(iteration=position.updates, words=batch.words, loss=total)
        found = None
        if position.updates in due and group.is_first:
            found = _validate(state, run.folder, store, recipe)
        if found:
            yield PretrainProgress(iteration=position.updates, validation=found)
        if group.is_first and (stops or time.monotonic() - saved > CHECKPOINT_SECONDS):
            run.folder.save(state)
            saved = time.monotonic()
        if stops:
            raise Interrupted
    if group.is_first:
        run.folder.save(state)


def _batches(
    recipe: PretrainRecipe, store: TokenStore
) -> Callable[[Int[np.ndarray, " sentences"], np.random.Generator], SentenceBatch | NamingBatch]:
    """A function that makes the batches of the objective from sentence numbers."""
    if recipe.objective == "naming":
        to_name = WordsToName(store.counts, nameable(store.vocabulary), recipe.subsample)
        return lambda numbers, random: to_name.batch(
            store.sentences(numbers), recipe.candidates, random, hide=recipe.hide
        )
    negatives = Negatives.smoothed(store.counts, recipe.smoothing)
    return lambda numbers, random: sentence_batch(
        store, numbers, negatives, recipe.negatives, random
    )


def pretrain_batch(
    state: TrainingState[SentenceCompletion],
    batch: SentenceBatch | NamingBatch,
    recipe: PretrainRecipe,
    step: nn.Module,
    group: Processes,
) -> float:
    """Make one update; return the loss summed over this process's words."""
    mine = batch.share(group.rank, group.count)
    loss = step(*mine.inputs)
    state.optimizer.zero_grad()
    (loss * (group.count / max(batch.words, 1))).backward()
    norm = nn.utils.clip_grad_norm_(state.model.parameters(), recipe.clip)
    check_loss(state, recipe, float(loss.item()) / max(mine.words, 1), norm)
    state.optimizer.step()
    state.position.updates += 1
    update_ema(state, recipe)
    return float(loss.item())


def _validate(
    state: TrainingState[SentenceCompletion],
    folder: RunFolder,
    store: TokenStore,
    recipe: PretrainRecipe,
) -> dict[str, Any] | None:
    """Score held-out sentences and append the metrics; None if no word is held out."""
    position = state.position
    position.validations += 1
    share = Negatives.smoothed(store.counts, recipe.smoothing).share
    bias = log_share(torch.from_numpy(share)).float()
    sentences = store.sample_held_out(VALIDATION_SENTENCES)
    answers = None
    if isinstance(state.model, GapNaming):
        bias, answers = torch.zeros_like(bias), nameable(store.vocabulary)
    with ema_weights(state):
        model = state.model
        recovery = recover(sentences, model.contexts, model.compared(), bias, answers)
    found = asdict(recovery) if recovery.cases else None
    folder.append(
        {
            "validation": position.validations,
            "updates": position.updates,
            "loss": position.nats / position.tokens if position.tokens else None,
            "held_out": found,
        }
    )
    position.nats, position.tokens = 0.0, 0
    return found


class BagOfContext(nn.Module):
    """Baseline of the encoder: it sees the words around a gap but not their order.

        x_hat_e = W mean(x_c over the other words c of the sentence) + b

    W and b are fitted with the objective of pretraining; the embeddings are the encoder's and are
    not trained. So it measures what word order adds, given these embeddings.
    """

    def __init__(self, x: Float[Tensor, "vocabulary dim"]) -> None:
        super().__init__()
        dim = x.shape[1]
        self.x = x
        self.W = nn.Parameter(torch.eye(dim))
        self.b = nn.Parameter(torch.zeros(dim))

    def contexts(self, sentences: Sequence[Int[np.ndarray, " _"]]) -> Float[Tensor, "words dim"]:
        """The x_hat of every word's gap, in reading order; b for the only word of a sentence."""
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        words = self.x.index_select(0, torch.from_numpy(np.concatenate(sentences)))
        which = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        total = words.new_zeros(len(lengths), words.shape[1]).index_add_(0, which, words)
        others = (lengths - 1).clamp(min=1)[which].unsqueeze(1)
        mean = (total.index_select(0, which) - words) / others
        return torch.addmm(self.b, mean, self.W.t())


def fit_bag(
    x: Float[Tensor, "vocabulary dim"],
    store: TokenStore,
    share: Float[Tensor, " vocabulary"],
    *,
    seed: int = 1,
) -> BagOfContext:
    """Fit the baseline to the training sentences of pretraining.

    `share` is the probability of each row to be drawn as a negative sample.
    """
    bag = BagOfContext(x)
    adam = torch.optim.Adam(bag.parameters(), lr=BAG_RATE)
    negatives = Negatives(share.numpy().astype(np.float64))
    batches = SentenceBatches(store, BAG_BATCH, seed=seed).numbers()
    random = np.random.default_rng(seed)
    for done, numbers in zip(range(BAG_UPDATES), batches, strict=False):
        batch = sentence_batch(store, numbers, negatives, BAG_NEGATIVES, random)
        x_hat = bag.contexts(batch.sentences)
        words = np.concatenate(batch.sentences)[:, None]
        rows = torch.from_numpy(np.concatenate((words, batch.negatives), 1))
        logits = torch.einsum("wnd,wd->wn", nn.functional.embedding(rows, x), x_hat)
        sign = torch.ones(1 + BAG_NEGATIVES)
        sign[0] = -1
        adam.zero_grad()
        (nn.functional.softplus(sign * logits).sum() / batch.words).backward()  # type: ignore[no-untyped-call]
        for group in adam.param_groups:
            group["lr"] = BAG_RATE * (1 - done / BAG_UPDATES)
        adam.step()
    return bag.requires_grad_(requires_grad=False)
