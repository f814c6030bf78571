"""`dntm evaluate`: Table 2's token groups for a trained model, and one record a token."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from tqdm import tqdm

from dntm.cli.runs import dataset_of, documents_of, model_of, result_file
from dntm.cli.tables import print_groups
from dntm.corpus.dataset import Dataset
from dntm.corpus.splits import Split
from dntm.evaluation.by_document import as_csv, document_rows, sum_columns
from dntm.evaluation.groups import GROUPS, as_plain, score_groups
from dntm.evaluation.ideal import ideal_records
from dntm.evaluation.records import Records
from dntm.evaluation.uncertainty import group_sums
from dntm.files import write_text


@dataclass(frozen=True, kw_only=True)
class Command:
    """Score a split with one or more trained models, side by side."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders, or checkpoints such as RUN/best."""
    split: Split = "test"
    """Which split."""
    dataset: Path | None = None
    """The dataset folder; the one the run was trained on where not given."""
    records: bool = True
    """Write one CSV record per predicted token to RUN/records-SPLIT.csv; with another --dataset
    than the run's own to RUN/records-SPLIT-DATASET.csv."""
    by_document: Path | None = None
    """Also write each document's tokens and nats by group, a row for each run, to this CSV file."""

    def run(self) -> None:
        """Print the table and write the records."""
        if not self.runs:
            raise ValueError("no run given, expected at least one run folder")
        table, ideal_row, written, sums = {}, {}, [], []
        for run in self.runs:
            dataset = dataset_of(run, self.dataset)
            records = _score(run, dataset, self.split)
            table[str(run)] = as_plain(score_groups(records))
            if ideal := ideal_records(dataset, self.split):
                ideal_row["ideal reader"] = as_plain(score_groups(ideal))
            groups = [group_sums([records], group) for group in GROUPS]
            sums += [[str(run), *row] for row in document_rows(groups)]
            if self.records:
                path = result_file(run, dataset, f"records-{self.split}")
                records.write(path)
                written.append(f"records: {path}")
        if self.by_document:
            write_text(self.by_document, as_csv(["run", "document", *sum_columns(GROUPS)], sums))
            written.append(f"documents: {self.by_document}")
        print_groups(f"perplexity on {self.split}", table | ideal_row)
        for line in written:
            print(line)


def _score(run: Path, dataset: Dataset, split: str) -> Records:
    documents = documents_of(dataset, split)
    return model_of(run, dataset).records(tqdm(documents, str(run), unit=" documents"))
