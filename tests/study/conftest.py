import subprocess
from pathlib import Path

import pytest

from tests.study.small_study import reproduce, write_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("stories"))


@pytest.fixture(scope="session")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that ran without interruption."""
    study = tmp_path_factory.mktemp("finished") / "study"
    done = subprocess.run(reproduce(corpus, study, "--jobs", "2"), check=True, capture_output=True)
    (study.parent / "stdout.txt").write_bytes(done.stdout)
    (study.parent / "stderr.txt").write_bytes(done.stderr)
    return study
