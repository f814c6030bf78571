"""A study that begins with a pretraining: end to end, killed in the middle of it, and resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dntm.files import is_locked, locked
from tests.study.small import reproduce, results

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads processes from /proc")


def command(corpus: Path, study: Path) -> list[str]:
    text = str(corpus.parent / "text.txt")
    return reproduce(corpus, study, "--text", text, "--jobs", "2", "--only", "*-1")


def pretraining_of(study: subprocess.Popen[bytes]) -> int | None:
    children = Path(f"/proc/{study.pid}/task/{study.pid}/children").read_text().split()
    for child in map(int, children):
        if b"pretraining" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
            return child
    return None


def test_a_study_killed_while_it_pretrains_ends_with_the_same_tables(
    corpus: Path, tmp_path: Path
) -> None:
    whole, study = tmp_path / "whole", tmp_path / "study"
    subprocess.run(command(corpus, whole), check=True, capture_output=True)
    killed = subprocess.Popen(
        command(corpus, study), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (study / "pretraining" / "metrics.jsonl").exists() and killed.poll() is None:
        time.sleep(0.02)
    pretraining = pretraining_of(killed)
    assert pretraining is not None
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()

    # The orphaned process holds the lock until it has saved its state.
    lock = study / ".locks" / "pretraining"
    assert is_locked(lock)
    with locked(lock, lambda: None):
        assert not (study / "pretraining" / "all_results.json").exists()
        assert list((study / "pretraining" / "checkpoints").iterdir())
    subprocess.run(command(corpus, study), check=True, capture_output=True)

    assert results(study) == results(whole)
    weights = "pretraining/best/model.safetensors"
    assert (study / weights).read_bytes() == (whole / weights).read_bytes()
    page = (study / "report" / "report.md").read_text()
    assert "in 2 sittings" in page[page.index("## Runs and machines") :]
    assert "the text of the pretraining is not Gigaword but what was given as text.txt" in page
