"""A whole study, end to end: interrupted, shared between processes, and repeated."""

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
from tests.study.small_study import kill_all, reproduce, results

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads processes from /proc")


def sessions(study: Path) -> int:
    return sum(
        len(json.loads(path.read_text())["sessions"]) for path in study.glob("runs/*/machine.json")
    )


def test_a_study_prints_its_progress_tables_and_next_steps(corpus: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    command = reproduce(corpus, study, "--jobs", "1", "--only", "*-1")

    done = subprocess.run(command, check=True, capture_output=True, text=True)

    first, second = [line for line in done.stderr.splitlines() if line.startswith("run ")]
    assert first == "run 1 of 2 finished: A-1"
    assert second == "run 2 of 2 finished: D-gru-relu-1"
    assert "Table 2: perplexity by token group" in done.stdout
    assert "Table 4: the cloze test" in done.stdout
    assert "not tested" not in done.stdout
    assert f"report: {study / 'report' / 'report.html'}" in done.stdout
    assert f"dntm read --model {study / 'runs' / 'D-gru-relu-1'} FILE" in done.stdout


def test_a_finished_study_runs_nothing_again(
    corpus: Path, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sessions(finished)

    main(reproduce(corpus, finished)[3:])

    assert "runs: 4, finished: 4" in capsys.readouterr().out
    assert sessions(finished) == before


def test_a_deleted_report_is_written_again_byte_for_byte(finished: Path, tmp_path: Path) -> None:
    files = {p: p.read_bytes() for p in (finished / "report").rglob("*") if p.is_file()}
    (finished / "report").rename(tmp_path / "old")

    main(["report", str(finished)])

    assert {p: p.read_bytes() for p in (finished / "report").rglob("*") if p.is_file()} == files


def test_a_study_killed_many_times_ends_with_the_same_tables(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    study, rng = tmp_path / "study", random.Random(11)
    command = reproduce(corpus, study, "--jobs", "2")

    for number in range(6):
        before = sessions(study)
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        # Every other time a run has started before the kill
        while number % 2 and sessions(study) == before and process.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 2.0))
        kill_all(process)
    subprocess.run(command, check=True, capture_output=True)

    assert sessions(study) > 4  # as many as without a kill
    assert results(study) == results(finished)
    assert {path.name for path in study.rglob(".*")} == {".locks", ".lock"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_study_and_all_of_its_runs(
    corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    study = tmp_path / "study"
    process = subprocess.Popen(
        reproduce(corpus, study), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        # A shell that runs the tests in the background ignores Ctrl-C for them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )  # fmt: skip
    while not list(study.glob("runs/*/machine.json")) and process.poll() is None:
        time.sleep(0.05)

    os.kill(process.pid, number)
    _, error = process.communicate(timeout=60)

    assert process.returncode in (130, 143)
    assert b"Traceback" not in error
    running = subprocess.run(["pgrep", "-f", str(study)], capture_output=True, check=False)
    assert not running.stdout


def test_listed_commands_give_the_same_tables_in_any_order_and_at_once(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    command = reproduce(corpus, study, "--list")

    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [shlex.split(line) for line in listed.splitlines()]
    assert not (study / "dataset").exists()
    for pair in (lines[3:] * 2, [lines[1], lines[2]], [lines[0]], [lines[2]]):
        processes = [subprocess.Popen(line, stderr=subprocess.DEVNULL) for line in pair]
        assert [process.wait() for process in processes] == [0] * len(pair)
    main(["report", str(study)])

    assert [line[-1] for line in lines] == ["A-1", "D-gru-relu-1", "A-2", "D-gru-relu-2"]
    assert sessions(study) == 4
    assert results(study) == results(finished)


def test_a_partial_study_names_the_missing_runs(
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


def test_a_failed_run_is_named_with_its_log(corpus: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    command = reproduce(corpus, study, "--only", "A-1")
    (study / "runs" / "A-1").mkdir(parents=True)
    (study / "runs" / "A-1" / "machine.json").write_text("{")

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "A-1 failed: dntm: error:" in done.stderr
    assert "machine.json is damaged" in done.stderr
    assert str(study / "runs" / "A-1" / "log.txt") in done.stderr.splitlines()[-1]
