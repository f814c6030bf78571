"""`dntm data build`: from a corpus to a dataset folder."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from tqdm import tqdm

from dntm.cli.data_stats import print_ideal, print_table_1
from dntm.corpus.build import BuildConfig
from dntm.corpus.catalog import CORPORA
from dntm.corpus.dataset import Dataset
from dntm.corpus.document import Document
from dntm.corpus.prepare import ReadConfig, prepare, prepare_storyworld
from dntm.corpus.storyworld.story import StoryworldConfig


@dataclass(frozen=True, kw_only=True)
class Command:
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
        name = Path(self.source).resolve().name.split(".")[0] or "dataset"
        target = self.output_dir or Path("datasets") / name
        if corpus := CORPORA.get(self.source):
            print(f"{corpus.name}: {corpus.summary}\nlicence: {corpus.licence}", file=sys.stderr)
        if self.source == "storyworld":
            self._tell_stories(target)
        else:
            self._prepare(target)
        dataset = Dataset.open(target)
        print_table_1(dataset)
        print_ideal(dataset)
        if missing := {"train", "dev", "test"} - set(dataset.splits):
            print(f"note: no document fell into {', '.join(sorted(missing))}", file=sys.stderr)
        print(f"dataset: {target}")

    def _prepare(self, target: Path) -> None:
        skipped: list[str] = []
        try:
            with _bar() as bar:
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
        if replace(self.build, vocabulary_of=None) != BuildConfig() or self.from_:
            raise ValueError(
                "storyworld is made as it is: only --stories, --story-*, --seed and "
                "--vocabulary-of apply"
            )
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


@contextmanager
def _bar() -> Iterator["tqdm[Any]"]:
    """A progress bar on a terminal, gone before anything else is printed."""
    bar: tqdm[Any] = tqdm(desc="reading", unit=" documents", disable=None, mininterval=0.5)
    with bar:
        yield bar


def _counted(documents: Iterable[Document], bar: "tqdm[Any]") -> Iterator[Document]:
    for document in documents:
        yield document
        bar.update()
