"""A study that begins with pretraining, killed while it pretrains and resumed."""

import subprocess
import time
from pathlib import Path

from tests.study.small_study import kill_all, reproduce, results


def test_a_study_killed_while_it_pretrains_ends_with_the_same_tables(
    corpus: Path, tmp_path: Path
) -> None:
    whole, study = tmp_path / "whole", tmp_path / "study"
    text = str(corpus.parent / "text.txt")
    options = ("--text", text, "--jobs", "2", "--only", "*-1")
    subprocess.run(reproduce(corpus, whole, *options), check=True, capture_output=True)
    killed = subprocess.Popen(
        reproduce(corpus, study, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (study / "pretraining" / "metrics.jsonl").exists() and killed.poll() is None:
        time.sleep(0.02)
    kill_all(killed)
    assert not (study / "pretraining" / "all_results.json").exists()

    subprocess.run(reproduce(corpus, study, *options), check=True, capture_output=True)

    assert results(study) == results(whole)
    weights = "pretraining/best/model.safetensors"
    assert (study / weights).read_bytes() == (whole / weights).read_bytes()
    sessions = (study / "report" / "tables" / "runs.csv").read_text().splitlines()
    assert sum(line.startswith("pretraining,") for line in sessions) == 2
    assert "| text | text.txt | gigaword |" in (study / "report" / "report.md").read_text()
