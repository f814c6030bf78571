"""`dntm benchmark train`: how fast the model trains on this machine."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dntm.files import write_text
from dntm.model.config import ModelConfig

if TYPE_CHECKING:
    from dntm.benchmark.train import TrainBenchmark


@dataclass(frozen=True, kw_only=True)
class Command:
    """Time training beside the obvious loop over sentences and the machine's limit."""

    dataset: Path | None = None
    """The dataset folder to sample documents from; random documents where not given."""
    batch: int = 8
    """Documents read side by side."""
    rounds: int = 3
    """How often each way is timed; the best time counts."""
    threads: int = 0
    """Threads of the matrix products; 0: as many as PyTorch chooses."""
    seed: int = 0
    """Which documents are sampled."""
    json: Path | None = None
    """Write the numbers to this file, too."""
    model: ModelConfig = field(default_factory=ModelConfig)

    def run(self) -> None:
        """Print the table."""
        if self.threads < 0:
            raise ValueError(f"threads is {self.threads}, expected 0 or more")
        import torch

        from dntm.benchmark.train import benchmark_training

        if self.threads:
            torch.set_num_threads(self.threads)
        found = benchmark_training(
            self.model, dataset=self.dataset, batch=self.batch, rounds=self.rounds, seed=self.seed
        )
        text = "random documents" if self.dataset is None else str(self.dataset)
        print(f"{found.tokens:,} tokens of {text} in batches of {self.batch}")
        _print_table(found)
        if self.json:
            settings = {"text": text, "batch": self.batch, "rounds": self.rounds, "seed": self.seed}
            numbers = settings | {"torch": torch.__version__} | found.as_plain()
            write_text(self.json, json.dumps(numbers, indent=2) + "\n")
            print(f"numbers: {self.json}")


def _print_table(found: "TrainBenchmark") -> None:
    ours, naive, ideal = (
        found.tokens_per_second, found.naive_tokens_per_second, found.ideal_tokens_per_second
    )  # fmt: skip
    short, long = found.short_seconds_per_token, found.long_seconds_per_token
    print(f"threads          {found.threads:12,} ({found.clock} seconds)")
    print(f"ours             {ours:12,.0f} tokens/s")
    print(f"naive loop       {naive:12,.0f} tokens/s ({found.speedup:.2f}x)")
    print(f"ideal            {ideal:12,.0f} tokens/s ({found.of_ideal:.0%})")
    print(f"matrix product   {found.matmul_gflops:12,.1f} GF/s")
    print(f"peak memory      {found.peak_memory_gb:12,.2f} GB")
    print(f"20 sentences     {short * 1e3:12,.3f} ms/token")
    print(f"400 sentences    {long * 1e3:12,.3f} ms/token ({found.long_over_short:.2f}x)")
