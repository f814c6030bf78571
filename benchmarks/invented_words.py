"""Invented words: what a model predicts for the words of docs/results/thirty.

Writes one row per text: the first five predicted words after the last mention, and the confidence
after the first and the last mention. A judge who sees the predicted words alone then chooses a kind
for each (`judgements.csv`).
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import tyro

from dntm.files import new_file
from dntm.reader.reader import Reader

COLUMNS = ("text", "word", "predicted", "first_confidence", "last_confidence")


@dataclass(frozen=True, kw_only=True)
class InventedWordOptions:
    """Options of this benchmark."""

    folder: Path = Path("docs/results/thirty")
    """A folder with texts/ and key.csv (columns text and word)."""
    model: Path | None = None
    """A run folder or a checkpoint; if omitted, the bundled model."""


def main(options: InventedWordOptions) -> None:
    """Write predictions.csv into the folder."""
    reader = Reader.from_pretrained(options.model)
    with (
        (options.folder / "key.csv").open(encoding="utf-8") as key,
        new_file(options.folder / "predictions.csv") as target,
    ):
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in csv.DictReader(key):
            text = (options.folder / "texts" / f"{row['text']}.txt").read_text(encoding="utf-8")
            reading = reader.read(text)
            trail = reading.trail(row["word"]) if row["word"] in reading.entities.values() else []
            ends = [trail[0][1], trail[-1][1]] if trail else []
            words = ", ".join(near.word for end in ends[1:] for near in end.predicted_words[:5])
            confidence = [f"{state.confidence or 0:.3f}" for state in ends] or ["", ""]
            writer.writerow([row["text"], row["word"], words, *confidence])


if __name__ == "__main__":
    main(tyro.cli(InventedWordOptions, description=__doc__))
