"""`dntm benchmark pretrain`: how fast pretraining runs on this machine."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from dntm.files import write_text
from dntm.training.pretraining_config import EncoderConfig


@dataclass(frozen=True, kw_only=True)
class Command:
    """Time pretraining beside a plain implementation and the machine's limit."""

    vocabulary: int = 10_000
    """Rows of the embedding table."""
    rounds: int = 3
    """How often each way is timed; the best time counts."""
    threads: int = 0
    """Threads of the matrix products; 0: as many as PyTorch chooses."""
    seed: int = 0
    """Which sentences are made up."""
    json: Path | None = None
    """Write the numbers to this file, too."""
    model: EncoderConfig = field(default_factory=EncoderConfig)

    def run(self) -> None:
        """Print the table."""
        if self.threads < 0 or self.rounds < 1:
            raise ValueError(
                f"threads is {self.threads} and rounds {self.rounds}, "
                "expected at least 0 threads and 1 round"
            )
        import torch

        from dntm.benchmark.pretrain import benchmark_pretraining

        if self.threads:
            torch.set_num_threads(self.threads)
        found = benchmark_pretraining(
            self.model, vocabulary=self.vocabulary, rounds=self.rounds, seed=self.seed
        )
        plain, ideal = found.plain_words_per_second, found.ideal_words_per_second
        print(f"threads          {found.threads:12,} ({found.clock} seconds)")
        print(f"ours             {found.words_per_second:12,.0f} words/s")
        print(f"packed sequences {plain:12,.0f} words/s ({found.speedup:.2f}x)")
        print(f"ideal            {ideal:12,.0f} words/s ({found.of_ideal:.0%})")
        print(f"matrix product   {found.matmul_gflops:12,.1f} GF/s")
        if self.json:
            numbers = {"rounds": self.rounds, "seed": self.seed, "torch": torch.__version__}
            write_text(self.json, json.dumps(numbers | found.as_plain(), indent=2) + "\n")
            print(f"numbers: {self.json}")
