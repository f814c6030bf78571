"""What a study has found so far, read from its files alone.

Runs are read one at a time and kept as sums: of each token group and of the cloze test by document,
and as curves. What is not finished is missing, and named.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dntm.corpus.dataset import Dataset
from dntm.evaluation.cloze import ClozeRecords
from dntm.evaluation.cloze_summary import ClozeSummary, summarize_cloze
from dntm.evaluation.columns import Floats
from dntm.evaluation.curves import Curve, by_antecedents, by_occurrence, by_position
from dntm.evaluation.groups import PAPER_GROUPS
from dntm.evaluation.records import Records
from dntm.evaluation.uncertainty import (
    DocumentSums,
    cloze_sums,
    document_names,
    group_sums,
    whole_documents,
)
from dntm.experiments.models import MODELS, PaperModel
from dntm.experiments.study import RESULTS, Cell, StudyConfig, StudyFolder, cells

CURVES = {"position": by_position, "occurrence": by_occurrence, "antecedents": by_antecedents}


@dataclass(frozen=True)
class Run:
    """One finished run."""

    cell: Cell
    groups: dict[str, DocumentSums]
    """By whole document, whatever parts it was cut into."""
    curves: dict[str, Curve]
    cloze: DocumentSums
    cloze_summary: ClozeSummary
    parameters: int
    finetuned: int
    """Parameters that training changed: without the encoder where that was pretrained and fixed."""
    settings: dict[str, Any]
    """Its config.yaml."""
    validations: list[dict[str, Any]]
    """Its metrics.jsonl."""
    sittings: list[dict[str, Any]]
    """Its machine.json."""


@dataclass(frozen=True)
class ModelResults:
    """The finished runs of one model, by rising seed; at least one."""

    model: PaperModel
    runs: tuple[Run, ...]

    def sums(self, group: str) -> DocumentSums:
        """A token group by document, a row a seed."""
        return _stacked([run.groups[group] for run in self.runs])

    def cloze_sums(self) -> DocumentSums:
        """The quantiles of the cloze test by document, a row a seed."""
        return _stacked([run.cloze for run in self.runs])

    def perplexities(self, group: str) -> Floats:
        """Of each seed; nan where the group is empty."""
        sums = self.sums(group)
        tokens = sums.counts.sum()
        if not tokens:
            return np.full(len(self.runs), np.nan)
        values: Floats = np.exp(sums.sums.sum(1) / tokens)
        return values

    def cloze(self, name: str) -> Floats:
        """A number of the cloze test, of each seed."""
        return np.array([getattr(run.cloze_summary, name) for run in self.runs], np.float64)


@dataclass(frozen=True)
class PretrainingRun:
    """The pretraining that the models begin with, as far as its files are there."""

    settings: dict[str, Any]
    """Its config.yaml."""
    text: dict[str, Any]
    """The text.json of what it read."""
    sittings: list[dict[str, Any]]
    """Its machine.json."""


@dataclass(frozen=True)
class StudyResults:
    """All that a report is made of."""

    config: StudyConfig
    dataset: dict[str, Any]
    """Its dataset.json; empty before it is built."""
    pretraining: PretrainingRun
    models: dict[str, ModelResults]
    """By name, in the order of the tables; models without a finished run are absent."""
    planned: tuple[Cell, ...]
    missing: tuple[Cell, ...]
    """Planned, but not finished."""

    @property
    def runs(self) -> list[Run]:
        """All finished runs."""
        return [run for found in self.models.values() for run in found.runs]


def read_results(folder: StudyFolder) -> StudyResults:
    """Read every finished run of a study."""
    config = StudyConfig.from_yaml(folder.settings)
    planned = cells(config)
    finished = [cell for cell in planned if folder.finished(cell)]
    dataset = Dataset.open(folder.dataset).information if folder.dataset.exists() else {}
    document = document_names(dataset) if dataset else str
    models = {}
    for name in (name for name in MODELS if name in config.models):
        mine = sorted((c for c in finished if c.model.name == name), key=lambda cell: cell.seed)
        if mine:
            models[name] = ModelResults(
                MODELS[name], tuple(_read(folder.run(c), c, document) for c in mine)
            )
    return StudyResults(
        config=config,
        dataset=dataset,
        pretraining=_read_pretraining(folder.begins_with(config)),
        models=models,
        planned=tuple(planned),
        missing=tuple(cell for cell in planned if cell not in finished),
    )


def _read(run: Path, cell: Cell, document: Callable[[str], str]) -> Run:
    results, records_name, cloze_name = RESULTS
    records = Records.read(run / records_name)
    cloze = ClozeRecords.read(run / cloze_name)
    parameters = _json(run / results)["parameters"]
    settings = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    frozen = settings["pretrained"] is not None and settings["training"]["freeze_encoder"]
    return Run(
        cell=cell,
        groups={g: whole_documents(group_sums([records], g), document) for g in PAPER_GROUPS},
        curves={name: curve(records) for name, curve in CURVES.items()},
        cloze=whole_documents(cloze_sums([cloze]), document),
        cloze_summary=summarize_cloze(cloze),
        parameters=parameters["total"],
        finetuned=parameters["finetuned" if frozen else "total"],
        settings=settings,
        validations=[json.loads(line) for line in lines],
        sittings=_sittings(run),
    )


def _read_pretraining(run: Path | None) -> PretrainingRun:
    if run is None:
        return PretrainingRun({}, {}, [])
    settings, text = run / "config.yaml", run / "text" / "text.json"
    return PretrainingRun(
        yaml.safe_load(settings.read_text(encoding="utf-8")) if settings.exists() else {},
        _json(text) if text.exists() else {},
        _sittings(run),
    )


def _sittings(run: Path) -> list[dict[str, Any]]:
    machine = run / "machine.json"
    found: list[dict[str, Any]] = _json(machine)["sittings"] if machine.exists() else []
    return found


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return found


def _stacked(sums: Sequence[DocumentSums]) -> DocumentSums:
    first = sums[0]
    if any(
        s.documents != first.documents or not np.array_equal(s.counts, first.counts) for s in sums
    ):
        raise ValueError("the runs of a model have read different texts: not one study")
    return DocumentSums(
        first.documents, np.concatenate([s.sums for s in sums]), first.counts, first.perplexity
    )
