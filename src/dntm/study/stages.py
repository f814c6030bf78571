"""What all cells of a study share: the dataset, and where text was given the pretraining.

Each stage is done by whoever comes first; the others wait for it.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from dntm.corpus.dataset import Dataset
from dntm.corpus.prepare import prepare, prepare_storyworld
from dntm.corpus.storyworld.story import StoryworldConfig
from dntm.experiments.study import StudyConfig, StudyFolder
from dntm.files import new_folder
from dntm.study.claim import claimed

Say = Callable[[str], None]


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
