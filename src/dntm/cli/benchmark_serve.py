"""`dntm benchmark serve`: the page with many readers at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Command:
    """Start a server on this machine and let many readers read at once."""

    model: Path | None = None
    """A run folder or checkpoint; without it, the model that comes with dntm."""
    readers: int = 16
    """How many readers at once, 1 to 32."""
    seconds: float = 60.0
    """How long they read, at most 600."""
    threads: int = 2
    """Worker threads of the server."""

    def run(self) -> None:
        """Print times, errors, mixed texts and memory; fail where there is an error."""
        if not 1 <= self.readers <= 32:
            raise ValueError(f"readers is {self.readers}, expected 1 to 32")
        if not 1 <= self.seconds <= 600:
            raise ValueError(f"seconds is {self.seconds}, expected 1 to 600")
        import numpy as np

        from dntm.benchmark.serve import benchmark_serving

        found = benchmark_serving(
            self.model, readers=self.readers, seconds=self.seconds, threads=self.threads
        )

        def milliseconds(times: Sequence[float]) -> str:
            if not times:
                return "       - no reading reached it"
            median, late, most = np.quantile(np.asarray(times) * 1e3, [0.5, 0.95, 1.0])
            return f"{median:8,.0f} ms median, {late:,.0f} ms 95 %, {most:,.0f} ms longest"

        print(f"first sentence, one reader  {milliseconds(found.first_alone)}")
        print(f"first sentence, {self.readers:2} readers  {milliseconds(found.first_together)}")
        print(f"readings                    {found.readings:8,} in {found.seconds:.0f} s")
        print(f"sentences                   {found.sentences / found.seconds:8,.1f} a second")
        print(f"mixed texts                 {found.mixed:8,}")
        print(f"errors                      {len(found.errors):8,}")
        print("server memory (MiB)         " + " ".join(f"{mb:,.0f}" for mb in found.memory_mb))
        if found.errors or found.mixed:
            raise ValueError(
                f"{found.mixed} mixed texts, {len(found.errors)} errors, the first: "
                + (found.errors[0] if found.errors else "none")
            )
