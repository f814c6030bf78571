"""Studies: everything that one depends on, the presets, and where its files stand. No torch here.

STUDY/study.yaml           these settings
STUDY/dataset/             the dataset
STUDY/pretraining/         the context encoder's pretraining, where text for it was given
STUDY/runs/NAME-SEED/      one cell: a run folder, records-test.csv, cloze-test.csv, machine.json
STUDY/report/              what `dntm report STUDY` makes of them
"""

import dataclasses
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from dntm.corpus.dataset_builder import PAPERS_BUILD, BuildConfig, ReadConfig
from dntm.corpus.token_store import StoreConfig
from dntm.model.config import ModelConfig
from dntm.settings import merged, read_yaml, settle, to_yaml
from dntm.study.paper import MODELS, PAPER_TABLE_3, PEERS, StudyModel
from dntm.study.recipes import PRETRAINING, RECIPES
from dntm.training.config import PretrainRecipe, Recipe

RESULTS = ("all_results.json", "records-test.csv", "cloze-test.csv")
"""The files that make a cell finished; each is written aside and moved into place. Peers that are
not put to the cloze test lack the last."""


@dataclass(frozen=True, kw_only=True)
class StudyConfig:
    """One study: which models, with which seeds, on which dataset, how large and how trained."""

    preset: str = ""
    """Which preset the settings started from."""
    corpus: str = ""
    """A corpus by name, a file or folder, or a dataset folder."""
    given: str | None = None
    """A local copy or mirror of a corpus known by name."""
    text: tuple[str, ...] = ()
    """Text files to pretrain the context encoder on."""
    pretrained: str | None = None
    """A pretraining run that is there already, to use instead; neither: no pretraining."""
    pretraining: PretrainRecipe = field(default_factory=PretrainRecipe)
    """How the context encoder is pretrained; its sizes are the model's."""
    store: StoreConfig = field(default_factory=StoreConfig)
    """Which sentences of that text are read and which words are known."""
    models: tuple[str, ...] = tuple(PAPER_TABLE_3)
    seeds: tuple[int, ...] = (1, 2, 3)
    reading: ReadConfig = field(default_factory=ReadConfig)
    build: BuildConfig = PAPERS_BUILD
    model: ModelConfig = field(default_factory=ModelConfig)
    """The sizes; variant, merging function and vocabulary are the cell's and the dataset's."""
    training: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        settle(self)
        for name in self.models:
            if name not in MODELS:
                raise ValueError(f"model {name!r}, expected one of {', '.join(MODELS)}")
        for seed in self.seeds:
            if seed < 0:
                raise ValueError(f"seed {seed!r}, expected a whole number")
        for what, values in (("model", self.models), ("seed", self.seeds)):
            if not values or len(set(values)) < len(values):
                raise ValueError(f"a study needs each {what} once, at least one; given: {values}")
        if self.text and self.pretrained:
            raise ValueError("a study has text to pretrain on or is given a pretraining, not both")

    @property
    def begins_pretrained(self) -> bool:
        """Whether embeddings and context encoder come from a pretraining."""
        return bool(self.text or self.pretrained)

    def to_yaml(self) -> str:
        """All settings, as the study folder keeps them."""
        return to_yaml(self)

    @classmethod
    def from_yaml(cls, path: Path) -> "StudyConfig":
        """Read what `to_yaml` wrote."""
        try:
            values = read_yaml(path)
        except FileNotFoundError:
            raise ValueError(
                f"{path.parent} is no study: it has no study.yaml (dntm reproduce)"
            ) from None
        base = cls()
        if "pretraining" not in values and values.get("preset") != "paper":
            # Before pretraining had settings of its own, the preset's name chose them.
            _, recipe, store = PRETRAINING["small"]
            base = dataclasses.replace(base, pretraining=recipe, store=store)
        return merged(base, up_to_date(values), str(path))


def up_to_date(values: dict[str, Any]) -> dict[str, Any]:
    """The settings of a YAML file, with `pretraining_iterations` where it stands today."""
    if "pretraining_iterations" not in values:
        return values
    kept = {name: value for name, value in values.items() if name != "pretraining_iterations"}
    length = {"iterations": values["pretraining_iterations"]}
    given = kept.get("pretraining", {})
    return kept | {"pretraining": length | given if isinstance(given, dict) else given}


