"""A short measured trial: how long the cells of a study will take on this machine.

For every kind of model in the plan a few batches of the real data are trained and timed, at the
study's size and with a job's share of threads, and a few documents are scored; of a pretraining
that is still to come a few updates on sentences of its text. The rest is arithmetic over the tokens
that a cell reads and the updates that pretraining makes (its text must be read, too, which is not
in the estimate). Jobs that run side by side slow each other down, and so does whatever else the
machine does: the time left is corrected as cells finish.
"""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from multiprocessing import get_context
from pathlib import Path

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.source import files_below
from dntm.corpus.token_store import read_sentences
from dntm.corpus.vocabulary import SPECIALS
from dntm.study.config import Cell, StudyConfig, StudyFolder
from dntm.study.paper import StudyModel
from dntm.study.plan import pretraining_is_due, share_done

TRIAL_BATCHES = 12
TRIAL_SECONDS = 4.0
"""How long each kind of model is tried, at most (a batch is always finished)."""
Estimates = dict[str, float]
"""Seconds of one cell, by the kind of its model."""
QUICK_SECONDS = 60.0
"""What counting, and scoring a trained model in another way, is taken for."""
SETUP_SECONDS = 6.0
"""What a cell needs to start: imports, reading the dataset, saving the weights."""


@dataclass(frozen=True)
class Speed:
    """Tokens a second of one kind of model."""

    trained: float
    scored: float
    gaps: float
    """Gaps of the cloze test a second."""


@dataclass(frozen=True)
class Work:
    """What one cell has to read."""

    trained: int
    scored: int
    gaps: int


def work(dataset: Dataset, config: StudyConfig) -> Work:
    """Tokens to train on and to score, and gaps to fill, of one cell; ends of sentences count."""
    counts = dataset.information["counts"]
    tokens = {split: counts[split]["tokens"] + counts[split]["sentences"] for split in counts}
    recipe = config.training
    return Work(
        trained=recipe.epochs * tokens["train"],
        scored=(recipe.epochs * recipe.validations + 1) * tokens["dev"] + tokens["test"],
        gaps=sum(_gaps(document) for document in dataset.documents("test")),
    )


def estimate(speed: Speed, needed: Work) -> float:
    """Seconds of one cell."""
    return (
        SETUP_SECONDS
        + needed.trained / speed.trained
        + needed.scored / speed.scored
        + needed.gaps / speed.gaps
    )


def measure(
    folder: StudyFolder, config: StudyConfig, models: Sequence[StudyModel], threads: int
) -> dict[str, Speed]:
    """Try one model of each kind; in a process of its own, which torch's threads ask for."""
    import torch

    torch.set_num_threads(threads)
    dataset = Dataset.open(folder.dataset)
    return {model.kind: _try(dataset, config, model) for model in models}


def pretraining_seconds(folder: StudyFolder, config: StudyConfig, threads: int) -> float:
    """How long the updates will take that the pretraining still has to make.

    Tried on the beginning of its text, with as many rows as its vocabulary may have.
    """
    import numpy as np
    import torch

    from dntm.model.sentence_completion import SentenceCompletion
    from dntm.training.batches import POOL, SentenceBatch
    from dntm.training.pretraining import pretrain_batch
    from dntm.training.processes import alone
    from dntm.training.run_folder import RunFolder
    from dntm.training.state import TrainingState

    torch.set_num_threads(threads)
    recipe, store, sizes = config.pretraining, config.store, config.model
    files = (path for source in config.text for path in files_below(Path(source)))
    read = chain.from_iterable(read_sentences(path, store.documents) for path in files)
    short = (len(sentence) for sentence in read if len(sentence) <= store.longest)
    lengths = sorted(islice(short, POOL * recipe.batch))
    random = np.random.default_rng(0)

    def batch(start: int) -> SentenceBatch:
        rows = [
            random.integers(len(SPECIALS), store.vocabulary_size, size=length)
            for length in lengths[start : start + recipe.batch]
        ]
        count = sum(map(len, rows)), recipe.negatives
        return SentenceBatch(
            rows, random.integers(len(SPECIALS), store.vocabulary_size, size=count)
        )

    model = SentenceCompletion(store.vocabulary_size, sizes.embedding_dim, sizes.encoder_dim)
    state = TrainingState.start(model, recipe, seed=0)
    last = max(0, len(lengths) - recipe.batch)
    starts = random.permutation(np.linspace(0, last, TRIAL_BATCHES + 1).astype(int)).tolist()
    done = (
        int(pretrain_batch(state, batch(start), recipe, model, alone()) >= 0) for start in starts
    )
    next(done)
    latest = RunFolder(folder.pretraining).latest()
    left = recipe.iterations - (int(latest.name) if latest else 0)
    return left / _rate(done)


