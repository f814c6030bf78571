"""A small sample of `make torture`, of every kind; and that it finds what it looks for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dntm.corpus import formats
from tests.torture import page, readers, saved
from tests.torture.trying import Tally

KILLS = """
import sys
from pathlib import Path
from tests.torture import kills
made = kills.write_corpus(Path(sys.argv[1]))
attacks = (kills.kill_build, kills.kill_train, kills.kill_pretrain)
for tally in (attack(made, 2, 1) for attack in attacks):
    print(tally.what, tally.tried, *tally.problems)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What is killed and damaged, and what came of the kills."""
    folder = tmp_path_factory.mktemp("torture") / "made"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(folder)], capture_output=True, text=True, check=False,
        cwd=root, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def problems(tallies: list[Tally]) -> list[str]:
    return [problem for tally in tallies for problem in tally.problems]


def test_kills_lose_nothing(made: tuple[Path, str]) -> None:
    assert made[1].splitlines() == [
        f"kill -9: {command} 2" for command in ("data build", "train", "pretrain")
    ]


def test_damaged_files_are_refused_or_mean_the_same(made: tuple[Path, str], tmp_path: Path) -> None:
    copy = saved.copied(made[0], tmp_path / "copy")

    tallies = list(saved.damaged_files(copy, 210, seed=2))

    assert sum(tally.tried for tally in tallies) == 210
    assert sum(tally.refused for tally in tallies) > 100
    assert problems(tallies) == []


def test_damaged_input_is_read_or_refused(tmp_path: Path) -> None:
    tallies = list(readers.damaged_inputs(tmp_path, 1500, seed=2))

    assert problems([*tallies, readers.shapes(tmp_path, 50_000)]) == []
    assert all(0 < tally.refused < tally.tried for tally in tallies)


def test_odd_requests_and_many_readers_are_answered(tmp_path: Path) -> None:
    model = page.reader(tmp_path)

    requests = page.odd_requests(model, 60, seed=2)
    read = page.many_readers(model, 8, 1.0)

    assert problems([requests, read]) == []
    assert 0 < requests.refused < requests.tried
    assert read.tried >= 8


def test_a_reader_that_breaks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("sentences")

    monkeypatch.setattr(formats, "_json_document", broken)

    tallies = list(readers.damaged_inputs(tmp_path, 100, seed=1))

    assert any("json" in problem and "KeyError" in problem for problem in problems(tallies))
