"""One run of a study: build the dataset, pretrain, train one model, score the test split.

Every step leaves complete files or none. A repeated run continues after the last complete step, and
training continues from its latest checkpoint with identical results. Dataset and pretraining are
shared by all runs: the first process makes them, the others wait. Locks end with their process.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import torch

from dntm.corpus.dataset import Dataset
from dntm.corpus.dataset_builder import build_dataset
from dntm.corpus.storyworld import StoryworldConfig, build_storyworld
from dntm.evaluation.cloze import ClozeRecords, ClozeText
from dntm.evaluation.records import records_of
from dntm.files import locked, new_folder
from dntm.model.baselines.neural_cache import NeuralCache
from dntm.model.baselines.ngram import NGram
from dntm.model.scorer import LanguageModel, Scorer
from dntm.study.config import CLOZE, RECORDS, RESULTS, StudyConfig, StudyFolder, StudyRun
from dntm.study.models import MODELS
from dntm.training.config import EncoderConfig, PretrainConfig, TrainConfig
from dntm.training.language_modelling import train_run
from dntm.training.pretraining import pretrain_run
from dntm.training.processes import device_of
from dntm.training.run_folder import RunFolder, Session

Log = Callable[[str], None]


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
        session.note(now=True)
        if run.model.kind == "trained" and not (path / RESULTS).exists():
            for name in (RECORDS, CLOZE):  # of weights that were not final
                (path / name).unlink(missing_ok=True)
            settings = train_config(folder, config, run)
            for progress in train_run(settings, resume=(path / "config.yaml").exists()):
                session.note()
                if progress.validation:
                    done = f"batch {progress.batch} of {progress.batches}"
                    log(f"{run.name}: {done}, dev perplexity {progress.validation['all']:.1f}")
        _score(folder, run, dataset)
        session.note(now=True)
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
        for progress in pretrain_run(settings, resume=True):
            session.note()
            if progress.validation:
                recall = progress.validation["recall"][10]
                done = f"update {progress.iteration} of {settings.training.iterations}"
                log(f"pretraining: {done}, recall at 10 of hidden words {recall:.3f}")
        session.note(now=True)


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


def train_config(folder: StudyFolder, config: StudyConfig, run: StudyRun) -> TrainConfig:
    """The settings of a training run, with absolute paths."""
    pretrained = Path(config.pretrained) if config.pretrained else None
    return TrainConfig(
        dataset=folder.dataset.resolve(),
        output_dir=folder.run(run).resolve(),
        seed=run.seed,
        pretrained=folder.pretraining.resolve() if config.text else pretrained,
        model=run.model.config(config.model),
        training=config.training,
    )


def _build(target: Path, config: StudyConfig) -> None:
    source = Path(config.corpus)
    if config.corpus == "storyworld":
        build_storyworld(target, StoryworldConfig(seed=config.reading.seed))
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
    if run.model.kind == "cache":
        return NeuralCache.tune(scorer, dataset.documents("dev")), sizes
    return scorer, sizes
