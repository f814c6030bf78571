"""A whole study, end to end: it survives being killed, shared out, and called again."""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dntm.cli.main import main
from tests.study.small import kill_all, reproduce, results

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads processes from /proc")


def sittings(study: Path) -> int:
    return sum(
        len(json.loads(path.read_text())["sessions"]) for path in study.glob("runs/*/machine.json")
    )


def test_a_study_ends_with_its_tables_and_the_path_of_its_report(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["report", str(finished)])

    printed = capsys.readouterr().out
    assert "Table 2: perplexity by token group on the test split" in printed
    assert "Table 4: the cloze test" in printed
    assert f"report: {finished / 'report' / 'report.html'}" in printed
    names = {p.name for p in (finished / "report").rglob("*") if p.is_file()}
    assert {"report.html", "report.md", "table-3.csv", "table-3.tex", "figure-4.svg"} <= names


def test_a_study_ends_with_what_was_tested_and_what_to_try_next(finished: Path) -> None:
    printed = (finished.parent / "printed.txt").read_text()

    assert "could not be tested" not in printed.lower()
    *_, title, page, terminal, box = printed.splitlines()
    assert title == "try next:"
    model = finished / "runs" / "D-gru-relu-1"
    assert page.split("  #")[0].strip() == f"dntm serve --model {model}"
    assert terminal.split("  #")[0].strip() == f"dntm read --model {model} FILE"
    assert box.split("  #")[0].strip() == "dntm serve"


def test_a_finished_study_called_again_runs_nothing(
    corpus: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sittings(finished)

    main(reproduce(corpus, finished)[3:])

    assert "4 of them finished" in capsys.readouterr().out
    assert sittings(finished) == before


def test_a_report_deleted_comes_back_byte_for_byte(finished: Path, tmp_path: Path) -> None:
    files = {p: p.read_bytes() for p in (finished / "report").rglob("*") if p.is_file()}
    (finished / "report").rename(tmp_path / "old")

    main(["report", str(finished)])

    assert {p: p.read_bytes() for p in (finished / "report").rglob("*") if p.is_file()} == files


def test_killed_at_ten_random_moments_a_study_ends_with_the_same_tables(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    study, rng = tmp_path / "study", random.Random(11)
    command = reproduce(corpus, study, "--jobs", "2")

    for number in range(10):
        before = sittings(study)
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        # Every other time some run has begun, however busy the machine is.
        while number % 2 and sittings(study) == before and process.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 2.0))
        kill_all(process)
    subprocess.run(command, check=True, capture_output=True)

    assert sittings(study) > 4
    assert results(study) == results(finished)
    assert [path.name for path in study.rglob(".*")] == [".locks"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_study_and_all_of_its_runs(
    corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    study = tmp_path / "study"
    process = subprocess.Popen(
        reproduce(corpus, study), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while not list(study.glob("runs/*/machine.json")) and process.poll() is None:
        time.sleep(0.05)

    os.kill(process.pid, number)
    _, error = process.communicate(timeout=60)

    assert process.returncode in (130, 143)
    assert b"Traceback" not in error
    running = subprocess.run(["pgrep", "-f", str(study)], capture_output=True, check=False)
    assert not running.stdout


def test_listed_commands_in_any_order_twice_and_at_once_give_the_same_tables(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    command = [w for w in reproduce(corpus, study, "--list") if w != "--no-estimate"]

    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [shlex.split(line) for line in listed.splitlines()]
    assert not (study / "dataset").exists()
    for pair in (lines[3:] * 2, [lines[1], lines[2]], [lines[0]], [lines[2]]):
        processes = [subprocess.Popen(line, stderr=subprocess.DEVNULL) for line in pair]
        assert [process.wait() for process in processes] == [0] * len(pair)
    main(["report", str(study)])

    assert [line[-1] for line in lines] == ["A-1", "D-gru-relu-1", "A-2", "D-gru-relu-2"]
    assert sittings(study) == 4
    assert results(study) == results(finished)


def test_a_study_of_some_runs_says_what_is_missing(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    shutil.copytree(finished, study, ignore=shutil.ignore_patterns("*-1", "A-2", "report"))

    main(reproduce(corpus, study, "--only", "D-gru-relu-2")[3:])

    assert not (study / "runs" / "A-1").exists()
    text = (study / "report" / "report.md").read_text()
    assert "1 of 4 runs are finished" in text
    assert "Missing: A-1, D-gru-relu-1 and A-2" in text
    assert "No finished run of C-gru-relu and A" in text


def test_a_run_that_fails_is_named_with_its_log(corpus: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    command = reproduce(corpus, study, "--only", "A-1")
    (study / "runs" / "A-1").mkdir(parents=True)
    (study / "runs" / "A-1" / "machine.json").write_text("{")

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "failed A-1: dntm: error:" in done.stderr
    assert "machine.json is damaged" in done.stderr
    assert str(study / "runs" / "A-1" / "log.txt") in done.stderr.splitlines()[-1]
