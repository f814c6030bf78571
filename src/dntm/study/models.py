"""The models of a study, as data (Section 5, Table 3).

A           LSTM language model
B-MERGING   dynamic input
C-MERGING   dynamic output
D-MERGING   dynamic input and output

`BASELINES` are models beyond the paper, compared in a table of their own. To add a model, add it to
`PAPER_MODELS` or `BASELINES`. `PAPER_TABLE_1`, `_3` and `_4` are the paper's own numbers.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dntm.model.config import LETTERS, Extension, Merging, ModelConfig, Variant
from dntm.settings import read_yaml

MERGING_TITLES: dict[Merging, str] = {
    "gru-relu": "GRU-ReLU",
    "gru": "GRU",
    "max": "Max pooling",
    "latest": "Only latest",
}
_TITLES = {
    "A": "Baseline (A)",
    "B": "Only dynamic input (B)",
    "C": "Only dynamic output (C)",
    "D": "Dynamic input and output (D)",
}


@dataclass(frozen=True, kw_only=True)
class StudyModel:
    """One model: a row of the tables."""

    name: str
    """Name of its runs: A, D-gru-relu."""
    title: str
    """Name in the tables."""
    letter: str = ""
    """The paper's letter; models with the same letter form a block of Table 3. Empty for models
    beyond the paper."""
    variant: Variant = "baseline"
    merging: Merging = "gru-relu"
    core: str = "lstm"
    extensions: tuple[Extension, ...] = ()
    kind: Literal["trained", "n-gram", "cache"] = "trained"
    """A cache is not trained: it is added to the trained model `base`."""
    base: str = ""

    @property
    def detail(self) -> str:
        """The merging function, as the tables name it."""
        return "" if self.letter in ("", "A") else MERGING_TITLES[self.merging]

    @property
    def in_table_2(self) -> bool:
        """Whether the model is the one of its letter in Table 2."""
        return self.letter != "" and self.merging == "gru-relu"

    def config(self, sizes: ModelConfig) -> ModelConfig:
        """The settings of the model, with these sizes and the extensions that these add."""
        added = tuple(name for name in sizes.extensions if name not in self.extensions)
        return replace(
            sizes,
            core=self.core,
            variant=self.variant,
            merging=self.merging,
            extensions=(*self.extensions, *added),
        )


def _paper_model(letter: str, merging: Merging = "gru-relu") -> StudyModel:
    name = letter if letter == "A" else f"{letter}-{merging}"
    return StudyModel(
        name=name, title=_TITLES[letter], letter=letter, variant=LETTERS[letter], merging=merging
    )


def _extended(letter: str, name: str, *extensions: Extension) -> StudyModel:
    return StudyModel(
        name=f"{letter}-{name}",
        title=f"{_TITLES[letter]}, {', '.join(extensions)}",
        variant=LETTERS[letter],
        extensions=extensions,
    )


PAPER_MODELS = (
    _paper_model("A"),
    *(_paper_model(letter, merging) for letter in "BCD" for merging in MERGING_TITLES),
)
BASELINES = (
    StudyModel(name="n-gram", title="5-gram, modified Kneser-Ney", kind="n-gram"),
    StudyModel(name="A-cache", title=f"{_TITLES['A']}, neural cache", kind="cache", base="A"),
    StudyModel(
        name="D-cache", title=f"{_TITLES['D']}, neural cache", kind="cache", base="D-gru-relu"
    ),
    StudyModel(name="A-transformer", title="Transformer (A)", core="transformer"),
    StudyModel(
        name="D-transformer", title="Transformer (D)", core="transformer", variant=LETTERS["D"]
    ),
    StudyModel(name="entity-nlm", title="EntityNLM", extensions=("entity-nlm",)),
    _extended("A", "salience", "salience"),
    _extended("D", "salience", "salience"),
    _extended("A", "pointer", "salience", "pointer"),
    _extended("D", "pointer", "salience", "pointer"),
)
MODELS: dict[str, StudyModel] = {model.name: model for model in (*PAPER_MODELS, *BASELINES)}
"""All models by name, in the order of the tables."""

TABLE_1_ROWS = (
    "# of documents",
    "Avg. # of sentences",
    "Avg. # of unique entities",
    "... occurring more than once",
    "Avg. # of occurrences of an entity",
)
_PAPER = read_yaml(Path(__file__).with_name("paper_results.yaml"))
PAPER_TABLE_1: dict[str, list[float]] = _PAPER["table_1"]
PAPER_TABLE_3: dict[str, dict[str, float]] = {
    model: dict(zip(_PAPER["table_3"]["columns"], numbers, strict=True))
    for model, numbers in _PAPER["table_3"]["rows"].items()
}
PAPER_TABLE_4: dict[str, list[float]] = _PAPER["table_4"]
