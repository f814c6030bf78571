"""`dntm data show`: an anonymised document, each entity in its colour."""

import itertools
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from dntm.corpus.dataset import Dataset
from dntm.corpus.document import AnonymizedDocument
from dntm.corpus.splits import Split

_COLOURS = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)


@dataclass(frozen=True, kw_only=True)
class Command:
    """Show an anonymised document of a dataset."""

    dataset: tyro.conf.Positional[Path]
    """The dataset folder."""
    document: int = 1
    """Which document of the split, from 1."""
    split: Split = "train"
    """Which split."""
    original: bool = False
    """Show the original words beside each entity."""
    colour: Literal["auto", "always", "never"] = "auto"
    """Colour the entities: auto means when the output is a terminal."""

    def run(self) -> None:
        """Print one sentence a line."""
        dataset = Dataset.open(self.dataset)
        held = dataset.information["counts"].get(self.split, {}).get("documents", 0)
        if not held:
            raise ValueError(f"{self.dataset} has no document in its {self.split} split")
        if not 1 <= self.document <= held:
            raise ValueError(
                f"document {self.document} of split {self.split!r}, expected 1 to {held}"
            )
        documents = dataset.documents(self.split)
        document = next(itertools.islice(documents, self.document - 1, None), None)
        if document is None:
            raise ValueError(f"{self.dataset} is damaged: {self.split}.jsonl has fewer documents")
        terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        colour = self.colour == "always" or (self.colour == "auto" and terminal)
        print(f"{document.name} ({document.entities} entities)")
        for line in lines(document, original=self.original, colour=colour):
            print(line)


def lines(document: AnonymizedDocument, *, original: bool, colour: bool) -> list[str]:
    """One line a sentence; entities as [3], with their words as [3: the old man]."""
    surfaces = iter(document.surfaces)
    shown = []
    for sentence in document.sentences:
        tokens = []
        for token in sentence:
            if isinstance(token, str):
                tokens.append(token)
                continue
            words = " ".join(next(surfaces, ()))
            text = f"[{token}: {words}]" if original else f"[{token}]"
            code = _COLOURS[(token - 1) % len(_COLOURS)]
            tokens.append(f"\x1b[1;{code}m{text}\x1b[0m" if colour else text)
        shown.append(" ".join(tokens))
    return shown
