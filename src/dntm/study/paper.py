"""The paper's models and its own numbers, as data (Section 5, Tables 1-4).

A           LSTM language model (baseline)
B-MERGING   with only dynamic input
C-MERGING   with only dynamic output
D-MERGING   with dynamic input and output

The peers that people would use instead (`PEERS`) stand in a table of their own.

`MODELS` names every model that a study can have and a report can show, each beside the paper's
number where the paper has one: whoever adds a model adds it there. Table 2 is the rows A,
B-gru-relu, C-gru-relu and D-gru-relu of Table 3.
"""

from dataclasses import dataclass, replace
from typing import Literal

from dntm.model.config import LETTERS, Kind, Merging, ModelConfig, Variant

Way = Literal["cache", "own cache", "dynamic evaluation"]
"""What can be added to a trained model when it is scored."""

BASELINE = "A"
"""What every other model is compared with, and the last row of Table 3."""
VARIANTS = LETTERS
_TITLES = {
    "A": "Baseline (A)",
    "B": "Only dynamic input (B)",
    "C": "Only dynamic output (C)",
    "D": "Dynamic input and output (D)",
}
MERGING_TITLES: dict[Merging, str] = {
    "gru-relu": "GRU-ReLU",
    "gru": "GRU",
    "max": "Max pooling",
    "latest": "Only latest",
}


@dataclass(frozen=True, kw_only=True)
class StudyModel:
    """A model of a study: a row of the tables."""

    name: str
    """What its runs are called: A, D-gru-relu."""
    kind: str
    """What it is at heart, the paper's letter: models of one kind are a block of the tables, and
    are equally fast."""
    title: str
    """As the tables call its kind."""
    detail: str = ""
    """What tells it from the others of its kind: the merging function."""
    variant: Variant | None = None
    """Of ours; None: another language model, whose records come from elsewhere."""
    merging: Merging = "gru-relu"
    leads: bool = True
    """Whether it stands for its kind in Table 2."""
    drawn: bool = True
    """Whether it is drawn in Figures 4 to 6."""
    peer: bool = False
    """Whether it is beyond the paper, in the peers' table alone."""
    model_kind: Kind = "dntm"
    salience: bool = False
    pointer: bool = False
    over: str = ""
    """Not trained, but another way to score the trained model of this name."""
    way: Way | Literal[""] = ""
    """What is added to it."""

    @property
    def has_cloze(self) -> bool:
        """Whether it is put to the cloze test."""
        return self.model_kind == "dntm" and not self.over

    def config(self, sizes: ModelConfig) -> ModelConfig:
        """The model to train, in these sizes."""
        if self.variant is None:
            raise ValueError(f"{self.name} is not one of our models: a study cannot train it")
        return replace(
            sizes,
            kind=self.model_kind,
            variant=self.variant,
            merging=self.merging,
            salience=self.salience or sizes.salience,
            pointer=self.pointer or sizes.pointer,
        )


def _paper_model(letter: str, merging: Merging = "gru-relu") -> StudyModel:
    is_baseline = letter == BASELINE
    return StudyModel(
        name=letter if is_baseline else f"{letter}-{merging}",
        kind=letter,
        title=_TITLES[letter],
        detail="" if is_baseline else MERGING_TITLES[merging],
        variant=VARIANTS[letter],
        merging=merging,
        leads=merging == "gru-relu",
        drawn=letter in "AD" and merging == "gru-relu",
    )


def _peer(
    name: str,
    title: str,
    kind: Kind = "dntm",
    variant: Variant = "baseline",
    *,
    pointer: bool = False,
) -> StudyModel:
    return StudyModel(
        name=name,
        kind=name,
        title=title,
        variant=variant,
        model_kind=kind,
        salience=kind == "dntm",
        pointer=pointer,
        leads=False,
        drawn=False,
        peer=True,
    )


def _over(base: StudyModel, way: Way) -> StudyModel:
    name = f"{base.name}-{way.replace(' ', '-')}"
    title = f"{base.title}, {way}"
    return replace(
        base,
        name=name,
        kind=name,
        title=title,
        detail="",
        over=base.name,
        way=way,
        leads=False,
        drawn=False,
        peer=True,
    )


_TRAINED = (
    _peer("A-salience", "Baseline (A), salience"),
    _peer("D-salience", "Dynamic input and output (D), salience", variant="both"),
    _peer("A-pointer", "Baseline (A), salience, pointer", pointer=True),
    _peer(
        "D-pointer",
        "Dynamic input and output (D), salience, pointer",
        variant="both",
        pointer=True,
    ),
    _peer("transformer", "Transformer over the document", "transformer"),
    _peer("entity-nlm", "After EntityNLM", "entity-nlm"),
    _peer("kneser-ney", "5-gram, modified Kneser-Ney", "kneser-ney"),
)
_PAPER = (
    _paper_model("A"),
    *(_paper_model(letter, merging) for letter in "BCD" for merging in MERGING_TITLES),
)
_BASES = {model.name: model for model in (*_PAPER, *_TRAINED)}
PEERS: dict[str, StudyModel] = {
    model.name: model
    for model in (
        *_TRAINED,
        *(
            _over(_BASES[name], "cache")
            for name in (
                *("A", "A-salience", "D-gru-relu", "D-salience"),
                *("A-pointer", "D-pointer", "transformer"),
            )
        ),
        *(_over(_BASES[name], "own cache") for name in ("A-salience", "D-gru-relu", "D-salience")),
        *(
            _over(_BASES[name], "dynamic evaluation")
            for name in ("A", "A-salience", "D-gru-relu", "D-salience")
        ),
    )
}
"""What people would use instead of the paper's model, and it with the same added."""

MODELS: dict[str, StudyModel] = {model.name: model for model in _PAPER} | PEERS
"""By name, in the order of the tables: the paper's thirteen, then the peers."""

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


@dataclass(frozen=True)
class PaperValue:
    """A mean over three seeds and its standard error."""

    mean: float
    error: float


@dataclass(frozen=True)
class PaperRow:
    """A row of Table 3: perplexities by token group, and millions of parameters."""

    all: PaperValue
    reappearing: PaperValue
    following: PaperValue
    non_entities: PaperValue
    parameters: float
    finetuned: float


def _row(*numbers: float, size: tuple[float, float]) -> PaperRow:
    everything, reappearing, following, non_entities = (
        PaperValue(*numbers[i : i + 2]) for i in range(0, 8, 2)
    )
    return PaperRow(everything, reappearing, following, non_entities, *size)


_ONE_SIDE_GRU, _ONE_SIDE = (18.9, 14.2), (17.3, 12.6)
_BOTH_GRU, _BOTH = (19.2, 14.4), (17.6, 12.9)

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

PAPER_TABLE_4 = {
    "A": PaperValue(0.525, 0.001),
    "B-gru-relu": PaperValue(0.630, 0.005),
    "B-gru": PaperValue(0.633, 0.005),
    "B-max": PaperValue(0.617, 0.002),
    "B-latest": PaperValue(0.600, 0.004),
    "C-gru-relu": PaperValue(0.519, 0.001),
    "C-gru": PaperValue(0.522, 0.000),
    "C-max": PaperValue(0.519, 0.001),
    "C-latest": PaperValue(0.519, 0.003),
    "D-gru-relu": PaperValue(0.642, 0.004),
    "D-gru": PaperValue(0.637, 0.005),
    "D-max": PaperValue(0.620, 0.002),
    "D-latest": PaperValue(0.613, 0.002),
}
"""Mean quantile of the cloze test."""
