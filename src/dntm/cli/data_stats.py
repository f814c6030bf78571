"""`dntm data stats`: Table 1 of a dataset, beside the paper's numbers."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from dntm.cli.tables import print_groups
from dntm.corpus.dataset import Dataset, content_hash
from dntm.corpus.statistics import SplitStatistics
from dntm.evaluation.groups import as_plain, score_groups
from dntm.evaluation.ideal import ideal_records
from dntm.experiments.paper import PAPER_TABLE_1, TABLE_1_ROWS


@dataclass(frozen=True)
class Command:
    """Print Table 1 for each split of a dataset, the paper's numbers in brackets."""

    dataset: tyro.conf.Positional[Path]
    """The dataset folder."""

    def run(self) -> None:
        """Print the table."""
        dataset = Dataset.open(self.dataset)
        print_table_1(dataset)
        print_ideal(dataset)
        if dataset.information["content_hash"] != content_hash(self.dataset):
            raise ValueError(f"{self.dataset} was changed since it was built: its hash differs")


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
    left_out = dataset.information["left_out"]
    print(
        f"vocabulary: {len(dataset.vocabulary):,} rows; left out: "
        f"{left_out['too_many_entities']} with more than {dataset.vocabulary.entities} entities, "
        f"{left_out['in_no_split']} in no split, {left_out['malformed']} malformed, "
        f"{left_out['not_of_the_corpus']} not of the corpus"
    )


def print_ideal(dataset: Dataset) -> None:
    """The perplexity of an ideal reader, where the text's distribution is known (storyworld)."""
    for split in dataset.splits:
        if ideal := ideal_records(dataset, split):
            print_groups(f"ideal reader, {split}", {"perplexity": as_plain(score_groups(ideal))})


def _print_row(label: str, cells: list[str]) -> None:
    print(f"{label:<36}" + "".join(f"{cell:>18}" for cell in cells))