def try_models(
    folder: StudyFolder, config: StudyConfig, left: list[Cell], *, threads: int
) -> tuple[Estimates, list[str]]:
    """How long a cell of each kind takes, and lines that say how fast each is."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        speeds = pool.submit(measure, folder, config, one_of_each_kind(left), threads).result()
    needed = work(Dataset.open(folder.dataset), config)
    lines = [
        f"trial of {kind}: {speed.trained:,.0f} tokens/s trained, {speed.scored:,.0f} "
        f"scored, {speed.gaps:,.0f} gaps/s, with {threads} thread{'s' if threads > 1 else ''}"
        for kind, speed in speeds.items()
    ]
    quick = {cell.model.kind: QUICK_SECONDS for cell in left if not _descends(cell.model)}
    return quick | {kind: estimate(speed, needed) for kind, speed in speeds.items()}, lines


def try_pretraining(folder: StudyFolder, config: StudyConfig, threads: int) -> float:
    """Seconds of the pretraining that comes before all cells; 0 where none does."""
    if not pretraining_is_due(folder, config):
        return 0.0
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(pretraining_seconds, folder, config, threads).result()


def forecast(
    folder: StudyFolder,
    config: StudyConfig,
    left: list[Cell],
    estimates: Estimates,
    *,
    jobs: int,
    first: float,
) -> str:
    """How long all of it will take; `first` are the seconds of pretraining."""
    each = [estimates[c.model.kind] * (1 - share_done(folder, config, c)) for c in left]
    total = first + max([sum(each) / jobs, *each])
    singles = ", ".join(f"{kind} {_time(seconds)}" for kind, seconds in estimates.items())
    side = f", {jobs} side by side" if jobs > 1 else ""
    before = f"pretraining: {_time(first)}; " if first else ""
    return f"estimate: about {_time(total)} for {len(left)} runs{side} ({before}a run: {singles})"


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def one_of_each_kind(cells: Iterable[Cell]) -> list[StudyModel]:
    """A model of each kind among the cells, of those that are trained by descent."""
    return list({cell.model.kind: cell.model for cell in cells if _descends(cell.model)}.values())


def _descends(model: StudyModel) -> bool:
    return not model.over and model.model_kind != "kneser-ney"


def _try(dataset: Dataset, config: StudyConfig, tried: StudyModel) -> Speed:
    import torch

    from dntm.corpus.rows import encode
    from dntm.evaluation.cloze import ClozeRecords, ClozeText
    from dntm.model.language_model import DynamicTextModel
    from dntm.model.text_model import TextModel
    from dntm.training.batches import epoch_batches
    from dntm.training.hidden_words import TrainingDocument
    from dntm.training.language_modelling import WindowLoss, train_batch
    from dntm.training.processes import alone
    from dntm.training.state import TrainingState

    vocabulary, recipe = dataset.vocabulary, config.training
    sizes = replace(
        tried.config(config.model), vocabulary=len(vocabulary), entities=vocabulary.entities
    )
    model = DynamicTextModel(sizes, torch.Generator().manual_seed(0))
    if config.begins_pretrained and recipe.freeze_encoder:
        model.freeze_encoder()
    state = TrainingState.start(model, recipe, seed=0)
    documents = [
        TrainingDocument.without_answers(rows)
        for document in islice(dataset.documents("train"), TRIAL_BATCHES * recipe.batch)
        for rows in [encode(document, vocabulary)]
    ]
    once = epoch_batches(len(documents), recipe.batch, seed=0, epoch=0)
    batches = islice(cycle(once), TRIAL_BATCHES + 1)
    step = WindowLoss(model, recipe)
    read = (
        train_batch(state, [documents[d] for d in batch], recipe, step, alone())[0]
        for batch in batches
    )
    next(read)  # the first one prepares much that the others find done
    reader = TextModel(model, vocabulary)
    sample = list(islice(dataset.documents("test"), 6))
    texts = [ClozeText.of(d) for d in sample if d.largest <= vocabulary.entities]
    return Speed(
        trained=_rate(read),
        scored=_rate(sum(map(len, found)) for found in [reader.score_all(sample)]),
        gaps=_rate(len(ClozeRecords.of(texts, found)) for found in [reader.fill_all(texts)])
        if tried.has_cloze
        else float("inf"),
    )


def _rate(amounts: Iterable[int]) -> float:
    """How much a second, over some seconds at most; the work is done as amounts are asked for."""
    start, done, seconds = time.perf_counter(), 0, 0.0
    for amount in amounts:
        done += amount
        seconds = time.perf_counter() - start
        if seconds > TRIAL_SECONDS:
            break
    return max(done, 1) / max(seconds, 1e-9)


def _gaps(document: AnonymizedDocument) -> int:
    from dntm.evaluation.cloze import ClozeText

    return len(ClozeText.of(document).gaps)
