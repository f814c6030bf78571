"""A whole study, end to end: interrupted, shared between processes, and repeated."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dntm.cli.main import main
from tests.cli.running import Capture
from tests.study.small_study import kill_all, reproduce, results

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads processes from /proc")


def sessions(study: Path) -> int:
    return sum(
        len(json.loads(path.read_text())["sessions"]) for path in study.glob("runs/*/machine.json")
    )


def test_a_study_prints_its_progress_tables_and_next_steps(finished: Path) -> None:
    shown, log = ((finished.parent / f"{name}.txt").read_text() for name in ("stdout", "stderr"))

    lines = sorted(line for line in log.splitlines() if line.startswith("run "))
    counts, names = zip(*(line.split(" finished: ") for line in lines), strict=True)
    assert counts == ("run 1 of 2", "run 2 of 2")
    assert set(names) == {"A-1", "D-gru-relu-1"}
    assert "Table 2: perplexity by token group" in shown
    assert "Table 4: the cloze test" in shown
    assert "not tested" not in shown
    assert f"report: {finished / 'report' / 'report.html'}" in shown
    assert f"dntm read --model {finished / 'runs' / 'D-gru-relu-1'} FILE" in shown


def test_a_finished_study_runs_nothing_again(corpus: Path, finished: Path, capsys: Capture) -> None:
    before = sessions(finished)

    main(reproduce(corpus, finished)[3:])

    assert "runs: 2, finished: 2" in capsys.readouterr().out
    assert sessions(finished) == before


def test_a_study_killed_at_every_step_ends_with_the_same_tables(
    corpus: Path, finished: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    command = reproduce(corpus, study, "--jobs", "2")

    for step in ("pretraining/metrics.jsonl", "runs/*/machine.json", "runs/*/records-test.csv"):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while not list(study.glob(step)) and process.poll() is None:
            time.sleep(0.01)
        kill_all(process)
        assert process.returncode == -signal.SIGKILL
        if step.startswith("pretraining"):
            interrupted = not (study / "pretraining" / "all_results.json").exists()
    subprocess.run(command, check=True, capture_output=True)

    assert sessions(study) > 2  # as many as without a kill
    assert results(study) == results(finished)
    weights = "pretraining/best/model.safetensors"
    assert (study / weights).read_bytes() == (finished / weights).read_bytes()
    machine = json.loads((study / "pretraining" / "machine.json").read_text())
    assert len(machine["sessions"]) == 1 + interrupted
    assert "| text | text.txt | gigaword |" in (study / "report" / "report.md").read_text()
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
    corpus: Path, finished: Path, tmp_path: Path, capsys: Capture
) -> None:
    study = tmp_path / "study"

    main(reproduce(corpus, study, "--list")[3:])
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert not (study / "dataset").exists()
    at_once = [subprocess.Popen(lines[1], stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in at_once] == [0, 0]
    for line in (lines[0], lines[1]):
        main(line[3:])
    main(["report", str(study)])

    assert [line[-1] for line in lines] == ["A-1", "D-gru-relu-1"]
    assert sessions(study) == 2
    assert results(study) == results(finished)


def test_a_failed_run_is_named_with_its_log(corpus: Path, tmp_path: Path, capsys: Capture) -> None:
    study = tmp_path / "study"
    (study / "runs" / "A-1").mkdir(parents=True)
    (study / "runs" / "A-1" / "machine.json").write_text("{")

    with pytest.raises(SystemExit) as exit_:
        main(reproduce(corpus, study, "--only", "A-1")[3:])

    error = capsys.readouterr().err
    assert exit_.value.code == 1
    assert "A-1 failed: dntm: error:" in error
    assert "machine.json is damaged" in error
    assert str(study / "runs" / "A-1" / "log.txt") in error.splitlines()[-1]
