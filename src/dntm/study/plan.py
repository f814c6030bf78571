"""The plan of a study and how it is carried out: what its cells share, and its parts as processes.

The settings are agreed with the study's folder. All cells share the dataset and, where text was
given, the pretraining of the context encoder. Each is made by whoever comes first; the others wait
for it.

A part is a cell or the pretraining. It is a process of its own (`dntm cell STUDY NAME`), which
finds everything else in the study's own study.yaml. A cell writes its messages to its log.txt. A
cell that another process works on, here or on another machine, is left to it and looked at again
later. When the study ends early, its processes are told to save their state, and waited for.

A claim is a lock that ends with its holder (`dntm.files`).
"""

import ctypes
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset import Dataset
from dntm.corpus.dataset_builder import build_dataset
from dntm.corpus.storyworld.story import StoryworldConfig, build_storyworld
from dntm.files import is_locked, locked, new_folder, resolved, write_text
from dntm.model.config import ModelConfig
from dntm.study.config import Cell, StudyConfig, StudyFolder
from dntm.training.config import EncoderConfig, PretrainConfig, TrainConfig

Say = Callable[[str], None]
PRETRAINING = "pretraining"
"""The part of a study that comes before its cells."""
POLL_SECONDS = 0.2
END_WITH = "DNTM_END_WITH"
"""The environment variable that tells a process which other one started it for a study."""
LAST_WORDS = 1000
"""How many bytes of a failed cell's last line are shown, at most."""


def resolved_config(config: StudyConfig) -> StudyConfig:
    """The settings with paths that hold wherever a command is called, and sizes that fit."""
    corpus, text, model = config.corpus, config.text, config.model
    pretrained = config.pretrained
    if corpus not in CORPORA:
        corpus = _existing(corpus, "corpus")
    if text:
        text = tuple(_existing(path, "text") for path in text)
        if model.hidden_dim != model.embedding_dim:
            raise ValueError(
                f"model.hidden_dim is {model.hidden_dim} and model.embedding_dim "
                f"{model.embedding_dim}: pretrained embeddings go into both layers, expected the "
                "same size"
            )
        # Pretraining compares context vectors with embeddings.
        model = dataclasses.replace(model, context_dim=model.embedding_dim)
    if pretrained:
        pretrained = _existing(pretrained, "pretrained")
        model = _fitting(model, Path(pretrained))
    given = config.given
    if given is not None and Path(given).exists():
        given = str(Path(given).resolve())
    return dataclasses.replace(
        config, corpus=corpus, text=text, pretrained=pretrained, model=model, given=given
    )


def agree(folder: StudyFolder, config: StudyConfig) -> None:
    """Record the settings of a new study; refuse others than those of one that exists.

    More models may come to one that exists.
    """
    if not folder.settings.exists():
        write_text(folder.settings, config.to_yaml())
        return
    saved = StudyConfig.from_yaml(folder.settings)
    if set(saved.models) < set(config.models) and saved == dataclasses.replace(
        config, models=saved.models
    ):
        write_text(folder.settings, config.to_yaml())
    elif saved != config:
        raise ValueError(
            f"{folder.settings} holds a study with other settings ({_difference(saved, config)}): "
            "choose another --output-dir, or give the same settings"
        )


def ensure_dataset(folder: StudyFolder, config: StudyConfig, say: Say) -> Dataset:
    """Build the study's dataset unless it is there."""
    if not folder.dataset.exists():
        with locked(folder.lock("dataset"), lambda: say("the dataset is being built elsewhere")):
            if not folder.dataset.exists():
                say(f"building the dataset from {config.corpus}")
                _build(folder.dataset, config)
    dataset = Dataset.open(folder.dataset)
    if missing := [split for split in ("train", "dev", "test") if split not in dataset.splits]:
        raise ValueError(f"{folder.dataset} has no document in {', '.join(missing)}")
    return dataset


def pretraining_is_due(folder: StudyFolder, config: StudyConfig) -> bool:
    """Whether the study has text to pretrain on, and that is not done yet."""
    return bool(config.text) and not (folder.pretraining / "all_results.json").exists()


def ensure_pretraining(folder: StudyFolder, config: StudyConfig, say: Say) -> None:
    """Pretrain the context encoder on the study's text, where it has any, unless that is done."""
    if pretraining_is_due(folder, config):
        say(f"pretraining the encoder on {', '.join(config.text)}")
        run_part(folder, PRETRAINING)


def pretrain_config(folder: StudyFolder, config: StudyConfig) -> PretrainConfig:
    """The settings of the pretraining; its sizes are the model's."""
    return PretrainConfig(
        text=tuple(map(Path, config.text)),
        output_dir=folder.pretraining.resolve(),
        dataset=folder.dataset.resolve(),
        store=config.store,
        model=EncoderConfig(
            embedding_dim=config.model.embedding_dim, encoder_dim=config.model.encoder_dim
        ),
        training=config.pretraining,
    )


def train_config(folder: StudyFolder, config: StudyConfig, cell: Cell) -> TrainConfig:
    """The settings of the cell's run; its paths hold wherever a command is called."""
    return TrainConfig(
        dataset=folder.dataset.resolve(),
        output_dir=folder.run(cell).resolve(),
        seed=cell.seed,
        pretrained=folder.begins_with(config),
        model=cell.model.config(config.model),
        training=config.training,
    )


