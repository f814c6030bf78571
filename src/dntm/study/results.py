"""Results of the finished runs, read from the files of a study.

Each run is reduced to sums per document, of every token group and of the cloze test, and to the
curves of Figures 4 to 6.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dntm.corpus.dataset import Dataset
from dntm.evaluation import uncertainty
from dntm.evaluation.cloze import ClozeRecords, summarize_cloze
from dntm.evaluation.groups import CURVES, PAPER_GROUPS, Curve, curve_of
from dntm.evaluation.records import Floats, Records, as_csv
from dntm.settings import read_json
from dntm.study.config import (
    CLOZE,
    MODELS,
    RECORDS,
    RESULTS,
    StudyConfig,
    StudyFolder,
    StudyModel,
    StudyRun,
)

CLOZE_TEST = "cloze"
"""Name of the cloze test among the token groups."""
Scalar = str | int | float | None
Data = tuple[dict[str, Scalar], ...]
"""Rows of a CSV file, not rounded; every row has the same columns."""
Sessions = list[dict[str, Any]]
"""The entries of a machine.json."""


@dataclass(frozen=True)
class RunResults:
    """One finished run."""

    run: StudyRun
    sums: dict[str, uncertainty.DocumentSums]
    """Of each token group and of the cloze test, by whole document: parts are added up."""
    curves: dict[str, Curve]
    cloze_summary: dict[str, float]
    """Without gaps if the model has no cloze test."""
    parameters: dict[str, int]
    """The `total`, and those that training changed: all except those of a frozen encoder."""
    sessions: Sessions


@dataclass(frozen=True)
class ModelResults:
    """The finished runs of one model, by seed; at least one."""

    runs: tuple[RunResults, ...]

    def sums(self, group: str) -> uncertainty.DocumentSums:
        """Sums of a token group or of the cloze test by document, one row per seed."""
        return uncertainty.stacked([run.sums[group] for run in self.runs])

    def values(self, group: str) -> Floats:
        """One perplexity or mean quantile per seed; nan if there is nothing to count."""
        sums = self.sums(group)
        count = sums.counts.sum()
        if not count:
            return np.full(len(sums.sums), np.nan)
        means: Floats = sums.sums.sum(1) / count
        return np.exp(means) if sums.perplexity else means

    def compared_with(self, baseline: "ModelResults", group: str) -> uncertainty.Comparison | None:
        """A paired bootstrap over documents; None if there is no document."""
        sums = self.sums(group)
        return uncertainty.paired_bootstrap(baseline.sums(group), sums) if sums.documents else None

    def cloze(self, name: str) -> Floats:
        """A value of `summarize_cloze`, one per seed."""
        return np.array([run.cloze_summary[name] for run in self.runs], np.float64)


@dataclass(frozen=True, eq=False)
class StudyResults:
    """Everything that a report needs."""

    config: StudyConfig
    dataset: dict[str, Any]
    """Its dataset.json; empty before the dataset is built."""
    models: dict[str, ModelResults]
    """By name, in the order of `MODELS`, without models that have no finished run."""
    missing: tuple[StudyRun, ...]
    pretraining: Sessions

    @property
    def runs(self) -> list[RunResults]:
        """All finished runs."""
        return [run for found in self.models.values() for run in found.runs]

    @property
    def paper_models(self) -> list[StudyModel]:
        """The models of the paper that the study has, finished or not."""
        return [m for m in MODELS.values() if m.name in self.config.models and m.letter]

    @property
    def baselines(self) -> list[StudyModel]:
        """The models beyond the paper that have a finished run."""
        return [MODELS[name] for name in self.models if not MODELS[name].letter]


def read_results(folder: StudyFolder) -> StudyResults:
    """Read all finished runs of a study."""
    config = StudyConfig.from_yaml(folder.settings)
    finished = [run for run in config.runs if folder.finished(run)]
    dataset = Dataset.open(folder.dataset).information if folder.dataset.exists() else {}
    document = uncertainty.document_names(dataset) if dataset else str
    models = {}
    for name in MODELS:
        mine = sorted((run for run in finished if run.model.name == name), key=lambda r: r.seed)
        if mine:
            models[name] = ModelResults(tuple(_read(folder.run(r), r, document) for r in mine))
    return StudyResults(
        config=config,
        dataset=dataset,
        models=models,
        missing=tuple(run for run in config.runs if run not in finished),
        pretraining=_sessions(folder.pretraining),
    )


def documents_csv(results: StudyResults) -> str:
    """One row per run and test document, for other tests of significance."""
    columns = uncertainty.sum_columns(PAPER_GROUPS)
    header = ["model", "seed", "document", *columns, "gaps", "quantiles"]
    rows = (
        [run.run.model.name, run.run.seed, *row]
        for run in results.runs
        for row in uncertainty.document_rows(list(run.sums.values()))
    )
    return as_csv(header, rows)


def _read(path: Path, run: StudyRun, document: Callable[[str], str]) -> RunResults:
    records = Records.read(path / RECORDS)
    cloze = ClozeRecords.read(path / CLOZE) if run.model.letter else ClozeRecords.of([], [])
    sums = {g: uncertainty.group_sums(records, g) for g in PAPER_GROUPS} | {
        CLOZE_TEST: uncertainty.cloze_sums(cloze)
    }
    return RunResults(
        run=run,
        sums={name: uncertainty.whole_documents(found, document) for name, found in sums.items()},
        curves={name: curve_of(records, name) for name in CURVES},
        cloze_summary=summarize_cloze(cloze),
        parameters=read_json(path / RESULTS)["parameters"],
        sessions=_sessions(path),
    )


def _sessions(path: Path) -> Sessions:
    machine = path / "machine.json"
    return list(read_json(machine)["sessions"]) if machine.exists() else []
