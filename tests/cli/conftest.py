from pathlib import Path

import pytest

from tests.reader.small import checkpoint


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with random weights."""
    return checkpoint(tmp_path_factory.mktemp("model") / "d")
