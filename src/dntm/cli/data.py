"""`dntm data ...`: datasets from corpora: build, join, list, show, and Table 1 of them."""

import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tqdm import tqdm

from dntm.cli.runs import print_groups, printable, refuse_unused
from dntm.corpus.build import BuildConfig, LeftOut
from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset import Dataset, Split, SplitStatistics
from dntm.corpus.document import AnonymizedDocument, Document
from dntm.corpus.join import join_datasets
from dntm.corpus.prepare import ReadConfig, prepare, prepare_storyworld
from dntm.corpus.storyworld.story import StoryworldConfig
from dntm.evaluation.groups import as_plain, score_groups
from dntm.evaluation.records import ideal_records
from dntm.files import resolved
from dntm.settings import cut
from dntm.study.paper import PAPER_TABLE_1, TABLE_1_ROWS


@dataclass(frozen=True)
class Stats:
    """Print Table 1 for each split of a dataset, the paper's numbers in brackets."""

    dataset: tyro.conf.Positional[Path]
    """The dataset folder."""

    def run(self) -> None:
        """Print the table."""
        dataset = Dataset.open(self.dataset)
        print_table_1(dataset)
        print_ideal(dataset)
        dataset.check_content()


def print_table_1(dataset: Dataset) -> None:
    """Table 1, a column a split, and what the paper does not count."""
    counts = {
        split: SplitStatistics(**dataset.information["counts"][split]) for split in PAPER_TABLE_1
    }
    print(f"{'Table 1 (paper: OntoNotes)':<36}" + "".join(f"{split:>18}" for split in counts))
    for row, label in enumerate(TABLE_1_ROWS):
        cells = []
        for split, statistics in counts.items():
            ours, paper = statistics.table_1()[row], PAPER_TABLE_1[split][row]
            cells.append(f"{ours:,.{0 if row == 0 else 2}f} ({paper:g})")
        print(f"{label:<36}" + "".join(f"{cell:>18}" for cell in cells))
    _print_row("tokens", [f"{c.tokens:,}" for c in counts.values()])
    _print_row(
        "entity tokens", [f"{c.entity_tokens / max(c.tokens, 1):.1%}" for c in counts.values()]
    )
    _print_row(
        "unknown words", [f"{c.unknown_tokens / max(c.tokens, 1):.1%}" for c in counts.values()]
    )
    try:
        left_out = LeftOut(**dataset.information["left_out"])
    except (KeyError, TypeError) as error:
        path = dataset.folder / "dataset.json"
        raise ValueError(f"{path} is damaged: left_out, {cut(str(error), 200)}") from None
    print(
        f"vocabulary: {len(dataset.vocabulary):,} rows; left out: "
        f"{left_out.too_many_entities} with more than {dataset.vocabulary.entities} entities, "
        f"{left_out.in_no_split} in no split, {left_out.malformed} malformed, "
        f"{left_out.not_of_the_corpus} not of the corpus"
    )


def print_ideal(dataset: Dataset) -> None:
    """The perplexity of an ideal reader, where the text's distribution is known (storyworld)."""
    for split in dataset.splits:
        if ideal := ideal_records(dataset, split):
            print_groups(f"ideal reader, {split}", {"perplexity": as_plain(score_groups(ideal))})


def _print_row(label: str, cells: list[str]) -> None:
    print(f"{label:<36}" + "".join(f"{cell:>18}" for cell in cells))


