"""Runs of a study: build the dataset, pretrain, train each model, score the test split.

Every step leaves complete files or none. A repeated run continues after the last complete step, and
training continues from its latest checkpoint with identical results. Dataset and pretraining are
shared by all runs: the first process makes them, the others wait. Locks end with their process.

`run_all` starts each run as a process, `dntm reproduce --output-dir STUDY --run NAME`, with its
messages in log.txt of its run folder. Runs that another process works on, here or on another
machine, are left to that process. When the study ends early, its processes save their state and
end, too.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dntm.corpus.dataset import Dataset
from dntm.corpus.dataset_builder import build_dataset
from dntm.corpus.storyworld import build_storyworld
from dntm.evaluation.cloze import ClozeRecords, ClozeText
from dntm.evaluation.records import records_of
from dntm.files import is_locked, locked, new_folder
from dntm.model.baselines.neural_cache import NeuralCache
from dntm.model.baselines.ngram import NGram
from dntm.model.scorer import LanguageModel, Scorer
from dntm.settings import cut
from dntm.study.config import CLOZE, MODELS, RECORDS, RESULTS, StudyConfig, StudyFolder, StudyRun
from dntm.training.config import EncoderConfig, PretrainConfig, TrainConfig
from dntm.training.language_modeling import train_run
from dntm.training.pretraining import pretrain_run
from dntm.training.processes import device_of, matmul_precision
from dntm.training.run_folder import RunFolder, Session

Log = Callable[[str], None]
PARENT = "DNTM_STUDY_PROCESS"
"""Environment variable with the process that started a run."""


def run_one(folder: StudyFolder, config: StudyConfig, run: StudyRun, log: Log) -> None:
    """Do the remaining steps of a run."""
    dataset = ensure_dataset(folder, config, log)
    ensure_pretraining(folder, config, log)
    if run.model.base:
        run_one(folder, config, StudyRun(MODELS[run.model.base], run.seed), log)
    with locked(folder.lock(run.name), lambda: log(f"{run.name}: another process runs it")):
        if folder.finished(run):
            return
        path = folder.run(run)
        session = Session(path / "machine.json", torch.get_num_threads())
        session.note()
        if run.model.kind == "trained" and not (path / RESULTS).exists():
            for name in (RECORDS, CLOZE):  # of weights that were not final
                (path / name).unlink(missing_ok=True)
            settings = train_config(folder, config, run)
            for progress in train_run(settings, resume=(path / "config.yaml").exists()):
                if progress.validation:
                    session.note()
                    done = f"batch {progress.done} of {progress.total}"
                    log(f"{run.name}: {done}, dev perplexity {progress.validation['all']:.1f}")
        with matmul_precision(config.training.matmul_precision):
            _score(folder, run, dataset)
        session.note()
        log(f"{run.name}: finished")


def ensure_dataset(folder: StudyFolder, config: StudyConfig, log: Log) -> Dataset:
    """Open the dataset of the study; build it if it does not exist."""
    if not folder.dataset.exists():
        with locked(folder.lock("dataset"), lambda: log("another process builds the dataset")):
            if not folder.dataset.exists():
                log(f"building the dataset from {config.corpus}")
                _build(folder.dataset, config)
    dataset = Dataset.open(folder.dataset)
    if missing := [split for split in ("train", "dev", "test") if split not in dataset.splits]:
        raise ValueError(f"{folder.dataset} has no documents in {', '.join(missing)}")
    return dataset


def ensure_pretraining(folder: StudyFolder, config: StudyConfig, log: Log) -> None:
    """Pretrain the context encoder if the study has text for it and that is not done."""
    results = folder.pretraining / RESULTS
    if not config.text or results.exists():
        return
    with locked(folder.lock("pretraining"), lambda: log("another process pretrains the encoder")):
        if results.exists():
            return
        log(f"pretraining the encoder on {', '.join(config.text)}")
        settings = pretrain_config(folder, config)
        session = Session(folder.pretraining / "machine.json", torch.get_num_threads())
        session.note()
        for progress in pretrain_run(settings, resume=True):
            if progress.validation:
                session.note()
                recall = progress.validation["recall"][10]
                done = f"update {progress.done} of {progress.total}"
                log(f"pretraining: {done}, recall at 10 of hidden words {recall:.3f}")
        session.note()


def pretrain_config(folder: StudyFolder, config: StudyConfig) -> PretrainConfig:
    """The settings of the pretraining; its sizes are the model's."""
    sizes = config.model
    return PretrainConfig(
        text=tuple(map(Path, config.text)),
        output_dir=folder.pretraining.resolve(),
        dataset=folder.dataset.resolve(),
        store=config.store,
        model=EncoderConfig(embedding_dim=sizes.embedding_dim, encoder_dim=sizes.encoder_dim),
        training=config.pretraining,
    )


