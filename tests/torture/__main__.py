"""`python -m tests.torture`: all attacks, or some of them with --only."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.torture import kills, page, readers, saved
from tests.torture.trying import Tally

SHOWN = 5
"""Problems of a kind that are printed."""


@dataclass(frozen=True)
class Amount:
    """How much of each."""

    inputs: int = 200_000
    shape: int = 1_000_000
    files: int = 5_000
    kills: tuple[int, int, int, int] = (35, 30, 25, 10)
    """Of train, pretrain, data build and reproduce."""
    requests: int = 2_500
    readers: int = 64
    seconds: float = 60.0


def attacks(folder: Path, amount: Amount, seed: int) -> dict[str, Callable[[], Iterable[Tally]]]:
    """By name; kills come first, from a process that has computed nothing yet."""
    made = folder / "made"
    train, pretrain, build, reproduce = amount.kills

    def killed() -> Iterable[Tally]:
        kills.write_corpus(made)
        yield kills.kill_build(made, build, seed)
        yield kills.kill_train(made, train, seed)
        yield kills.kill_pretrain(made, pretrain, seed)
        yield kills.kill_reproduce(made, reproduce, seed)

    def pages() -> Iterable[Tally]:
        model = page.reader(folder)
        yield page.odd_requests(model, amount.requests, seed)
        yield page.many_readers(model, amount.readers, amount.seconds)

    def read() -> Iterable[Tally]:
        yield from readers.damaged_inputs(folder, amount.inputs, seed)
        yield readers.shapes(folder, amount.shape)

    def files() -> Iterable[Tally]:
        if not made.exists():
            kills.make(made)
        return saved.damaged_files(saved.copied(made, folder / "copy"), amount.files, seed)

    return {"kills": killed, "files": files, "page": pages, "readers": read}


def main() -> None:
    """Run, and print the table as it grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=("kills", "files", "page", "readers"))
    given = parser.parse_args()
    problems: list[str] = []
    print("| attack | tried | refused in a sentence | problems | slowest, s |")
    print("| --- | --: | --: | --: | --: |", flush=True)
    with TemporaryDirectory(prefix="torture-") as folder:
        began = time.monotonic()
        for name, attack in attacks(Path(folder), Amount(), given.seed).items():
            if given.only and name not in given.only:
                continue
            for tally in attack():
                print(row(tally), flush=True)
                problems += tally.problems
                for problem in tally.problems[:SHOWN]:
                    print(f"  {problem}", file=sys.stderr, flush=True)
        minutes = (time.monotonic() - began) / 60
    print(f"\nseed {given.seed}, {minutes:.0f} minutes, {len(problems)} problems")
    sys.exit(1 if problems else 0)


def row(tally: Tally) -> str:
    """A row of the table."""
    slowest = f"{tally.slowest:.1f}" if tally.slowest else ""
    cells = (tally.what, f"{tally.tried:,}", f"{tally.refused:,}", len(tally.problems), slowest)
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