@dataclass(frozen=True, kw_only=True)
class Build:
    """Build a dataset of anonymised documents from a corpus."""

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A corpus by name (dntm data list), or a file or folder of CoNLL-2012, CoNLL-U, JSON lines
    or plain text, gzip or not."""
    output_dir: Path | None = None
    """The dataset folder to make; datasets/NAME where not given."""
    overwrite: bool = False
    """Replace the dataset if the folder exists."""
    from_: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """A local clone, folder or mirror of a corpus known by name, instead of fetching it."""
    reading: Annotated[ReadConfig, tyro.conf.arg(name="")] = field(default_factory=ReadConfig)
    """How the source is read and split."""
    build: Annotated[BuildConfig, tyro.conf.arg(name="")] = field(default_factory=BuildConfig)
    """What becomes an entity, and what of the text is kept."""
    stories: tuple[int, int, int] = (3000, 150, 150)
    """storyworld: how many stories train, dev and test have."""
    story_sentences: int = 20
    """storyworld: sentences a story."""
    story_entities: int = 8
    """storyworld: the most entities that a story may have."""

    def run(self) -> None:
        """Build, then print what came out."""
        name = resolved(Path(self.source)).name.split(".")[0] or "dataset"
        target = self.output_dir or Path("datasets") / name
        if corpus := CORPORA.get(self.source):
            print(f"{corpus.name}: {corpus.summary}\nlicence: {corpus.licence}", file=sys.stderr)
        if self.build.vocabulary_of is not None:
            refuse_unused(self.build, "vocabulary_size", "with --vocabulary-of")
        if self.source == "storyworld":
            self._tell_stories(target)
        else:
            refuse_unused(self, "stories story_sentences story_entities", "without storyworld")
            self._prepare(target)
        dataset = Dataset.open(target)
        print_table_1(dataset)
        print_ideal(dataset)
        if missing := {"train", "dev", "test"} - set(dataset.splits):
            print(f"note: no document fell into {', '.join(sorted(missing))}", file=sys.stderr)
        for warning in dataset.information.get("warnings", ()):
            print(f"warning: {warning}", file=sys.stderr)
        print(f"dataset: {target}")

    def _prepare(self, target: Path) -> None:
        skipped: list[str] = []
        try:
            # Gone before anything else is printed
            with tqdm(desc="reading", unit=" documents", disable=None, mininterval=0.5) as bar:
                prepare(
                    self.source,
                    target,
                    self.reading,
                    self.build,
                    given=self.from_,
                    overwrite=self.overwrite,
                    skipped=skipped,
                    progress=lambda documents: _counted(documents, bar),
                )
        finally:
            for problem in skipped:
                print(f"left out: {problem}", file=sys.stderr)
            if skipped:
                print(f"{len(skipped)} malformed documents left out", file=sys.stderr)

    def _tell_stories(self, target: Path) -> None:
        why = "on storyworld, which is made as it is"
        refuse_unused(self, "from_", why)
        for options, taken in ((self.build, "vocabulary_of"), (self.reading, "seed")):
            names = [option.name for option in fields(options) if option.name != taken]
            refuse_unused(options, " ".join(names), why)
        train, dev, test = self.stories
        config = StoryworldConfig(
            train=train,
            dev=dev,
            test=test,
            sentences=self.story_sentences,
            entities=self.story_entities,
            seed=self.reading.seed,
        )
        prepare_storyworld(
            target, config, vocabulary_of=self.build.vocabulary_of, overwrite=self.overwrite
        )


def _counted(documents: Iterable[Document], bar: "tqdm[Any]") -> Iterator[Document]:
    for document in documents:
        yield document
        bar.update()


@dataclass(frozen=True, kw_only=True)
class Join:
    """Join datasets split by split; one vocabulary for all, counted anew where none is given."""

    datasets: tyro.conf.Positional[tuple[Path, ...]]
    """Dataset folders, at least two."""
    output_dir: Path
    """The dataset folder to make."""
    vocabulary_size: int = 10_000
    """Rows of the vocabulary in all, entities and special tokens included."""
    vocabulary_of: Path | None = None
    """A dataset whose vocabulary to take, entities included, instead of counting one: a model
    trained on the joint dataset can then go on learning from that one."""
    overwrite: bool = False
    """Replace the dataset if the folder exists."""

    def run(self) -> None:
        """Join, then print what came out."""
        if self.vocabulary_of is not None:
            refuse_unused(self, "vocabulary_size", "with --vocabulary-of")
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
    "package": "comes with the installation",
    "generated": "made by this program",
    "git": "fetched with git when first built",
    "given": "to be given with --from",
}


@dataclass(frozen=True)
class List:
    """List the corpora that `dntm data build NAME` knows."""

    def run(self) -> None:
        """Print name, summary, licence and origin."""
        for corpus in CORPORA.values():
            print(f"{corpus.name:<11} {corpus.summary}")
            print(f"{'':<11} licence: {corpus.licence}")
            print(f"{'':<11} {_HOW[corpus.how]}", end="")
            print(f": {corpus.repository} at {corpus.commit[:7]}" if corpus.commit else "")


_COLOURS = (31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96)


@dataclass(frozen=True, kw_only=True)
class Show:
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
        print(f"{printable(document.name)} ({document.entities} entities)")
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
                tokens.append(printable(token))
                continue
            words = printable(" ".join(next(surfaces, ())))
            text = f"[{token}: {words}]" if original else f"[{token}]"
            code = _COLOURS[(token - 1) % len(_COLOURS)]
            tokens.append(f"\x1b[1;{code}m{text}\x1b[0m" if colour else text)
        shown.append(" ".join(tokens))
    return shown
