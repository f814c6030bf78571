"""`dntm data join`: several datasets as one."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from dntm.cli.data_stats import print_table_1
from dntm.corpus.dataset import Dataset
from dntm.corpus.join import join_datasets


@dataclass(frozen=True, kw_only=True)
class Command:
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
        join_datasets(
            self.datasets,
            self.output_dir,
            vocabulary_size=self.vocabulary_size,
            vocabulary_of=self.vocabulary_of,
            overwrite=self.overwrite,
        )
        print_table_1(Dataset.open(self.output_dir))
        print(f"dataset: {self.output_dir}")
