"""The paper's thirteen models, as data (Section 5.1): A, and B, C, D with four merging functions.

A           LSTM language model (baseline)
B-MERGING   with only dynamic input
C-MERGING   with only dynamic output
D-MERGING   with dynamic input and output
"""

from dataclasses import dataclass

from dntm.model.config import Merging, Variant

VARIANTS: dict[str, Variant] = {"A": "baseline", "B": "input", "C": "output", "D": "both"}
MERGINGS: tuple[Merging, ...] = ("gru-relu", "gru", "max", "latest")
VARIANT_TITLES = {
    "A": "Baseline",
    "B": "Only dynamic input",
    "C": "Only dynamic output",
    "D": "Dynamic input and output",
}
MERGING_TITLES = {
    "gru-relu": "GRU-ReLU",
    "gru": "GRU",
    "max": "Max pooling",
    "latest": "Only latest",
}


@dataclass(frozen=True)
class PaperModel:
    """One row of Table 3."""

    letter: str
    merging: Merging = "gru-relu"

    @property
    def name(self) -> str:
        """What its runs are called: A, D-gru-relu."""
        return self.letter if self.letter == "A" else f"{self.letter}-{self.merging}"

    @property
    def variant(self) -> Variant:
        """Where its entities have dynamic embeddings."""
        return VARIANTS[self.letter]

    @property
    def title(self) -> str:
        """As the tables call it."""
        where = VARIANT_TITLES[self.letter]
        return where if self.letter == "A" else f"{where}, {MERGING_TITLES[self.merging]}"


MODELS: dict[str, PaperModel] = {
    model.name: model
    for model in (PaperModel("A"), *(PaperModel(letter, m) for letter in "BCD" for m in MERGINGS))
}
"""By name, in the order of the tables."""
