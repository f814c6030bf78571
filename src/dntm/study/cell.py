"""A cell: one model with one seed, trained, scored on the test split, and put to the cloze test.

Every step leaves a file that is complete or absent. Taken up again, a cell goes on after the last
of them, and training from its latest checkpoint, to the same bits. Training ends with a record of
every predicted token of the test split; only where these are gone is it scored again. A peer that
only scores another cell's model (with a cache, say) sees to that cell first.
"""

from collections.abc import Iterator
from pathlib import Path

import torch

from dntm.corpus.dataset import Dataset
from dntm.evaluation.cloze import ClozeRecords, ClozeText
from dntm.evaluation.groups import as_plain, score_groups
from dntm.files import locked, remove_stale_files
from dntm.model.cache import CACHES
from dntm.model.checkpoint import best_of
from dntm.model.dynamic_evaluation import DynamicEvaluation, tune
from dntm.model.kneser_ney import KneserNey
from dntm.model.text_model import TextModel
from dntm.study.config import RESULTS, Cell, StudyConfig, StudyFolder
from dntm.study.paper import MODELS
from dntm.study.plan import Say, ensure_dataset, ensure_pretraining, train_config
from dntm.training.language_modelling import Progress, train_run
from dntm.training.machine import Session
from dntm.training.run_folder import RunFolder

_TRAINED, _RECORDS, _CLOZE = RESULTS


def run_cell(folder: StudyFolder, config: StudyConfig, cell: Cell, say: Say) -> Iterator[Progress]:
    """Do whatever the cell still needs; yields the progress of its training."""
    dataset = ensure_dataset(folder, config, say)
    ensure_pretraining(folder, config, say)
    if cell.model.over:
        base = Cell(MODELS[cell.model.over], cell.seed)
        yield from run_cell(folder, config, base, say)
    with locked(folder.lock(cell.name), lambda: say(f"{cell.name} is being run elsewhere")):
        run = folder.run(cell)
        if folder.finished(cell):
            return
        _sweep(run)
        session = Session.begin(run / "machine.json", torch.get_num_threads())
        session.note(now=True)
        if cell.model.over:
            _score_over(folder.run(base), run, dataset, cell.model.way)
            session.note(now=True)
            return
        if cell.model.model_kind == "kneser-ney":
            _count(run, dataset)
            return
        if not (run / _TRAINED).exists():
            settings = train_config(folder, config, cell)
            resume = (run / "config.yaml").exists()
            for progress in train_run(settings, resume=resume):
                session.note()
                yield progress
        _score(run, dataset, session, cloze=cell.model.has_cloze)
        _sweep(run)


def _score_over(base: Path, run: Path, dataset: Dataset, way: str) -> None:
    """Score a trained model in another way, tuned on the dev split."""
    model, weights = TextModel.load(base), best_of(base)
    dev, test = (list(dataset.documents(split)) for split in ("dev", "test"))
    if way in CACHES:
        kind = CACHES[way]
        model.model.cache = kind.ready(weights, lambda: model.tune_cache(dev, kind))
        records = model.records(test)
    else:
        setting = DynamicEvaluation.ready(weights, lambda: tune(model, dev))
        records = setting.records(model, test)
    sizes = RunFolder(base).read_results()["parameters"]
    splits = {"test": as_plain(score_groups(records))}
    RunFolder(run).write_results({"parameters": sizes, "splits": splits})
    records.write(run / _RECORDS)


def _count(run: Path, dataset: Dataset) -> None:
    """An n-gram model learns by counting."""
    model = KneserNey.of(dataset.documents("train"), dataset.vocabulary)
    model.save(RunFolder(run).best)
    sizes = {"total": model.parameters, "finetuned": model.parameters}
    RunFolder(run).write_results({"parameters": sizes, "splits": {}})
    model.records(list(dataset.documents("test"))).write(run / _RECORDS)


def _score(run: Path, dataset: Dataset, session: Session, *, cloze: bool) -> None:
    """Write the records of the test split, and those of its cloze test."""
    model = TextModel.load(run)
    documents = list(dataset.documents("test"))
    if not (run / _RECORDS).exists():
        model.records(documents).write(run / _RECORDS)
    session.note(now=True)
    if not cloze:
        return
    # Candidates are entities with a row: documents that lend rows are not in the cloze test.
    texts = [ClozeText.of(d) for d in documents if d.largest <= dataset.vocabulary.entities]
    found = ClozeRecords.of(texts, model.fill_all(texts))
    session.note(now=True)
    found.write(run / _CLOZE)


def _sweep(run: Path) -> None:
    """What a killed process left half written; once more at the end, when even the last is old."""
    for folder in (run, run / "checkpoints"):
        remove_stale_files(folder)
