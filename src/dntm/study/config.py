"""Models, recipes, presets, settings and files of a study (Section 5). No torch here.

A           LSTM language model
B-MERGING   dynamic input
C-MERGING   dynamic output
D-MERGING   dynamic input and output

`BASELINES` are models beyond the paper, compared in a separate table. `PAPER_TABLE_1`, `_3` and
`_4` are the paper's own numbers.

A recipe is a model size with training settings, for `dntm train`, `dntm pretrain` and the presets
of `dntm reproduce`; `paper` is that of Section 5.1. `recipes.yaml` has all models and recipes.

Departure: all recipes except `paper`.

STUDY/study.yaml           these settings
STUDY/dataset/             the dataset
STUDY/pretraining/         pretraining of the context encoder, if the study has text for it
STUDY/runs/NAME-SEED/      a run folder, with records-test.csv, cloze-test.csv and machine.json
STUDY/report/              the report (dntm report STUDY)
"""

import dataclasses
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset_builder import PAPERS_BUILD, BuildConfig, ReadConfig
from dntm.corpus.token_store import StoreConfig
from dntm.files import write_text
from dntm.model.config import Extension, Merging, ModelConfig, Variant
from dntm.settings import merged, read_yaml, settle, to_yaml
from dntm.training.config import EncoderConfig, PretrainRecipe, Recipe

RESULTS, RECORDS, CLOZE = "all_results.json", "records-test.csv", "cloze-test.csv"
"""Files of a finished run. Models beyond the paper have no cloze test."""
MERGING_TITLES: dict[Merging, str] = {
    "gru-relu": "GRU-ReLU",
    "gru": "GRU",
    "max": "Max pooling",
    "latest": "Only latest",
}


@dataclass(frozen=True, kw_only=True)
class StudyModel:
    """One model: a row of the tables."""

    name: str
    """Name of its runs: A, D-gru-relu."""
    title: str = ""
    letter: str = ""
    """The paper's letter; models with the same letter form a block of Table 3. Empty for models
    beyond the paper."""
    variant: Variant = "baseline"
    merging: Merging = "gru-relu"
    core: str = ""
    """If empty, the core of the study's settings."""
    extensions: tuple[Extension, ...] = ()
    kind: Literal["trained", "n-gram", "cache"] = "trained"
    """A cache is not trained: it is added to the trained model `base`."""
    base: str = ""
    exchange_memories: bool = False
    """As a control: trained and scored with exchanged memories."""

    @property
    def detail(self) -> str:
        """The merging function, as the tables name it."""
        return "" if self.letter in ("", "A") else MERGING_TITLES[self.merging]

    @property
    def in_table_2(self) -> bool:
        """Whether Table 2 shows this model for its letter."""
        return self.letter != "" and self.merging == "gru-relu"

    def config(self, sizes: ModelConfig) -> ModelConfig:
        """The settings of the model, with these sizes and the extensions that these add."""
        added = tuple(name for name in sizes.extensions if name not in self.extensions)
        return dataclasses.replace(
            sizes,
            core=self.core or sizes.core,
            variant=self.variant,
            merging=self.merging,
            extensions=(*self.extensions, *added),
        )


_RECIPES = read_yaml(Path(__file__).with_name("recipes.yaml"))
MODELS: dict[str, StudyModel] = {
    name: merged(StudyModel(name=name), values, name) for name, values in _RECIPES["models"].items()
}
"""All models by name, in the order of the tables."""
PAPER_MODELS = tuple(model for model in MODELS.values() if model.letter)
BASELINES = tuple(model for model in MODELS.values() if not model.letter)
_PAPER = read_yaml(Path(__file__).with_name("paper_results.yaml"))
TABLE_1_ROWS: list[str] = _PAPER["table_1"]["rows"]
PAPER_TABLE_1: dict[str, list[float]] = _PAPER["table_1"]["splits"]
PAPER_TABLE_3: dict[str, dict[str, float]] = {
    model: dict(zip(_PAPER["table_3"]["columns"], numbers, strict=True))
    for model, numbers in _PAPER["table_3"]["rows"].items()
}
PAPER_TABLE_4: dict[str, list[float]] = _PAPER["table_4"]

