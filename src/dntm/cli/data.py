"""`dntm data ...`: build, join, list and show datasets, and print Table 1 for them."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro
from tqdm import tqdm

from dntm.cli.runs import documents_of, print_groups, print_table, printable
from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset import LEFT_OUT, Dataset, Split, SplitStatistics, join_datasets
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.document import Token
from dntm.corpus.storyworld import build_storyworld
from dntm.evaluation.groups import score_groups
from dntm.evaluation.records import ideal_records
from dntm.files import resolved
from dntm.study.config import PAPER_TABLE_1, TABLE_1_ROWS


@dataclass(frozen=True)
class Stats:
    """Print Table 1 for each split of a dataset, with the paper's numbers in parentheses."""

    dataset: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")]
    """The dataset folder."""

    def run(self) -> None:
        """Print the table."""
        dataset = Dataset.open(self.dataset)
        print_table_1(dataset)
        print_ideal(dataset)
        dataset.check_content()


def print_table_1(dataset: Dataset) -> None:
    """Print Table 1 with one column per split, and counts that the paper does not report."""
    counts = {
        split: SplitStatistics(**dataset.information["counts"][split]) for split in PAPER_TABLE_1
    }
    rows = [["Table 1 (paper: OntoNotes)", *counts]]
    for row, label in enumerate(TABLE_1_ROWS):
        rows.append([label])
        for split, statistics in counts.items():
            ours, paper = statistics.table_1()[row], PAPER_TABLE_1[split][row]
            rows[-1].append(f"{ours:,.{0 if row == 0 else 2}f} ({paper:g})")
    rows.append(["tokens", *(f"{c.tokens:,}" for c in counts.values())])
    for label, name in (("entity tokens", "entity_tokens"), ("unknown words", "unknown_tokens")):
        shares = [getattr(c, name) / max(c.tokens, 1) for c in counts.values()]
        rows.append([label, *(f"{share:.1%}" for share in shares)])
    print_table(rows)
    crowded, in_no_split, malformed, others = map(dataset.information["left_out"].get, LEFT_OUT)
    print(
        f"vocabulary: {len(dataset.vocabulary):,} rows; left out: {crowded} with more than "
        f"{dataset.vocabulary.entities} entities, {in_no_split} in no split, {malformed} "
        f"malformed, {others} not part of the corpus"
    )


def print_ideal(dataset: Dataset) -> None:
    """Print the perplexity of the ideal reader, if the text's distribution is known."""
    for split in dataset.splits:
        if ideal := ideal_records(dataset, split):
            print_groups(f"ideal reader, {split}", {"perplexity": score_groups(ideal)})


@dataclass(frozen=True, kw_only=True)
class Build:
    """Build a dataset of anonymized documents from a corpus."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A named corpus (see dntm data list), or a file or folder of CoNLL-2012, CoNLL-U, JSON lines
    or plain text, optionally gzipped."""
    output_dir: Path | None = None
    """The dataset folder to create; if omitted, datasets/NAME."""
    overwrite: bool = False
    """Replace the dataset if it exists."""
    from_: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """Folder or file with a local copy of the named corpus, to use instead of downloading it."""
    reading: Annotated[ReadConfig, tyro.conf.arg(name="")] = field(default_factory=ReadConfig)
    """How the source is read and split."""
    build: Annotated[BuildConfig, tyro.conf.arg(name="")] = field(default_factory=BuildConfig)
    """What becomes an entity, and which documents and words are kept."""
    stories: tuple[int, int, int] = (3000, 150, 150)
    """Number of storyworld stories in train, dev and test."""

    def run(self) -> None:
        """Build and print statistics."""
        name = resolved(Path(self.source)).name.split(".")[0] or "dataset"
        target = self.output_dir or Path("datasets") / name
        if corpus := CORPORA.get(self.source):
            print(f"{corpus.name}: {corpus.summary}\nlicense: {corpus.license}", file=sys.stderr)
        if self.source == "storyworld":
            build_storyworld(
                target,
                self.stories,
                seed=self.reading.seed,
                vocabulary_of=self.build.vocabulary_of,
                overwrite=self.overwrite,
            )
        else:
            self._build(target)
        dataset = Dataset.open(target)
        print_table_1(dataset)
        print_ideal(dataset)
        if missing := {"train", "dev", "test"} - set(dataset.splits):
            print(f"note: no documents in {', '.join(sorted(missing))}", file=sys.stderr)
        for warning in dataset.information.get("warnings", ()):
            print(f"warning: {warning}", file=sys.stderr)
        print(f"dataset: {target}")

    def _build(self, target: Path) -> None:
        skipped: list[str] = []
        try:
            build_dataset(
                self.source,
                target,
                self.reading,
                self.build,
                given=self.from_,
                overwrite=self.overwrite,
                skipped=skipped,
                progress=partial(tqdm, desc="reading", unit=" documents", disable=None),
            )
        finally:
            for problem in skipped:
                print(f"skipped: {problem}", file=sys.stderr)
            if skipped:
                print(f"{len(skipped)} malformed documents skipped", file=sys.stderr)


