"""Study folders with synthetic numbers, from which the content of a report follows.

Results are written once for each combination of numbers and texts, and then copied.
"""

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from dntm.corpus.dataset import Dataset
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.evaluation.cloze import ClozeRecords, ClozeText
from dntm.evaluation.records import Records
from dntm.files import write_text
from dntm.model.scorer import Completions
from dntm.settings import to_yaml
from dntm.study.config import MODELS, PAPER_MODELS, PRESETS, StudyFolder
from dntm.study.run import train_config

PAPER_NAMES = tuple(model.name for model in PAPER_MODELS)

_STATIC = {"reappearing": 50.0, "following": 100.0, "other": 60.0, "quantile": 0.5}
PAPER_LIKE = {name: dict(_STATIC) for name in PAPER_NAMES}
for _name, _numbers in PAPER_LIKE.items():
    _letter, _merging = _name[0], MODELS[_name].merging
    if _letter in "BD":
        _numbers |= {"following": 80.0, "quantile": 0.9}
    if _letter in "CD":
        _numbers["reappearing"] = 30.0
    if _merging == "max" and _letter != "A":
        _numbers["reappearing"] += 1.0
    if _merging == "latest":
        _numbers["other"] = 70.0
"""Perplexities by token group, and the share of gaps that are filled correctly, as in the paper."""


def study(
    folder: Path,
    numbers: Mapping[str, Mapping[str, float]] = PAPER_LIKE,
    *,
    seeds: tuple[int, ...] = (1, 2),
    corpus: str = "",
    planned: tuple[str, ...] = PAPER_NAMES,
    texts: "Texts | None" = None,
) -> StudyFolder:
    """A study whose models have these numbers; other planned models have no finished run."""
    folder.mkdir(parents=True)
    config = replace(
        PRESETS["paper"], corpus=corpus or str(folder / "texts.jsonl"), models=planned, seeds=seeds
    )
    made = StudyFolder(folder)
    write_text(made.settings, to_yaml(config))
    shutil.copytree(_dataset(texts or chains), made.dataset)
    for run in config.runs:
        if run.model.name not in numbers:
            continue
        path, mine = made.run(run), tuple(numbers[run.model.name].items())
        noise = (run.seed, list(MODELS).index(run.model.name))
        shutil.copytree(_results(texts or chains, mine, noise), path)
        sizes = {"parameters": {"total": 19_200_000, "finetuned": 14_400_000}, "splits": {}}
        write_text(path / "all_results.json", json.dumps(sizes))
        write_text(path / "config.yaml", to_yaml(train_config(made, config, run)))
        write_text(path / "metrics.jsonl", '{"dev": {"all": 70.0}}\n')
    return made


Texts = Callable[[Path], object]
"""A function that writes a dataset."""


def chains(target: Path, longest: int | None = None) -> None:
    """Stories of two people, cut into parts of at most `longest` sentences."""
    lines = []
    for number in range(40):
        sentences = [["Ann", "met", "Bo", "at", "noon"], ["Bo", "saw", "Ann", "go", "home"]] * 6
        clusters = [
            [[at, at] for at in (5 * s + 2 * (s % 2) for s in range(12))],
            [[at, at] for at in (5 * s + 2 - 2 * (s % 2) for s in range(12))],
        ]
        document = {"doc_key": f"d{number}", "sentences": sentences, "clusters": clusters}
        lines.append(json.dumps(document))
    corpus = target.with_name("texts.jsonl")
    corpus.write_text("\n".join(lines) + "\n")
    settings = BuildConfig(max_entities=3, vocabulary_size=20, max_sentences=longest)
    build_dataset(str(corpus), target, ReadConfig(fractions=(0.2, 0.1, 0.7)), settings)


def in_parts(target: Path) -> None:
    """The same stories, cut into parts."""
    chains(target, longest=5)


@cache
def _aside() -> str:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return folder


@cache
def _dataset(texts: Texts) -> Path:
    target = Path(tempfile.mkdtemp(dir=_aside())) / "dataset"
    texts(target)
    return target


@cache
def _results(texts: Texts, numbers: tuple[tuple[str, float], ...], seeds: tuple[int, int]) -> Path:
    documents = list(Dataset.open(_dataset(texts)).documents("test"))
    target, mine, noise = _dataset(texts).parent, dict(numbers), np.random.default_rng(seeds)
    target = Path(tempfile.mkdtemp(dir=target))
    _records(documents, mine, noise).write(target / "records-test.csv")
    _cloze(documents, mine["quantile"], noise).write(target / "cloze-test.csv")
    return target


def _records(
    documents: list[AnonymizedDocument], mine: Mapping[str, float], noise: np.random.Generator
) -> Records:
    empty = [np.zeros(sum(len(s) + 1 for s in d.sentences)) for d in documents]
    records = Records.of(documents, empty)
    perplexity = np.full(len(records), mine["other"])
    perplexity[records.follows > 0] = mine["following"]
    perplexity[records.occurrence > 1] = mine["reappearing"]
    scores = -np.log(perplexity) + noise.normal(0, 0.002, len(records))
    return replace(records, log_probability=scores)


def _cloze(
    documents: list[AnonymizedDocument], share: float, noise: np.random.Generator
) -> ClozeRecords:
    texts = [ClozeText.of(document) for document in documents]
    filled = []
    for text in texts:
        values: list[float] = []
        for gap in text.gaps:
            wins = noise.random() < share
            values += [float((c == gap.entity) == wins) for c in gap.candidates]
        filled.append(Completions(np.array(values), np.zeros(len(values))))
    return ClozeRecords.of(texts, filled)
