"""`dntm benchmark data`: how fast plain text is read on this machine."""

from dataclasses import dataclass

from dntm.benchmark.data import measure


@dataclass(frozen=True, kw_only=True)
class Command:
    """Time the reading of plain text, beside a naive loop and the machine's limit."""

    megabytes: int = 50
    """How much text to read."""

    def run(self) -> None:
        """Print tokens a second and memory."""
        if self.megabytes < 1:
            raise ValueError(f"megabytes is {self.megabytes}, expected at least 1")
        found = measure(self.megabytes)
        print(f"{found.tokens:,} tokens of plain text, one core")
        print(f"ours             {found.ours:12,.0f} tokens/s")
        print(f"naive loop       {found.naive:12,.0f} tokens/s ({found.ours / found.naive:.1f}x)")
        print(f"limit (split)    {found.limit:12,.0f} tokens/s ({found.ours / found.limit:.0%})")
        early, end = found.memory_early, found.memory_end
        print(f"peak memory      {early:.0f} MiB after a tenth, {end:.0f} MiB at the end")
        print(f"whole build      {found.build:12,.0f} tokens/s, {found.memory_build:.0f} MiB")
