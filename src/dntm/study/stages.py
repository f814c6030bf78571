"""What all cells of a study share: the dataset, and where text was given the pretraining.

Each stage is done by whoever comes first; the others wait for it.
"""

import dataclasses
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dntm.corpus.dataset import Dataset
from dntm.corpus.prepare import prepare, prepare_storyworld
from dntm.corpus.storyworld.story import StoryworldConfig
from dntm.experiments.study import StudyConfig, StudyFolder
from dntm.files import new_folder
from dntm.study.claim import claimed
from dntm.study.jobs import tied_environment
from dntm.training.pretraining_config import EncoderConfig

Say = Callable[[str], None]
PRETRAINED = "all_results.json"
"""The file with which a pretraining ends."""


def ensure_dataset(folder: StudyFolder, config: StudyConfig, say: Say) -> Dataset:
    """Build the study's dataset unless it is there."""
    if not folder.dataset.exists():
        with claimed(folder.lock("dataset"), lambda: say("the dataset is being built elsewhere")):
            if not folder.dataset.exists():
                say(f"building the dataset from {config.corpus}")
                _build(folder.dataset, config)
    dataset = Dataset.open(folder.dataset)
    if missing := [split for split in ("train", "dev", "test") if split not in dataset.splits]:
        raise ValueError(f"{folder.dataset} has no document in {', '.join(missing)}")
    return dataset


def pretraining_is_due(folder: StudyFolder, config: StudyConfig) -> bool:
    """Whether the study has text to pretrain on, and that is not done yet."""
    return bool(config.text) and not (folder.pretraining / PRETRAINED).exists()


def ensure_pretraining(folder: StudyFolder, config: StudyConfig, say: Say) -> None:
    """Pretrain the context encoder on the study's text, where it has any, unless that is done."""
    if not pretraining_is_due(folder, config):
        return
    elsewhere = "the encoder is being pretrained elsewhere"
    with claimed(folder.lock("pretraining"), lambda: say(elsewhere)) as lock:
        if pretraining_is_due(folder, config):
            say(f"pretraining the encoder on {', '.join(config.text)}")
            _pretrain(pretrain_command(folder, config), lock)


def pretrain_command(folder: StudyFolder, config: StudyConfig) -> list[str]:
    """The command that pretrains the encoder, or goes on with it."""
    sizes = EncoderConfig(
        embedding_dim=config.model.embedding_dim, encoder_dim=config.model.encoder_dim
    )
    parts = {
        "model": dataclasses.asdict(sizes),
        "training": dataclasses.asdict(config.pretraining),
        "store": dataclasses.asdict(config.store),
    }
    given = ("--text", *config.text, "--dataset", folder.dataset.resolve())
    target = ("--output-dir", folder.pretraining.resolve())
    words = [sys.executable, "-m", "dntm", "pretrain", *map(str, (*given, *target))]
    for part, settings in parts.items():
        for name, value in settings.items():
            words += [f"--{part}.{name.replace('_', '-')}", str(value)]
    resume = ["--resume"] if (folder.pretraining / "config.yaml").exists() else []
    return words + resume


def _pretrain(command: list[str], lock: int) -> None:
    """Run the command in a process that holds the lock, too, and ends when this one does."""
    with subprocess.Popen(
        command, env=tied_environment(), process_group=0, pass_fds=(lock,)
    ) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
    if code:
        raise ValueError(f"pretraining ended with code {code}: see the messages above")


def _build(target: Path, config: StudyConfig) -> None:
    made = Path(config.corpus)
    if config.corpus == "storyworld":
        prepare_storyworld(target, StoryworldConfig(seed=config.reading.seed))
    elif (made / "dataset.json").is_file():
        Dataset.open(made)
        with new_folder(target) as copy:
            shutil.copytree(made, copy, dirs_exist_ok=True)
    else:
        prepare(config.corpus, target, config.reading, config.build, given=config.given)