RECIPES: dict[str, tuple[ModelConfig, Recipe]] = {
    name: (merged(ModelConfig(), values["model"], name), merged(Recipe(), values["training"], name))
    for name, values in _RECIPES["train"].items()
}
PRETRAINING: dict[str, tuple[EncoderConfig, PretrainRecipe, StoreConfig]] = {
    name: (
        merged(EncoderConfig(), values["model"], name),
        merged(PretrainRecipe(), values["training"], name),
        merged(StoreConfig(), values["store"], name),
    )
    for name, values in _RECIPES["pretrain"].items()
}


@dataclass(frozen=True)
class StudyRun:
    """One model with one seed."""

    model: StudyModel
    seed: int

    @property
    def name(self) -> str:
        """Name of the run folder: D-gru-relu-1."""
        return f"{self.model.name}-{self.seed}"

    def matches(self, pattern: str) -> bool:
        """Whether a pattern matches the name of the run or model, or the model's letter."""
        names = (self.name, self.model.name, self.model.letter)
        return any(fnmatchcase(name, pattern) for name in names if name)


@dataclass(frozen=True, kw_only=True)
class StudyConfig:
    """All settings of a study."""

    preset: str = ""
    """The preset that the settings were derived from."""
    corpus: str = ""
    """A named corpus, a file or folder, or a dataset folder."""
    given: str | None = None
    """A local copy or mirror of a named corpus."""
    text: tuple[str, ...] = ()
    """Text files to pretrain the context encoder on."""
    pretrained: str | None = None
    """An existing pretraining run to use instead of `text`."""
    pretraining: PretrainRecipe = field(default_factory=PretrainRecipe)
    """How to pretrain the context encoder, with the sizes of the model."""
    store: StoreConfig = field(default_factory=StoreConfig)
    """Sentences and vocabulary of the pretraining text."""
    models: tuple[str, ...] = tuple(model.name for model in PAPER_MODELS)
    seeds: tuple[int, ...] = (1, 2, 3)
    reading: ReadConfig = field(default_factory=ReadConfig)
    build: BuildConfig = PAPERS_BUILD
    model: ModelConfig = field(default_factory=ModelConfig)
    """Sizes and dropout. Variant, merging function and vocabulary depend on run and dataset."""
    training: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        settle(self)
        for name in self.models:
            if name not in MODELS:
                raise ValueError(f"model {name!r}, expected one of {', '.join(MODELS)}")
        if negative := [seed for seed in self.seeds if seed < 0]:
            raise ValueError(f"seed {negative[0]}, expected at least 0")
        for what, values in (("models", self.models), ("seeds", self.seeds)):
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{what} is {values}, expected at least one, without duplicates")
        if self.text and self.pretrained:
            raise ValueError("text and pretrained are both set, expected at most one of them")
        if self.model.is_pretrained and (self.text or self.pretrained):
            raise ValueError("a pretrained core cannot use a pretrained context encoder")
        odd = [name for name in self.models if MODELS[name].core or MODELS[name].kind != "trained"]
        if self.model.is_pretrained and odd:
            raise ValueError(f"with a pretrained core, a study cannot have {', '.join(odd)}")

    @classmethod
    def from_yaml(cls, path: Path) -> "StudyConfig":
        """Read study.yaml."""
        if not path.exists():
            raise ValueError(
                f"{path.parent} is not a study: it has no study.yaml (dntm reproduce creates it)"
            )
        return merged(cls(), read_yaml(path), str(path))

    @property
    def runs(self) -> list[StudyRun]:
        """All runs, ordered by seed, so that models can be compared early."""
        return [StudyRun(MODELS[name], seed) for seed in self.seeds for name in self.models]

    def select_runs(self, patterns: tuple[str, ...]) -> list[StudyRun]:
        """The runs that match any of the patterns; all runs if there is no pattern."""
        for pattern in patterns:
            if not any(run.matches(pattern) for run in self.runs):
                names = ", ".join(run.name for run in self.runs)
                raise ValueError(f"--only {pattern} matches no run of this study: {names}")
        return [r for r in self.runs if not patterns or any(map(r.matches, patterns))]

    def with_baselines(self) -> "StudyConfig":
        """The study with all baselines, and the models that they are compared with."""
        names = (*self.models, "A", "D-gru-relu", *(model.name for model in BASELINES))
        return dataclasses.replace(self, models=tuple(dict.fromkeys(names)))

    def resolved(self) -> "StudyConfig":
        """The settings with absolute paths, and with the sizes that pretraining requires."""
        given, model, pretrained = self.given, self.model, self.pretrained
        if Path(model.core).exists():
            model = dataclasses.replace(model, core=str(Path(model.core).resolve()))
        if given is not None and Path(given).exists():
            given = str(Path(given).resolve())
        if self.text:
            if model.hidden_dim != model.embedding_dim:
                raise ValueError(
                    f"model.hidden_dim is {model.hidden_dim} and model.embedding_dim "
                    f"{model.embedding_dim}, expected the same size: pretrained embeddings "
                    "initialize the input and the output layer"
                )
            # Pretraining compares context vectors with embeddings.
            model = dataclasses.replace(model, context_dim=model.embedding_dim)
        if pretrained:
            from dntm.model.checkpoint import best_of
            from dntm.model.pretrained_encoder import PretrainedEncoder

            pretrained = _existing(pretrained, "pretrained")
            encoder = PretrainedEncoder.load(best_of(Path(pretrained)))
            model = dataclasses.replace(model, **encoder.sizes)
        return dataclasses.replace(
            self,
            corpus=self.corpus if self.corpus in CORPORA else _existing(self.corpus, "corpus"),
            given=given,
            text=tuple(_existing(path, "text") for path in self.text),
            pretrained=pretrained,
            model=model,
        )


