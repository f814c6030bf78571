"""`dntm data build`: from a corpus to a dataset folder."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tqdm import tqdm

from dntm.cli.data_stats import print_ideal, print_table_1
from dntm.corpus.anonymize import Nesting
from dntm.corpus.build import Entities
from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset import Dataset
from dntm.corpus.prepare import ReadConfig, prepare, prepare_storyworld
from dntm.corpus.reading import Format
from dntm.corpus.storyworld.story import StoryworldConfig
from dntm.corpus.text import Documents


@dataclass(frozen=True, kw_only=True)
class Command:
    """Build a dataset of anonymised documents from a corpus."""

    source: tyro.conf.Positional[str]
    """A corpus by name (dntm data list), or a file or folder of CoNLL-2012, CoNLL-U, JSON lines
    or plain text, gzip or not."""
    output_dir: Path | None = None
    """The dataset folder to make; datasets/NAME where not given."""
    overwrite: bool = False
    """Replace the folder if it exists."""
    from_: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """A local clone, folder or mirror of a corpus known by name, instead of fetching it."""
    format: Format | None = None
    """The files' format; recognised where not given. inline: text with [1], [2] as mentions."""
    documents: Documents | None = None
    """Plain text: one document a file, or one between empty lines (then each line is a
    paragraph)."""
    on_error: Literal["stop", "skip"] = "stop"
    """A malformed document ends the build, or is left out and counted."""
    limit: int | None = None
    """Read only the first so many documents."""
    entities: tuple[Entities, ...] | None = None
    """What counts as an entity, one or several of: chains (as annotated), names (runs of
    capitalised words), unknown (words outside the vocabulary that occur at least twice), resolver
    (a coreference model). Default: chains, or names and unknown for plain text."""
    coref_model: Path | None = None
    """Weights of the coreference model for --entities resolver (extra: coref)."""
    nested: Nesting = "innermost"
    """Which of two nested mentions becomes an entity token."""
    named_entities: bool = False
    """Give named entities outside every chain an identifier too (CoNLL-2012)."""
    keep_single: bool = False
    """Keep chains with a single mention in the whole document."""
    keep_single_in_part: bool = True
    """Keep an entity of which the cut leaves a single mention in a part."""
    max_entities: int = 50
    """Leave out documents (or parts) with more entities than this."""
    max_sentences: int | None = None
    """Cut documents into near-equal parts of at most so many sentences; 0: never."""
    vocabulary_size: int = 10_000
    """Rows of the vocabulary in all, entities and special tokens included."""
    lower_case: bool = False
    """Write all words in lower case."""
    split_by: Literal["auto", "folder", "ids", "fraction"] = "auto"
    """How documents fall into train, dev and test: by the names of folders or files, by a file of
    ids, or by a seeded fraction. auto: the first of ids, folder, fraction that applies."""
    splits: Path | None = None
    """The file of ids: lines of id and split, or headings and list items; or a folder of
    train.ids, dev.ids, test.ids."""
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Shares of train, dev and test for --split-by fraction."""
    seed: int = 1
    """Seed of the fraction's shuffle, and of storyworld."""
    storyworld: StoryworldConfig = field(default_factory=StoryworldConfig)
    """How many stories storyworld tells, and how long they are."""

    def run(self) -> None:
        """Build, then print what came out."""
        target = self.output_dir or Path("datasets") / Path(self.source).name.split(".")[0]
        if target.exists() and not self.overwrite:
            raise ValueError(f"{target} exists already: choose another folder or pass --overwrite")
        if corpus := CORPORA.get(self.source):
            print(f"{corpus.name}: {corpus.summary}\nlicence: {corpus.licence}", file=sys.stderr)
        skipped: list[str] = []
        if self.source == "storyworld":
            prepare_storyworld(target, self.storyworld, overwrite=self.overwrite)
        else:
            skipped = self._prepare(target)
        print_table_1(Dataset.open(target))
        print_ideal(Dataset.open(target))
        for problem in skipped:
            print(f"left out: {problem}", file=sys.stderr)
        if skipped:
            print(f"{len(skipped)} malformed documents left out", file=sys.stderr)
        print(f"dataset: {target}")

    def _prepare(self, target: Path) -> list[str]:
        reading = ReadConfig(
            given=self.from_,
            format=self.format,
            documents=self.documents,
            skip_malformed=self.on_error == "skip",
            split_by=self.split_by,
            splits=self.splits,
            fractions=self.fractions,
            seed=self.seed,
            coref_model=self.coref_model,
            limit=self.limit,
        )
        prepared = prepare(
            self.source,
            target,
            reading,
            self._settings(),
            overwrite=self.overwrite,
            progress=lambda documents: iter(tqdm(documents, "reading", unit=" documents")),
        )
        return prepared.skipped

    def _settings(self) -> dict[str, Any]:
        names = ("nested", "named_entities", "keep_single", "keep_single_in_part", "max_entities")
        settings = {name: getattr(self, name) for name in (*names, "vocabulary_size", "lower_case")}
        if self.entities is not None:
            settings["entities"] = self.entities
        if self.max_sentences is not None:
            settings["max_sentences"] = self.max_sentences or None
        return settings
