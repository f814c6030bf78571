"""Names: the surprisal of first and later mentions, and of frequent and rare names.

Reads plain text that the model has not seen. A first mention should cost more than a reappearing
one, and the first mention of a rare name more than that of a frequent one. The frequency of a name
is the number of its occurrences in other text; names that do not occur there are left out.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from tqdm import tqdm

from dntm.cli.runs import print_table
from dntm.cli.texts import ReaderOptions
from dntm.corpus.document import text_lines
from dntm.evaluation.groups import Group
from dntm.evaluation.meaning import spearman
from dntm.files import write_text

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class NameOptions:
    """Options of this benchmark."""

    texts: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Text files to read; empty lines separate documents."""
    counted: tuple[Path, ...]
    """Text files in which names are counted."""
    json: Path | None = None
    """Also write the numbers to this file."""
    options: Annotated[ReaderOptions, tyro.conf.arg(name="")] = field(default_factory=ReaderOptions)
    """Options of the model."""


def documents(path: Path) -> Iterator[str]:
    """The documents of a text file."""
    lines: list[str] = []
    for line in (*(line for _, line in text_lines(path)), ""):
        if line.strip():
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []


def main(options: NameOptions) -> None:
    """Print the mean surprisals of both kinds of mention and the rank correlation."""
    frequency: Counter[str] = Counter()
    for path in options.counted:
        for _, line in text_lines(path):
            frequency.update(_WORD.findall(line.lower()))
    reader = options.options.reader(precision="single")
    bits: dict[Group, list[float]] = {Group.FIRST_MENTIONS: [], Group.REAPPEARING: []}
    first, rarity = list[float](), list[float]()
    texts = [text for path in options.texts for text in documents(path)]
    readings = reader.read_all(texts, meanings=False)
    for reading in tqdm(readings, total=len(texts), unit=" documents"):
        for token in reading.tokens:
            if not token.entity:
                continue
            bits[token.group].append(token.surprisal)
            if token.occurrence == 1 and (count := frequency[token.word.lower()]):
                first.append(token.surprisal)
                rarity.append(-np.log(count))
    numbers = {
        **{f"{group}_bits": float(np.mean(own)) for group, own in bits.items()},
        **{f"{group}_mentions": len(own) for group, own in bits.items()},
        "names": len(first),
        "spearman": spearman(np.array(first), np.array(rarity)),
    }
    print_table([["", "value"], *([name, f"{value:,.4g}"] for name, value in numbers.items())])
    if options.json:
        write_text(options.json, json.dumps(numbers, indent=2) + "\n")
        print(f"numbers: {options.json}")


if __name__ == "__main__":
    main(tyro.cli(NameOptions, description=__doc__))