@dataclass(frozen=True, kw_only=True)
class Join:
    """Join datasets split by split, with a shared vocabulary."""

    datasets: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DATASET [DATASET ...]")
    ]
    """Two or more dataset folders."""
    output_dir: Path
    """The dataset folder to create."""
    vocabulary_size: int = 10_000
    """Number of vocabulary rows, including entities and special tokens."""
    vocabulary_of: Path | None = None
    """Use the vocabulary of this dataset; if omitted, the words of the training splits are
    counted."""
    overwrite: bool = False
    """Replace the dataset if it exists."""

    def run(self) -> None:
        """Join and print Table 1."""
        join_datasets(
            self.datasets,
            self.output_dir,
            vocabulary_size=self.vocabulary_size,
            vocabulary_of=self.vocabulary_of,
            overwrite=self.overwrite,
        )
        print_table_1(Dataset.open(self.output_dir))
        print(f"dataset: {self.output_dir}")


_HOW = {
    "package": "installed with dntm",
    "generated": "generated by this program",
    "download": "downloaded when first built",
    "given": "needs --from",
}


@dataclass(frozen=True)
class List:
    """List the corpora that dntm data build accepts by name."""

    def run(self) -> None:
        """Print name, summary, license and origin."""
        for corpus in CORPORA.values():
            print(f"{corpus.name:<11} {corpus.summary}")
            print(f"{'':<11} license: {corpus.license}")
            print(f"{'':<11} {_HOW[corpus.how]}", end="")
            print(f": {corpus.repository} at {corpus.commit[:7]}" if corpus.commit else "")


@dataclass(frozen=True, kw_only=True)
class Show:
    """Show an anonymized document of a dataset."""

    dataset: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")]
    """The dataset folder."""
    document: int = 1
    """Number of the document in the split, counted from 1."""
    split: Split = "train"
    """Split that contains the document."""
    original: bool = False
    """Show the original words of each entity."""

    def run(self) -> None:
        """Print one sentence per line."""
        documents = documents_of(Dataset.open(self.dataset), self.split)
        if not 1 <= self.document <= len(documents):
            raise ValueError(
                f"document {self.document} of split {self.split!r}, expected 1 to {len(documents)}"
            )
        document = documents[self.document - 1]
        print(f"{printable(document.name)} ({document.entities} entities)")
        surfaces = iter(document.surfaces)
        for sentence in document.sentences:
            print(*(self._shown(token, surfaces) for token in sentence))

    def _shown(self, token: Token, surfaces: Iterator[Sequence[str]]) -> str:
        """A word, [3], or with its original words [3: the old man]."""
        if isinstance(token, str):
            return printable(token)
        words = printable(" ".join(next(surfaces, ())))
        return f"[{token}: {words}]" if self.original else f"[{token}]"
