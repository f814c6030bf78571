"""BLiMP: which of two minimally different sentences is more likely (Warstadt et al. 2020).

A pair is correct if the whole acceptable sentence, including its end, has the lower surprisal. The
surprisals are those of `dntm score`: names and unknown words cost their spelling. The file is JSON
lines with the keys UID, linguistics_term, field, sentence_good and sentence_bad, as in
https://github.com/alexwarstadt/blimp.
"""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from tqdm import tqdm

from dntm.cli.runs import print_table
from dntm.cli.texts import ReaderOptions, Shared
from dntm.files import write_text
from dntm.reader.reader import Reader
from dntm.reader.stimuli import Stimulus, StimulusConfig, summarize
from dntm.reader.text import Kinds

PUBLISHED = {
    "5-gram": 0.612,
    "GPT-2 small, 10M words": 0.673,
    "Transformer-XL": 0.696,
    "LSTM, 90M words": 0.698,
    "GPT-2": 0.830,
    "people": 0.886,
}
"""Overall accuracies; the second is the baseline of the BabyLM challenge 2025."""
MODELS = {"model": "surprisal", "static": "static_surprisal"}
LEVELS = ("field", "linguistics_term", "UID")
_TIE = 1e-6
"""Smaller differences are rounding errors and no correct pair."""


@dataclass(frozen=True, kw_only=True)
class BlimpOptions:
    """Options of this benchmark."""

    pairs: Annotated[Path, tyro.conf.Positional]
    """A file of minimal pairs, optionally gzipped."""
    sample: int = 0
    """Number of pairs to draw for each UID; 0: all pairs."""
    seed: int = 0
    """Random seed for the sample."""
    json: Path | None = None
    """Also write the numbers to this file."""
    options: Shared = field(default_factory=ReaderOptions)
    """Options of the model and of its entities."""


def read_pairs(path: Path, sample: int, seed: int) -> list[Stimulus]:
    """The pairs of a file, or as many of each UID as `sample`."""
    columns = StimulusConfig(text_column=("sentence_good", "sentence_bad"), group_by="UID")
    by_uid: dict[str, list[Stimulus]] = {}
    for pair in columns.read(path, str(path)):
        by_uid.setdefault(str(pair.values["UID"]), []).append(pair)
    if sample:
        draw = random.Random(seed)
        by_uid = {u: draw.sample(own, min(sample, len(own))) for u, own in by_uid.items()}
    return [pair for own in by_uid.values() for pair in own]


def correct_pairs(
    reader: Reader, pairs: Sequence[Stimulus], options: ReaderOptions
) -> list[dict[str, bool]]:
    """For each pair, whether each model prefers the acceptable sentence."""
    kinds = None if options.entities == ("auto",) else cast("Kinds", options.entities)
    texts = (text for pair in pairs for text in pair.texts)
    prepared = (reader.prepare(text, kinds) for text in texts)
    readings = tqdm(reader.read_all(prepared, meanings=False), total=2 * len(pairs))
    sums = [summarize(reading, {}) for reading in readings]
    return [
        {model: bad[key] - good[key] > _TIE for model, key in MODELS.items()}
        for good, bad in zip(sums[::2], sums[1::2], strict=True)
    ]


def accuracies(
    pairs: Iterable[Stimulus], correct: Iterable[Mapping[str, bool]]
) -> dict[str, dict[str, dict[str, float]]]:
    """The number of pairs and each model's accuracy: overall, then for each value of each level."""
    groups: dict[str, dict[str, list[Mapping[str, bool]]]] = {"overall": {"all": []}}
    for pair, found in zip(pairs, correct, strict=True):
        groups["overall"]["all"].append(found)
        for level in LEVELS:
            value = str(pair.values.get(level)).replace("syntax/semantics", "syntax_semantics")
            groups.setdefault(level, {}).setdefault(value, []).append(found)
    return {
        level: {
            value: {"pairs": len(own)}
            | {model: sum(found[model] for found in own) / len(own) for model in MODELS}
            for value, own in sorted(values.items())
        }
        for level, values in groups.items()
    }


def main(options: BlimpOptions) -> None:
    """Print accuracies: overall, by field and by phenomenon."""
    pairs = read_pairs(options.pairs, options.sample, options.seed)
    reader = options.options.reader(precision="single")
    found = accuracies(pairs, correct_pairs(reader, pairs, options.options))
    rows = [["accuracy", "pairs", *MODELS]]
    for level in ("overall", *LEVELS[:2]):
        for value, own in found[level].items():
            rows.append([value, f"{own['pairs']:,}", *(f"{own[model]:.3f}" for model in MODELS)])
    print_table(rows)
    print("published: " + ", ".join(f"{name} {value:.3f}" for name, value in PUBLISHED.items()))
    print(f"static: {reader.models.static_name}")
    if options.json:
        numbers: dict[str, Any] = {"sample": options.sample, "seed": options.seed, **found}
        write_text(options.json, json.dumps(numbers | {"published": PUBLISHED}, indent=2) + "\n")
        print(f"numbers: {options.json}")


if __name__ == "__main__":
    main(tyro.cli(BlimpOptions, description=__doc__))
