"""How long a study will take, by a short trial of its models and of its pretraining."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from dntm.corpus.dataset import Dataset
from dntm.experiments.study import Cell, StudyConfig, StudyFolder
from dntm.study.jobs import share_done
from dntm.study.stages import pretraining_is_due
from dntm.study.trial import estimate, letters_of, measure, pretraining_seconds, work

Estimates = dict[str, float]
"""Seconds of one cell, by the model's letter."""


def try_models(
    folder: StudyFolder, config: StudyConfig, dataset: Dataset, left: list[Cell], *, threads: int
) -> Estimates:
    """Try each kind of model in a process of its own, print how fast it is."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        speeds = pool.submit(measure, folder, config, letters_of(left), threads).result()
    needed = work(dataset, config)
    for letter, speed in speeds.items():
        print(
            f"trial of {letter}: {speed.trained:,.0f} tokens/s trained, {speed.scored:,.0f} "
            f"scored, {speed.gaps:,.0f} gaps/s, with {threads} thread{'s' if threads > 1 else ''}"
        )
    return {letter: estimate(speed, needed) for letter, speed in speeds.items()}


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
    each = [estimates[c.model.letter] * (1 - share_done(folder, config, c)) for c in left]
    total = first + max([sum(each) / jobs, *each])
    singles = ", ".join(f"{letter} {_time(seconds)}" for letter, seconds in estimates.items())
    side = f", {jobs} side by side" if jobs > 1 else ""
    before = f"pretraining: {_time(first)}; " if first else ""
    return f"estimate: about {_time(total)} for {len(left)} runs{side} ({before}a run: {singles})"


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