def _build(target: Path, config: StudyConfig) -> None:
    made = Path(config.corpus)
    if config.corpus == "storyworld":
        build_storyworld(target, StoryworldConfig(seed=config.reading.seed))
    elif (made / "dataset.json").is_file():
        Dataset.open(made)
        with new_folder(target) as copy:
            shutil.copytree(made, copy, dirs_exist_ok=True)
    else:
        build_dataset(config.corpus, target, config.reading, config.build, given=config.given)


def _fitting(model: ModelConfig, pretrained: Path) -> ModelConfig:
    """The model with the sizes of a pretraining, whose embeddings go into both layers."""
    from dntm.model.checkpoint import best_of
    from dntm.model.pretrained_encoder import PretrainedEncoder

    given = PretrainedEncoder.load(best_of(pretrained))
    return dataclasses.replace(
        model,
        embedding_dim=given.embedding_dim,
        hidden_dim=given.embedding_dim,
        encoder_dim=given.encoder_dim,
        context_dim=given.context_dim,
    )


def _existing(path: str, what: str) -> str:
    found = Path(path)
    if not found.exists():
        known = f", nor a corpus known by name: {', '.join(CORPORA)}" if what == "corpus" else ""
        raise ValueError(f"--{what} {path} is no file or folder{known}")
    return str(found.resolve())


def _difference(saved: Any, given: Any, prefix: str = "") -> str:
    """The first setting that differs, with both values."""
    for field in dataclasses.fields(saved):
        old, new = getattr(saved, field.name), getattr(given, field.name)
        if old != new and dataclasses.is_dataclass(old):
            return _difference(old, new, f"{prefix}{field.name}.")
        if old != new:
            return f"{prefix}{field.name}: {old!r} there, {new!r} given"
    raise AssertionError("the settings are the same")


@dataclass(frozen=True)
class Status:
    """How far the cells are; what is in neither list waits."""

    done: dict[str, float]
    """The share that is done of each cell, by name."""
    running: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Cells that another process works on."""
    failed: dict[str, str]
    """The last words of cells that failed."""


def part_command(folder: StudyFolder, name: str) -> list[str]:
    """The command that does one part of a study."""
    return [sys.executable, "-m", "dntm", "cell", str(resolved(folder.path)), name]


def share_done(folder: StudyFolder, config: StudyConfig, cell: Cell) -> float:
    """How much of a cell is done, by its validations."""
    if folder.finished(cell):
        return 1.0
    metrics = folder.run(cell) / "metrics.jsonl"
    lines = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    # The steps after training are short, but they are not nothing.
    return lines / (config.training.epochs * config.training.validations + 1)


def run_jobs(
    folder: StudyFolder, config: StudyConfig, cells: Sequence[Cell], *, jobs: int, threads: int
) -> Iterator[Status]:
    """Run all cells that are not finished, so many at a time; yields the status as it changes."""
    waiting = [cell for cell in cells if not folder.finished(cell)]
    running: dict[Cell, subprocess.Popen[bytes]] = {}
    failed: dict[str, str] = {}
    try:
        while waiting or running:
            for cell, process in list(running.items()):
                if (code := process.poll()) is not None:
                    del running[cell]
                    if code:
                        failed[cell.name] = _last_words(folder.run(cell) / "log.txt", code)
            waiting = [cell for cell in waiting if not folder.finished(cell)]
            elsewhere = [cell for cell in waiting if is_locked(folder.lock(cell.name))]
            free = [cell for cell in waiting if cell not in elsewhere]
            for cell in free[: jobs - len(running)]:
                running[cell] = _start(folder, cell, threads)
                waiting.remove(cell)
            yield Status(
                {cell.name: share_done(folder, config, cell) for cell in cells},
                tuple(cell.name for cell in running),
                tuple(cell.name for cell in elsewhere),
                failed,
            )
            time.sleep(POLL_SECONDS)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def run_part(folder: StudyFolder, name: str) -> None:
    """Do one part and wait for it, its messages among ours; it ends when this process does."""
    with subprocess.Popen(
        part_command(folder, name), env=_tied_environment(), process_group=0
    ) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
    if code:
        raise ValueError(f"{name} ended with code {code}: see the messages above")


def _start(folder: StudyFolder, cell: Cell, threads: int) -> subprocess.Popen[bytes]:
    log = folder.run(cell) / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            part_command(folder, cell.name),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**_tied_environment(), "OMP_NUM_THREADS": str(threads)},
            process_group=0,  # Ctrl-C reaches the study alone, which then ends them once
        )


def _tied_environment() -> dict[str, str]:
    """The environment of a process that is to end with this one (`end_with_the_study`)."""
    return {**os.environ, END_WITH: str(os.getpid())}


def end_with_the_study() -> None:
    """In a process that a study started: end when it dies without a word (kill -9; Linux only)."""
    study = os.environ.get(END_WITH)
    if study is None or sys.platform != "linux":
        return
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGTERM)
    if os.getppid() != int(study):
        sys.exit(143)


def _last_words(log: Path, code: int) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_WORDS))
        lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else f"ended with code {code}"