PRESETS: dict[str, StudyConfig] = {
    name: merged(StudyConfig(), values, name) for name, values in _RECIPES["presets"].items()
}


class StudyFolder:
    """The files of a study."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = path / "study.yaml"
        self.dataset = path / "dataset"
        self.pretraining = path / "pretraining"
        self.report = path / "report"

    def lock(self, name: str) -> Path:
        """The lock file of a run, of "dataset" or of "pretraining"."""
        return self.path / ".locks" / name

    def run(self, run: StudyRun) -> Path:
        """The run folder."""
        return self.path / "runs" / run.name

    def finished(self, run: StudyRun) -> bool:
        """Whether all results of a run exist."""
        names = (RESULTS, RECORDS, CLOZE) if run.model.letter else (RESULTS, RECORDS)
        return all((self.run(run) / name).is_file() for name in names)

    def save_settings(self, config: StudyConfig) -> None:
        """Write study.yaml; if it exists, refuse any change except additional models."""
        if self.settings.exists():
            saved = StudyConfig.from_yaml(self.settings)
            if saved == config:
                return
            models = saved.models if set(saved.models) < set(config.models) else config.models
            if saved != dataclasses.replace(config, models=models):
                old, new = by_dotted_name(saved), by_dotted_name(config)
                name = next(name for name in old if old[name] != new[name])
                raise ValueError(
                    f"{self.settings} has different settings ({name}: {old[name]!r} there, "
                    f"{new[name]!r} given): choose another --output-dir, or give the same settings"
                )
        write_text(self.settings, to_yaml(config))


def _existing(path: str, option: str) -> str:
    found = Path(path)
    if not found.exists():
        known = f" or one of {', '.join(CORPORA)}" if option == "corpus" else ""
        raise ValueError(f"--{option} {path} does not exist, expected a file or folder{known}")
    return str(found.resolve())


def by_dotted_name(config: StudyConfig) -> dict[str, Any]:
    """All settings, such as model.hidden_dim."""
    found: dict[str, Any] = {}
    for name, value in dataclasses.asdict(config).items():
        nested = isinstance(value, dict)
        found |= {f"{name}.{n}": v for n, v in value.items()} if nested else {name: value}
    return found
