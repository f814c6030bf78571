"""What all cells of a study share: the dataset, and where text was given the pretraining.

Each stage is done by whoever comes first; the others wait for it.
"""

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


def ensure_pretraining(folder: StudyFolder, config: StudyConfig, say: Say) -> None:
    """Pretrain the context encoder on the study's text, where it has any, unless that is done."""
    if not config.text or (folder.pretraining / PRETRAINED).exists():
        return
    elsewhere = "the encoder is being pretrained elsewhere"
    with claimed(folder.lock("pretraining"), lambda: say(elsewhere)):
        if not (folder.pretraining / PRETRAINED).exists():
            say(f"pretraining the encoder on {len(config.text)} files of text")
            _pretrain(folder, config)


def pretraining_run(folder: StudyFolder, config: StudyConfig) -> Path | None:
    """The pretraining that the study's models begin with: its own, the one it was given, none."""
    if config.pretrained:
        return Path(config.pretrained)
    return folder.pretraining.resolve() if config.text else None


def pretrain_command(folder: StudyFolder, config: StudyConfig) -> list[str]:
    """The command that pretrains the encoder, or goes on with it."""
    model = config.model
    sizes = ("--model.embedding-dim", model.embedding_dim, "--model.encoder-dim", model.encoder_dim)
    recipe = ("--recipe", "paper" if config.preset == "paper" else "small")
    given = ("--text", *config.text, "--dataset", folder.dataset.resolve())
    target = ("--output-dir", folder.pretraining.resolve())
    length = ("--training.iterations", config.pretraining_iterations)
    resume = ("--resume",) if (folder.pretraining / "config.yaml").exists() else ()
    words = (sys.executable, "-m", "dntm", "pretrain", *recipe, *given, *target, *sizes, *length)
    return [str(word) for word in (*words, *resume)]


def _pretrain(folder: StudyFolder, config: StudyConfig) -> None:
    with subprocess.Popen(pretrain_command(folder, config)) as process:
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
