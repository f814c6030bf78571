"""`dntm evaluate`: Table 2's token groups for a trained model, and one record a token."""

from dataclasses import dataclass
from pathlib import Path

import tyro
import yaml

from dntm.cli.tables import print_groups
from dntm.corpus.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class Command:
    """Score a split with a trained model."""

    run_dir: tyro.conf.Positional[Path]
    """The run folder, or a checkpoint such as RUN/best."""
    split: str = "test"
    """train, dev or test."""
    dataset: Path | None = None
    """The dataset folder; the one the run was trained on where not given."""
    records: Path | None = None
    """Where to write the CSV file of per-token records; RUN/records-SPLIT.csv where not given."""

    def run(self) -> None:
        """Print the table and write the records."""
        dataset = Dataset.open(self.dataset or self._trained_on())
        documents = list(dataset.documents(self.split))
        if not documents:
            raise ValueError(f"{dataset.folder} has no document in its {self.split} split")
        from dntm.evaluation.groups import as_plain, score_groups
        from dntm.evaluation.scoring import TextModel

        model = TextModel.load(self.run_dir)
        if model.vocabulary != dataset.vocabulary:
            raise ValueError(
                f"{self.run_dir} was trained with another vocabulary than {dataset.folder}"
            )
        records = model.records(documents)
        target = self.records or self.run_dir / f"records-{self.split}.csv"
        records.write(target)
        groups = as_plain(score_groups(records))
        print_groups(f"perplexity on {self.split}", {str(self.run_dir): groups})
        print(f"records: {target}")

    def _trained_on(self) -> Path:
        path = self.run_dir / "config.yaml"
        if not path.is_file():
            raise ValueError(f"{self.run_dir} does not name its dataset: pass --dataset")
        return Path(yaml.safe_load(path.read_text(encoding="utf-8"))["dataset"])
