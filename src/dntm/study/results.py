"""What a study has found so far, read from its files alone.

Runs are read one at a time and kept as sums: of each token group and of the cloze test by document,
and as curves. What is not finished is missing, and named.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dntm.corpus.dataset import Dataset
from dntm.evaluation.cloze import ClozeRecords, ClozeSummary, summarize_cloze
from dntm.evaluation.curves import Curve, by_antecedents, by_occurrence, by_position
from dntm.evaluation.groups import PAPER_GROUPS
from dntm.evaluation.records import Floats, Records, as_csv
from dntm.evaluation.uncertainty import (
    DocumentSums,
    cloze_sums,
    document_names,
    document_rows,
    group_sums,
    sum_columns,
    whole_documents,
)
from dntm.settings import parse_json, read_json, read_yaml
from dntm.study.config import RESULTS, Cell, StudyConfig, StudyFolder, cells
from dntm.study.paper import MODELS, StudyModel

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
    validations: list[dict[str, Any]]
    """Its metrics.jsonl; empty of a model that was not trained by us."""
    sittings: list[dict[str, Any]]
    """Its machine.json."""


@dataclass(frozen=True)
class ModelResults:
    """The finished runs of one model, by rising seed; at least one."""

    model: StudyModel
    runs: tuple[Run, ...]

    def sums(self, group: str) -> DocumentSums:
        """A token group by document, a row a seed."""
        return stacked([run.groups[group] for run in self.runs])

    def cloze_sums(self) -> DocumentSums:
        """The quantiles of the cloze test by document, a row a seed."""
        return stacked([run.cloze for run in self.runs])

    def perplexities(self, group: str) -> Floats:
        """Of each seed; nan where the group is empty."""
        return perplexities(self.sums(group))

    def cloze(self, name: str) -> Floats:
        """A number of the cloze test, of each seed."""
        return np.array([getattr(run.cloze_summary, name) for run in self.runs], np.float64)


@dataclass(frozen=True)
class PeerRun:
    """One finished run of a peer."""

    groups: dict[str, DocumentSums]
    parameters: int


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
    """All that a report is made of.

    Models are known by name only, and as many as have been run: nothing here asks how they work.
    """

    config: StudyConfig
    dataset: dict[str, Any]
    """Its dataset.json; empty before it is built."""
    pretraining: PretrainingRun
    models: dict[str, ModelResults]
    """By name, in the order of the tables; models without a finished run are absent."""
    planned: tuple[Cell, ...]
    missing: tuple[Cell, ...]
    """Planned, but not finished."""
    peers: dict[str, tuple[PeerRun, ...]] = field(default_factory=dict)
    """By name, in the order of `MODELS`: what is beyond the paper; in no other table."""

    @property
    def runs(self) -> list[Run]:
        """All finished runs."""
        return [run for found in self.models.values() for run in found.runs]

    @property
    def rows(self) -> list[StudyModel]:
        """The models that the study plans, finished or not, in the order of the tables."""
        planned = (model for name, model in MODELS.items() if name in self.config.models)
        return [model for model in planned if not model.peer]


def read_results(folder: StudyFolder) -> StudyResults:
    """Read every finished run of a study."""
    config = StudyConfig.from_yaml(folder.settings)
    planned = cells(config)
    finished = [cell for cell in planned if folder.finished(cell)]
    dataset = Dataset.open(folder.dataset).information if folder.dataset.exists() else {}
    document = document_names(dataset) if dataset else str
    models, peers = {}, {}
    for name in (name for name in MODELS if name in config.models):
        mine = sorted((c for c in finished if c.model.name == name), key=lambda cell: cell.seed)
        if mine and MODELS[name].peer:
            peers[name] = tuple(_read_peer(folder.run(c), document) for c in mine)
        elif mine:
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
        peers=peers,
    )


def perplexities(sums: DocumentSums) -> Floats:
    """Of each seed; nan where the group is empty."""
    tokens = sums.counts.sum()
    if not tokens:
        return np.full(len(sums.sums), np.nan)
    values: Floats = np.exp(sums.sums.sum(1) / tokens)
    return values


def documents_csv(results: StudyResults) -> str:
    """Each document's own sums, for tests of significance that a report does not make.

    A row for every finished run and test document: the tokens of each group with their nats, and
    the gaps of the cloze test with the sum of their quantiles.
    """
    header = ["model", "seed", "document", *sum_columns(PAPER_GROUPS), "gaps", "quantiles"]
    rows = (
        [run.cell.model.name, run.cell.seed, *row]
        for run in results.runs
        for row in document_rows([*(run.groups[g] for g in PAPER_GROUPS), run.cloze])
    )
    return as_csv(header, rows)


def _read_peer(run: Path, document: Callable[[str], str]) -> PeerRun:
    results, records_name, _ = RESULTS
    records = Records.read(run / records_name)
    groups = {g: whole_documents(group_sums([records], g), document) for g in PAPER_GROUPS}
    return PeerRun(groups, read_json(run / results)["parameters"]["total"])


def _read(run: Path, cell: Cell, document: Callable[[str], str]) -> Run:
    results, records_name, cloze_name = RESULTS
    records = Records.read(run / records_name)
    cloze = ClozeRecords.read(run / cloze_name)
    parameters = read_json(run / results)["parameters"]
    metrics = run / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    return Run(
        cell=cell,
        groups={g: whole_documents(group_sums([records], g), document) for g in PAPER_GROUPS},
        curves={name: curve(records) for name, curve in CURVES.items()},
        cloze=whole_documents(cloze_sums([cloze]), document),
        cloze_summary=summarize_cloze(cloze),
        parameters=parameters["total"],
        finetuned=parameters["finetuned"],
        validations=[parse_json(line) for line in lines],
        sittings=_sittings(run),
    )


def _read_pretraining(run: Path | None) -> PretrainingRun:
    if run is None:
        return PretrainingRun({}, {}, [])
    text = run / "text" / "text.json"
    return PretrainingRun(_settings(run), read_json(text) if text.exists() else {}, _sittings(run))


def _settings(run: Path) -> dict[str, Any]:
    path = run / "config.yaml"
    return read_yaml(path) if path.exists() else {}


def _sittings(run: Path) -> list[dict[str, Any]]:
    machine = run / "machine.json"
    found: list[dict[str, Any]] = read_json(machine)["sessions"] if machine.exists() else []
    return found


def stacked(sums: Sequence[DocumentSums]) -> DocumentSums:
    """The sums of several seeds, a row a seed; ValueError where they read different texts."""
    first = sums[0]
    if any(
        s.documents != first.documents or not np.array_equal(s.counts, first.counts) for s in sums
    ):
        raise ValueError("the runs of a model have read different texts: not one study")
    return DocumentSums(
        first.documents, np.concatenate([s.sums for s in sums]), first.counts, first.perplexity
    )
