"""No traceback, hang, wrong number or loss; DNTM_TORTURE=1 tries a hundred times as often."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dntm.corpus import formats
from tests.torture import readers, saved
from tests.torture.trying import Tally

MANY = bool(os.environ.get("DNTM_TORTURE"))
SEED = int(os.environ.get("DNTM_TORTURE") or 2)
LONG = ("build=25", "train=35", "pretrain=30", "reproduce=10")
SHORT = ("build=2", "train=2", "pretrain=2")
KILLS = """
import sys
from pathlib import Path
from tests.study.small_study import write_corpus
from tests.torture import kills
made, *attacks = map(str, sys.argv[1:])
write_corpus(Path(made), stories=30, lines=400)
for attack in attacks:
    name, _, number = attack.partition("=")
    tally = getattr(kills, f"kill_{name}")(Path(made), int(number), seed=1)
    assert tally.tried == int(number)
    print(*tally.problems, sep="\\n", end="")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What is killed and damaged, and the problems of the kills."""
    folder = tmp_path_factory.mktemp("made")
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(folder), *(LONG if MANY else SHORT)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def problems(tallies: list[Tally]) -> list[str]:
    return [problem for tally in tallies for problem in tally.problems]


def test_kills_lose_nothing(made: tuple[Path, str]) -> None:
    assert made[1] == ""


def test_damaged_files_are_refused_or_mean_the_same(made: tuple[Path, str], tmp_path: Path) -> None:
    copy = saved.copied(made[0], tmp_path / "copy")

    tallies = list(saved.damaged_files(copy, 5_000 if MANY else 210, SEED))

    assert problems(tallies) == []
    assert sum(tally.refused for tally in tallies) > 100


def test_damaged_input_is_read_or_refused(tmp_path: Path) -> None:
    tallies = list(readers.damaged_inputs(tmp_path, 200_000 if MANY else 1500, SEED))

    assert problems(tallies) == []
    assert all(0 < tally.refused < tally.tried for tally in tallies)


def test_a_reader_that_breaks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("sentences")

    monkeypatch.setattr(formats, "_json_chains", broken)

    tallies = list(readers.damaged_inputs(tmp_path, 100, seed=1))

    assert any("json" in problem and "KeyError" in problem for problem in problems(tallies))