def train_config(folder: StudyFolder, config: StudyConfig, run: StudyRun) -> TrainConfig:
    """The settings of a training run, with absolute paths."""
    pretrained = Path(config.pretrained) if config.pretrained else None
    return TrainConfig(
        dataset=folder.dataset.resolve(),
        output_dir=folder.run(run).resolve(),
        seed=run.seed,
        pretrained=folder.pretraining.resolve() if config.text else pretrained,
        model=run.model.config(config.model),
        training=replace(config.training, exchange_memories=run.model.exchange_memories),
    )


def _build(target: Path, config: StudyConfig) -> None:
    source = Path(config.corpus)
    if config.corpus == "storyworld":
        build_storyworld(target, seed=config.reading.seed)
    elif (source / "dataset.json").is_file():
        Dataset.open(source)
        with new_folder(target) as copy:
            shutil.copytree(source, copy, dirs_exist_ok=True)
    else:
        build_dataset(config.corpus, target, config.reading, config.build, given=config.given)


def _score(folder: StudyFolder, run: StudyRun, dataset: Dataset) -> None:
    """Write the missing results on the test split."""
    path, documents = folder.run(run), list(dataset.documents("test"))
    model, sizes = _load(folder, run, dataset)
    if not (path / RESULTS).exists():
        RunFolder(path).write_results({"parameters": sizes, "splits": {}})
    if not (path / RECORDS).exists():
        records_of(model, documents).write(path / RECORDS)
    if run.model.letter and not (path / CLOZE).exists():
        assert isinstance(model, Scorer)
        texts = [ClozeText.of(document) for document in documents]
        ClozeRecords.of(texts, model.complete(texts)).write(path / CLOZE)


def _load(
    folder: StudyFolder, run: StudyRun, dataset: Dataset
) -> tuple[LanguageModel, dict[str, int]]:
    """The model of a run and its number of parameters."""
    if run.model.kind == "n-gram":
        counted = NGram.of(dataset.documents("train"), dataset.vocabulary)
        return counted, {"total": counted.parameters, "finetuned": counted.parameters}
    trained = folder.run(StudyRun(MODELS[run.model.base or run.model.name], run.seed))
    scorer, sizes = Scorer.load(trained), RunFolder(trained).read_results()["parameters"]
    scorer.model.to(device_of("auto"))
    scorer.model.exchange_memories = run.model.exchange_memories
    if run.model.kind == "cache":
        return NeuralCache.tune(scorer, dataset.documents("dev")), sizes
    return scorer, sizes


def run_command(folder: StudyFolder, run: StudyRun) -> list[str]:
    """The command that executes one run."""
    place = str(folder.path.resolve())
    return [sys.executable, "-m", "dntm", "reproduce", "--output-dir", place, "--run", run.name]


def run_all(
    folder: StudyFolder, runs: Sequence[StudyRun], *, jobs: int, threads: int, log: Log
) -> None:
    """Execute all unfinished runs, `jobs` at a time with `threads` threads each."""
    waiting = [run for run in runs if not folder.finished(run)]
    running: dict[StudyRun, subprocess.Popen[bytes]] = {}
    failed: list[StudyRun] = []
    finished = len(runs) - len(waiting)
    try:
        while waiting or running:
            ended = [run for run, process in running.items() if process.poll() is not None]
            elsewhere = [run for run in waiting if folder.finished(run)]
            waiting = [run for run in waiting if run not in elsewhere]
            for run in (*ended, *elsewhere):
                process = running.pop(run, None)
                if process and process.returncode:
                    failed.append(run)
                    line = _last_line(folder.run(run) / "log.txt", process.returncode)
                    log(f"{run.name} failed: {line}")
                    continue
                finished += 1
                log(f"run {finished} of {len(runs)} finished: {run.name}")
            free = [run for run in waiting if not is_locked(folder.lock(run.name))]
            for run in free[: jobs - len(running)]:
                running[run] = _start(folder, run, threads)
                waiting.remove(run)
            time.sleep(0.2)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    if failed:
        logs = ", ".join(str(folder.run(run) / "log.txt") for run in failed)
        raise ValueError(f"{len(failed)} of {len(runs)} runs failed: see {logs}")


def _start(folder: StudyFolder, run: StudyRun, threads: int) -> subprocess.Popen[bytes]:
    log = folder.run(run) / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            run_command(folder, run),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, PARENT: str(os.getpid()), "OMP_NUM_THREADS": str(threads)},
            process_group=0,  # Ctrl-C reaches only the study, which then ends its runs
        )


def end_with_parent() -> None:
    """In a process that a study started: end when the study is killed (Linux only)."""
    parent = os.environ.get(PARENT)
    if parent is None or sys.platform != "linux":
        return
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    if os.getppid() != int(parent):
        sys.exit(143)


def _last_line(log: Path, code: int) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return cut(lines[-1], 1000) if lines else f"exit code {code}"
