"""`dntm benchmark cloze`: how fast the cloze test runs on this machine."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from dntm.corpus.splits import Split
from dntm.files import write_text
from dntm.model.config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Command:
    """Time the cloze test on a split, beside reading every candidate's sentence in full."""

    dataset: Path
    """The dataset folder."""
    split: Split = "test"
    """Which split."""
    threads: int = 0
    """Threads of the matrix products; 0: as many as PyTorch chooses."""
    seed: int = 0
    """Which random weights."""
    json: Path | None = None
    """Write the numbers to this file, too."""
    model: ModelConfig = field(default_factory=ModelConfig)

    def run(self) -> None:
        """Print the table."""
        if self.threads < 0:
            raise ValueError(f"threads is {self.threads}, expected 0 or more")
        import torch

        from dntm.benchmark.cloze import benchmark_cloze

        if self.threads:
            torch.set_num_threads(self.threads)
        found = benchmark_cloze(self.model, self.dataset, split=self.split, seed=self.seed)
        naive = found.naive_seconds
        print(f"{found.gaps:,} gaps, {found.candidates:,} candidates of {self.dataset}")
        print(f"threads          {found.threads:12,} ({found.clock} seconds)")
        print(f"ours             {found.seconds:12,.1f} s")
        print(f"naive            {naive:12,.1f} s ({naive / found.seconds:.1f}x, scaled)")
        print(f"peak memory      {found.peak_memory_gb:12,.2f} GB")
        if self.json:
            settings = {"text": str(self.dataset), "split": self.split, "seed": self.seed}
            numbers = settings | {"torch": torch.__version__} | found.as_plain()
            write_text(self.json, json.dumps(numbers, indent=2) + "\n")
            print(f"numbers: {self.json}")
