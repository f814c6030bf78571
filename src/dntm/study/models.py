"""The models of a study, as data (Section 5, Table 3).

A           LSTM language model
B-MERGING   dynamic input
C-MERGING   dynamic output
D-MERGING   dynamic input and output

`BASELINES` are models beyond the paper, compared in a table of their own. To add a model, add it to
`PAPER_MODELS` or `BASELINES`. `PAPER_TABLE_1`, `_3` and `_4` are the paper's own numbers; its
Table 2 repeats rows of Table 3.
"""

from dataclasses import dataclass, replace
from typing import Literal

from dntm.model.config import LETTERS, Extension, Merging, ModelConfig, Variant

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

PAPER_TABLE_1 = {
    "train": (2725, 25.7, 15.6, 9.3, 3.2),
    "dev": (335, 27.2, 16.8, 9.9, 3.2),
    "test": (336, 26.4, 15.8, 9.5, 3.1),
}
TABLE_1_ROWS = (
    "# of documents",
    "Avg. # of sentences",
    "Avg. # of unique entities",
    "... occurring more than once",
    "Avg. # of occurrences of an entity",
)


_COLUMNS = ("all", "reappearing", "following", "non_entities")


def _row(*numbers: float, size: tuple[float, float]) -> dict[str, float]:
    row = dict(zip(("parameters", "finetuned"), size, strict=True))
    for name, mean, error in zip(_COLUMNS, numbers[::2], numbers[1::2], strict=True):
        row |= {name: mean, f"{name}_error": error}
    return row


_ONE_SIDE_GRU, _ONE_SIDE = (18.9, 14.2), (17.3, 12.6)
_BOTH_GRU, _BOTH = (19.2, 14.4), (17.6, 12.9)

# Perplexity by token group and its standard error; parameters in millions
PAPER_TABLE_3 = {
    "A": _row(64.8, 0.6, 48.0, 2.6, 128.6, 2.0, 68.5, 0.2, size=(12.3, 12.3)),
    "B-gru-relu": _row(62.8, 0.3, 42.4, 1.1, 109.5, 1.4, 66.4, 0.3, size=_ONE_SIDE_GRU),
    "B-gru": _row(63.2, 0.4, 43.3, 2.7, 111.2, 0.7, 66.8, 0.4, size=_ONE_SIDE_GRU),
    "B-max": _row(63.6, 0.4, 45.0, 2.6, 116.0, 1.0, 67.0, 0.2, size=_ONE_SIDE),
    "B-latest": _row(64.0, 0.4, 44.1, 1.6, 127.6, 0.7, 67.5, 0.2, size=_ONE_SIDE),
    "C-gru-relu": _row(62.5, 0.3, 35.9, 3.7, 129.0, 0.7, 69.5, 0.3, size=_ONE_SIDE_GRU),
    "C-gru": _row(62.6, 0.2, 39.0, 2.0, 121.1, 8.3, 69.1, 0.2, size=_ONE_SIDE_GRU),
    "C-max": _row(62.2, 0.4, 41.1, 1.9, 126.9, 1.5, 68.4, 0.6, size=_ONE_SIDE),
    "C-latest": _row(64.9, 0.1, 49.8, 1.8, 129.1, 1.6, 70.6, 0.2, size=_ONE_SIDE),
    "D-gru-relu": _row(60.7, 0.2, 34.0, 1.3, 106.8, 0.6, 67.6, 0.04, size=_BOTH_GRU),
    "D-gru": _row(60.9, 0.3, 37.5, 0.3, 108.9, 0.8, 67.2, 0.4, size=_BOTH_GRU),
    "D-max": _row(60.7, 0.3, 39.5, 3.4, 107.5, 1.3, 66.8, 0.8, size=_BOTH),
    "D-latest": _row(63.4, 0.2, 47.9, 4.2, 116.4, 0.4, 68.9, 0.1, size=_BOTH),
}

# Mean quantile of the cloze test and its standard error
PAPER_TABLE_4 = {
    "A": (0.525, 0.001),
    "B-gru-relu": (0.630, 0.005),
    "B-gru": (0.633, 0.005),
    "B-max": (0.617, 0.002),
    "B-latest": (0.600, 0.004),
    "C-gru-relu": (0.519, 0.001),
    "C-gru": (0.522, 0.000),
    "C-max": (0.519, 0.001),
    "C-latest": (0.519, 0.003),
    "D-gru-relu": (0.642, 0.004),
    "D-gru": (0.637, 0.005),
    "D-max": (0.620, 0.002),
    "D-latest": (0.613, 0.002),
}
