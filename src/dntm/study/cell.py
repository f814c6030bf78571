"""A cell: one model with one seed, trained, scored on the test split, and put to the cloze test.

Every step leaves a file that is complete or absent. Taken up again, a cell goes on after the last
of them, and training from its latest checkpoint, to the same bits.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from dntm.corpus.dataset import Dataset
from dntm.evaluation.cloze import ClozeRecords, ClozeText
from dntm.evaluation.scoring import TextModel
from dntm.experiments.study import RESULTS, Cell, StudyConfig, StudyFolder
from dntm.study.claim import claimed
from dntm.study.sitting import Sitting
from dntm.study.stages import Say, ensure_dataset, ensure_pretraining
from dntm.training.config import TrainConfig
from dntm.training.language_modelling import Progress, train_run

_TRAINED, _RECORDS, _CLOZE = RESULTS


def run_cell(folder: StudyFolder, config: StudyConfig, cell: Cell, say: Say) -> Iterator[Progress]:
    """Do whatever the cell still needs; yields the progress of its training."""
    dataset = ensure_dataset(folder, config, say)
    ensure_pretraining(folder, config, say)
    with claimed(folder.lock(cell.name), lambda: say(f"{cell.name} is being run elsewhere")):
        if folder.finished(cell):
            return
        run = folder.run(cell)
        sitting = Sitting.begin(run / "machine.json", torch.get_num_threads())
        sitting.note(now=True)
        if not (run / _TRAINED).exists():
            settings = train_config(folder, config, cell)
            for progress in train_run(settings, resume=(run / "config.yaml").exists()):
                sitting.note()
                yield progress
        _score(run, dataset, sitting)


def train_config(folder: StudyFolder, config: StudyConfig, cell: Cell) -> TrainConfig:
    """The settings of the cell's run; its paths hold wherever a command is called."""
    return TrainConfig(
        dataset=folder.dataset.resolve(),
        output_dir=folder.run(cell).resolve(),
        seed=cell.seed,
        pretrained=folder.begins_with(config),
        model=replace(config.model, variant=cell.model.variant, merging=cell.model.merging),
        training=config.training,
    )


def _score(run: Path, dataset: Dataset, sitting: Sitting) -> None:
    model = TextModel.load(run)
    documents = list(dataset.documents("test"))
    if not (run / _RECORDS).exists():
        model.records(documents).write(run / _RECORDS)
        sitting.note(now=True)
    texts = [ClozeText.of(document) for document in documents]
    cloze = ClozeRecords.of(texts, model.fill_all(texts))
    sitting.note(now=True)
    cloze.write(run / _CLOZE)