_MODERN, _MODERN_TRAINING = RECIPES["modern"]
_QUICK, _QUICK_TRAINING = RECIPES["quick"]
_, _PRETRAINING, _STORE = PRETRAINING["small"]

PRESETS: dict[str, StudyConfig] = {
    "paper": StudyConfig(preset="paper"),
    "small": StudyConfig(
        preset="small",
        pretraining=dataclasses.replace(_PRETRAINING, iterations=10_000),
        store=_STORE,
        build=dataclasses.replace(PAPERS_BUILD, max_sentences=28),
        model=dataclasses.replace(
            _MODERN, embedding_dim=128, hidden_dim=128, encoder_dim=128, context_dim=128
        ),
        training=dataclasses.replace(
            _MODERN_TRAINING, learning_rate=3e-3, epochs=5, validations=1, average=0.995
        ),
    ),
    "quick": StudyConfig(
        preset="quick",
        pretraining=dataclasses.replace(_PRETRAINING, iterations=1_000),
        store=_STORE,
        models=("A", "D-gru-relu"),
        seeds=(1,),
        reading=ReadConfig(limit=50),
        build=dataclasses.replace(PAPERS_BUILD, vocabulary_size=5000),
        model=_QUICK,
        training=_QUICK_TRAINING,
    ),
}
"""Whole studies as data: `paper` is Section 5, thirteen models, three seeds, 512 units, the paper's
recipe. `small` is the same study at a size that two cores finish in two to three hours on OntoGUM
(`docs/log.md`), with what `modern` brought on small corpora. `quick` is a first look in minutes: A
and D, one seed."""


@dataclass(frozen=True)
class Cell:
    """One model with one seed."""

    model: StudyModel
    seed: int

    @property
    def name(self) -> str:
        """What its run folder is called: D-gru-relu-1."""
        return f"{self.model.name}-{self.seed}"

    def matches(self, pattern: str) -> bool:
        """Whether a pattern is the name, or matches that, of the cell, its model or its kind."""
        names = (self.name, self.model.name, self.model.kind)
        return any(fnmatchcase(name, pattern) for name in names)


@dataclass(frozen=True)
class StudyFolder:
    """The files of a study."""

    path: Path

    @property
    def settings(self) -> Path:
        """All settings of the study."""
        return self.path / "study.yaml"

    @property
    def dataset(self) -> Path:
        """The dataset folder."""
        return self.path / "dataset"

    @property
    def pretraining(self) -> Path:
        """The run folder of the pretraining."""
        return self.path / "pretraining"

    @property
    def report(self) -> Path:
        """The folder of the report."""
        return self.path / "report"

    def lock(self, part: str) -> Path:
        """What claims a part of the study: a cell's name, dataset or pretraining."""
        return self.path / ".locks" / part

    def run(self, cell: Cell) -> Path:
        """The cell's run folder."""
        return self.path / "runs" / cell.name

    def begins_with(self, config: StudyConfig) -> Path | None:
        """The pretraining that the models begin with: the study's own, one it was given, none."""
        if config.pretrained:
            return Path(config.pretrained)
        return self.pretraining.resolve() if config.text else None

    def finished(self, cell: Cell) -> bool:
        """Whether all results of a cell are there."""
        names = RESULTS if cell.model.has_cloze else RESULTS[:2]
        return all((self.run(cell) / name).is_file() for name in names)


def with_peers(config: StudyConfig) -> StudyConfig:
    """The study with all peers, and the models of the paper that they are compared with."""
    names = (*config.models, *(peer.over for peer in PEERS.values()), *PEERS)
    models = tuple(dict.fromkeys(name for name in names if name))
    return dataclasses.replace(config, models=models)


def cells(config: StudyConfig) -> list[Cell]:
    """All cells, first one seed of every model, then the next: a partial study says something."""
    return [Cell(MODELS[name], seed) for seed in config.seeds for name in config.models]


def chosen(config: StudyConfig, only: tuple[str, ...]) -> list[Cell]:
    """The cells that match at least one of the patterns; all where there is none."""
    found = cells(config)
    for pattern in only:
        if not any(cell.matches(pattern) for cell in found):
            names = ", ".join(cell.name for cell in found)
            raise ValueError(f"--only {pattern} matches nothing of this study: {names}")
    return [c for c in found if not only or any(c.matches(pattern) for pattern in only)]
