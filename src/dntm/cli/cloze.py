"""`dntm cloze`: Table 4's cloze test for trained models, and one record a gap."""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro
from tqdm import tqdm

from dntm.cli.runs import dataset_of, documents_of, model_of, result_file
from dntm.cli.tables import print_cloze
from dntm.corpus.dataset import Dataset
from dntm.corpus.splits import Split
from dntm.evaluation.cloze import ClozeRecords, ClozeText
from dntm.evaluation.cloze_summary import summarize_cloze


@dataclass(frozen=True, kw_only=True)
class Command:
    """Let trained models guess which entity stood in each gap of a split, side by side."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders, or checkpoints such as RUN/best."""
    split: Split = "test"
    """Which split."""
    dataset: Path | None = None
    """The dataset folder; the one the run was trained on where not given."""
    same_sentence: bool = False
    """Let entities take part that the sentence of the gap itself brings in, as gaps and as
    candidates; the paper's candidates come before the sentence."""
    records: bool = True
    """Write one CSV record per gap to RUN/cloze-SPLIT.csv; -same-sentence and the name of another
    --dataset than the run's own come behind SPLIT."""
    json: bool = False
    """Print JSON instead of the table."""

    def run(self) -> None:
        """Print the table and write the records."""
        if not self.runs:
            raise ValueError("no run given, expected at least one run folder")
        table, written = {}, []
        for run in self.runs:
            dataset = dataset_of(run, self.dataset)
            records = self._fill(run, dataset)
            table[str(run)] = summarize_cloze(records)
            if self.records:
                kind = "-same-sentence" if self.same_sentence else ""
                path = result_file(run, dataset, f"cloze-{self.split}{kind}")
                records.write(path)
                written.append(str(path))
        if self.json:
            models = {name: summary.as_plain() for name, summary in table.items()}
            print(json.dumps({"split": self.split, "runs": models, "records": written}, indent=2))
            return
        print_cloze(f"cloze test on {self.split}", table)
        for line in written:
            print(f"records: {line}")

    def _fill(self, run: Path, dataset: Dataset) -> ClozeRecords:
        documents = documents_of(dataset, self.split)
        texts = [ClozeText.of(document, same_sentence=self.same_sentence) for document in documents]
        if not any(text.gaps for text in texts):
            raise ValueError(
                f"{dataset.folder} has no gap in its {self.split} split: "
                "expected an entity that comes back after another one"
            )
        filled = model_of(run, dataset).fill_all(texts)
        bar = tqdm(filled, str(run), total=len(texts), unit=" documents")
        return ClozeRecords.of(texts, bar)
